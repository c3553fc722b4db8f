"""What a write was answered is the same when a file is asked again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from everhash import errors
from everhash.cluster.answers import from_json, read_answer, to_json, written_answer
from everhash.cluster.questions import Call
from everhash.collection.learning import LabelReport, NewLabel
from everhash.errors import EverhashError
from tests.contracts.twins import assert_same


def through_a_file(answer: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(answer))))


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (Call("remove", ([1],), {}), 1),
        (Call("learn", (None,), {}), None),
        (Call("add", (None,), {}), [7, 8, 9]),
        (Call("ingest", (None, None, None), {}), [0]),
        (Call("label", ([1], ["a"]), {}), LabelReport(1, ())),
        (
            Call("label", ([1, 2], None), {"teach": False}),
            LabelReport(2, (NewLabel(("a", 1), (b"raw", 2.5, True)), NewLabel("b", ()))),
        ),
    ],
)
def test_answers_come_back_as_they_were(call: Call, result: Any) -> None:
    assert_same(read_answer(call, through_a_file(written_answer(call, result))), result)


def test_ids_that_were_given_are_not_told_again() -> None:
    for call in (
        Call("add", (None, ["a", "b"]), {}),
        Call("ingest", (None,), {"ids": ["a", "b"]}),
        Call("upsert", (None, ["a", "b"]), {}),
    ):
        told = through_a_file(written_answer(call, ["a", "b"]))
        assert "a" not in str(told)
        assert read_answer(call, told) is None


KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, EverhashError)
]
MADE: dict[str, dict[str, Any]] = {
    "DimensionError": {"expected": 3, "got": 4},
    "NotFiniteError": {"row": 2},
    "StaleCodesError": {"expected": 3, "got": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_come_back_with_all_they_carry(kind: type[EverhashError]) -> None:
    name = kind.__name__
    if name in MADE:
        error = kind(**MADE[name])
    elif name == "NotFittedError":
        error = kind()  # type: ignore[call-arg]
    else:
        error = kind("text é")
    again = through_a_file(error)
    assert_same(again, error)
    assert isinstance(again, kind)


def test_a_refusal_with_a_number_of_numpy_is_kept() -> None:
    assert through_a_file(errors.NotFiniteError(row=np.int64(3))).row == 3  # type: ignore[arg-type]
