"""What a write was answered is the same when a file is asked again."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from everhash import errors
from everhash.cluster.answers import REFUSALS, from_json, read_answer, to_json, written_answer
from everhash.cluster.questions import Call
from everhash.collection.learning import LabelReport, NewLabel
from everhash.errors import CollectionFileError, EverhashError
from everhash.store.parts import PartKey
from tests.contracts.twins import assert_same

HERE = PartKey("answer", 7)


def through_a_file(answer: Any) -> Any:
    return from_json(json.loads(json.dumps(to_json(answer))), HERE)


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


MADE: dict[str, dict[str, Any]] = {
    "LabelConflictError": {"value": "a", "has": ["x"], "expected": []},
    "DimensionError": {"expected": 3, "got": 4},
    "NotFiniteError": {"row": 2},
    "StaleCodesError": {"expected": 3, "got": 4},
}


@pytest.mark.parametrize("kind", REFUSALS.values())
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


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        (errors.LockedError, errors.StoreError),
        (errors.DiskFullError, errors.StoreError),
        (errors.ServiceError, EverhashError),
        (errors.ModelFileError, EverhashError),
    ],
)
def test_an_error_that_no_write_is_refused_with_is_kept_as_its_base(
    kind: type[EverhashError], kept: type[EverhashError]
) -> None:
    again = through_a_file(kind("text", hint="do"))
    assert type(again) is kept
    assert str(again) == "text (do)"


REFUSED = to_json(errors.UnknownIdError("x"))


@pytest.mark.parametrize(
    "forged",
    [
        None,
        [],
        {},
        {"answer": [1]},
        {"answer": True, "more": 1},
        {"answer": {"n": -1, "first": 0}},
        {"answer": {"n": 2**80, "first": 0}},
        {"answer": {"n": 1, "first": "x"}},
        {"answer": {"labelled": 1, "new": [["a"]]}},
        {**REFUSED, "refused": "Any"},
        {**REFUSED, "refused": "told"},
        {**REFUSED, "refused": "__builtins__"},
        {**REFUSED, "refused": "EXIT_CODES"},
        {**REFUSED, "refused": "CodebookWarning"},
        {**REFUSED, "refused": ["UnknownIdError"]},
        {**REFUSED, "refused": "DimensionError"},
        {**REFUSED, "args": "text"},
        {**REFUSED, "args": [[]]},
        {**REFUSED, "values": {**REFUSED["values"], "__class__": "x"}},
        {**REFUSED, "values": {**REFUSED["values"], "id": {}}},
        {**REFUSED, "values": {**REFUSED["values"], "hint_template": 7}},
        {**REFUSED, "values": {}},
    ],
    ids=str,
)
def test_a_forged_answer_is_refused(forged: Any) -> None:
    with pytest.raises(CollectionFileError, match="answer 7"):
        from_json(forged, HERE)
