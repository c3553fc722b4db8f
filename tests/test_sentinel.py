"""Code that reads memory from `np.empty` before it writes it is seen by the tests."""

from __future__ import annotations

import numpy as np

from everhash.index import code_search, features
from everhash.index.features import StoredFeatures


def test_empty_arrays_of_everhash_hold_a_sentinel() -> None:
    assert np.isnan(StoredFeatures.room_for((3, 4)).halves).all()
    for module in (code_search, features):
        assert np.isnan(module.np.empty((2, 2), np.float32)).all()
        assert np.isnan(module.np.empty_like(np.ones(3))).all()
        assert (module.np.empty(2, np.uint8) == 0xA5).all()
        assert module.np.empty(2, np.int64).tolist() == [-6510615555426900571] * 2
        assert module.np.empty(1, object).tolist() == [None]
