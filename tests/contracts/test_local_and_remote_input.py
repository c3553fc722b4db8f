"""Input in the forms people have it is taken alike here and by a service."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from everhash.errors import EverhashError
from tests.contracts.twins import ALL, PROBES, TRUTH, Twins, assert_same, make_twins

__all__ = ["make_twins"]  # pytest finds the fixture by its name here

N = 40
LABELS: list[Any] = [None if i % 5 == 0 else f"digit {label}" for i, label in enumerate(TRUTH[:N])]


def test_a_data_frame_is_learned_as_its_plain_lists_are(twins: Twins) -> None:
    frame = pd.DataFrame({"embedding": list(ALL[:N]), "kind": pd.Series(LABELS, dtype="category")})
    twins.both("ingest", frame["embedding"], frame["kind"], pd.Series(range(N)))
    learned = twins.both("search", pd.Series(PROBES[:5].tolist()), 10)
    twins.both("remove", range(N))
    twins.both("forget", pa.array(ALL[:N].tolist()), pa.array(LABELS))
    twins.both("ingest", ALL[:N].tolist(), LABELS, list(range(N)))
    again = twins.both("search", PROBES[:5].tolist(), 10)
    assert_same(again.ids, learned.ids)
    assert_same(again.labels, learned.labels)


def test_one_label_and_one_id_are_taken_where_lists_are(twins: Twins) -> None:
    twins.both("ingest", ALL[:N], LABELS, [f"sku-{i}" for i in range(N)])
    label = next(each for each in LABELS if each)
    for options in ({"labels": label}, {"ids": "sku-17"}):
        wrapped: dict[str, Any] = {name: [value] for name, value in options.items()}
        for call in ("search", "search_radius"):
            assert_same(
                twins.both(call, PROBES[:2], 3, **options),
                twins.both(call, PROBES[:2], 3, **wrapped),
            )
    assert_same(twins.both("search_like", "sku-17", 3), twins.both("search_like", ["sku-17"], 3))
    assert twins.both("has", "sku-17").tolist() == [True]
    assert [entry.id for entry in twins.both("get", "sku-17")] == ["sku-17"]
    twins.both("attach", "sku-17", payloads=["text"])
    assert [each.payload for each in twins.both("attachments", "sku-17")] == ["text"]
    assert twins.both("label", "sku-17", "boots").labelled == 1
    assert twins.both("label", ["sku-1", "sku-2"], "boots").labelled == 2
    assert [entry.labels for entry in twins.both("get", ["sku-1", "sku-2"])] == [("boots",)] * 2
    assert twins.both("unlabel", "sku-1") == 1
    assert twins.both("remove", "sku-1") == 1
    assert twins.both("upsert", ALL[:1], 7, ["boots"]) == [7]
    assert twins.both("remove", 7) == 1
    assert isinstance(twins.both("search", PROBES[:1], labels="nobody"), EverhashError)
    assert isinstance(twins.both("ingest", ALL[:2], "ab"), EverhashError)


def test_payloads_come_back_as_plain_values(twins: Twins) -> None:
    payloads = [
        {"price": Decimal("12.50"), "on": date(2024, 5, 1), "n": np.int64(3), "gap": pd.NA},
        (np.float32(0.1), pd.Timestamp("2024-05-01", tz="UTC")),
        float("nan"),
    ]
    ids = ["a", "b", "c"]
    twins.both("add", ALL[:3], ids, payloads=payloads)
    assert [each.payload for each in twins.both("attachments", ids)] == [
        {"price": "12.50", "on": "2024-05-01", "n": 3, "gap": None},
        [0.1, "2024-05-01T00:00:00Z"],
        None,
    ]
    twins.both("attach", ids, payloads=pd.Series([1.5, None, 2]))
    assert [each.payload for each in twins.both("attachments", ids)] == [1.5, None, 2]
