"""Options of a search: taken as what they are, or refused in words that say what to do."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from everhash.errors import OptionError
from everhash.wire.options import RECALL, check_recall

SHARES: list[Any] = [RECALL, 0.5, 1, 1.0, 5e-324, np.float32(0.5), np.float64(1), np.int8(1)]
NO_SHARES: list[Any] = [
    *(0, 0.0, -0.0, -0.5, 1.0001, 2, 98, 10**400, -(10**400)),
    *(float("nan"), float("inf"), -float("inf"), np.float32("nan"), np.longdouble("1e-4000")),
    *(True, False, np.True_, None, "0.98", "", b"1", 1j, np.complex64(1)),
    *([0.5], (0.5,), np.array(0.5), np.array([0.5]), {}, Fraction(1, 2)),
]


@pytest.mark.parametrize("recall", SHARES)
def test_a_recall_is_a_float_above_0_and_at_most_1(recall: Any) -> None:
    share = check_recall(recall)
    assert type(share) is float
    assert share == recall


@pytest.mark.parametrize("recall", NO_SHARES, ids=lambda recall: f"{recall!r:.20}")
def test_another_recall_is_refused_with_what_came_and_what_to_do(recall: Any) -> None:
    with pytest.raises(OptionError, match="recall must be a number above 0 and at most 1") as found:
        check_recall(recall)
    assert f"got {recall!r:.40}" in found.value.message
    assert "1 finds all" in found.value.hint
