"""What a write answers, as JSON: so that the lead can remember it for those who ask again."""

from __future__ import annotations

from typing import Any

import numpy as np

import everhash.errors
from everhash.cluster.questions import Call
from everhash.collection.learning import LabelReport, NewLabel
from everhash.errors import EverhashError
from everhash.wire.labels import label_from_json, label_to_json

ADDING = ("add", "ingest", "upsert")


def written_answer(call: Call, result: Any) -> Any:
    """Return the answer of a call as JSON; ids that were given need not be told."""
    if call.name in ADDING:
        given = _given_ids(call) is not None
        return {"n": len(result), "first": None if given or not result else result[0]}
    if isinstance(result, LabelReport):
        new = [[label_to_json(one.label), [*map(label_to_json, one.near)]] for one in result.new]
        return {"labelled": result.labelled, "new": new}
    return result


def read_answer(call: Call, answer: Any) -> Any:
    """Return what a call returns, given its answer; ids that were given are not told again."""
    if call.name in ADDING:
        first = answer["first"]
        return None if first is None else list(range(first, first + answer["n"]))
    if call.name == "label":
        new = tuple(
            NewLabel(label_from_json(label), tuple(map(label_from_json, near)))
            for label, near in answer["new"]
        )
        return LabelReport(answer["labelled"], new)
    return answer


def to_json(answer: Any) -> Any:
    """Return an answer as a file holds it: JSON also if the write was refused."""
    if isinstance(answer, EverhashError):
        values = {name: _plain(value) for name, value in vars(answer).items()}
        args = [_plain(value) for value in answer.args]
        return {"refused": type(answer).__name__, "args": args, "values": values}
    return {"answer": answer}


def _plain(value: Any) -> Any:
    """Return what an error carries as JSON has it: a text, or a number."""
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | None) else str(value)


def from_json(about: dict[str, Any]) -> Any:
    """Return an answer, or an error, that a file holds."""
    if "refused" not in about:
        return about["answer"]
    kind: type[EverhashError] = getattr(everhash.errors, about["refused"])
    error = kind.__new__(kind)
    error.args = tuple(about["args"])
    vars(error).update(about["values"])
    return error


def _given_ids(call: Call) -> Any:
    """Return the ids that a call gives to its entries."""
    if "ids" in call.options:
        return call.options["ids"]
    place = {"add": 1, "upsert": 1, "ingest": 2}[call.name]
    return call.arguments[place] if len(call.arguments) > place else None
