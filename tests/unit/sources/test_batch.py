"""A batch is what `Collection.ingest` takes, and its parts keep their rows together."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.sources import Batch, read
from tests.unit.sources.samples import GIF, table_of, whole


def test_a_batch_is_what_ingest_takes() -> None:
    assert Batch._fields == ("X", "y", "ids")
    (batch,) = read(table_of(text=["a", "b", "c"], pic=[GIF] * 3), payload="text", thumbnail="pic")
    X, y, ids = batch
    assert (len(X), y, ids) == (3, None, None)
    assert (batch.payloads, batch.thumbnails) == (["a", "b", "c"], [GIF] * 3)
    (plain,) = read(table_of(text=["a"]))
    assert (plain.payloads, plain.thumbnails) == (None, None)
    again = whole([batch, batch], batch_rows=2)
    assert len(again) == 6


@given(n=st.integers(1, 20), rows=st.integers(1, 25), data=st.data())
@settings(max_examples=20)
def test_some_rows_of_a_batch_keep_what_is_theirs(n: int, rows: int, data: st.DataObject) -> None:
    table = table_of(i=list(range(n)), kind=[f"k{i}" for i in range(n)], pic=[GIF] * n)
    seen = 0
    for batch in read(
        table, features="v", label="kind", id="i", payload="i", thumbnail="pic", batch_rows=rows
    ):
        which = data.draw(st.lists(st.integers(0, len(batch.X) - 1), unique=True))
        some = batch.part(np.array(which, np.int64))
        assert some.X[:, 0].tolist() == some.payloads == some.ids
        assert some.y == [f"k{i}" for i in some.ids or ()]
        assert some.thumbnails == [GIF] * len(which)
        assert batch.payloads == list(range(seen, seen + len(batch.X)))
        seen += len(batch.X)
    assert seen == n
