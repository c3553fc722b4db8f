"""What a write answers, as JSON: so that the lead can remember it for those who ask again."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash import errors
from everhash.cluster.questions import Call
from everhash.collection.learning import LabelReport, NewLabel
from everhash.collection.part_arrays import require
from everhash.errors import EverhashError
from everhash.store.parts import PartKey
from everhash.wire.labels import label_from_json, label_to_json

ADDING = ("add", "ingest", "upsert")
REFUSALS: dict[str, type[EverhashError]] = {
    kind.__name__: kind
    for kind in (
        errors.EverhashError,
        errors.InputError,
        errors.FeatureTypeError,
        errors.DimensionError,
        errors.NotFiniteError,
        errors.LabelError,
        errors.OptionError,
        errors.IdError,
        errors.DuplicateIdError,
        errors.LabelConflictError,
        errors.StaleCodesError,
        errors.LimitError,
        errors.TooLargeError,
        errors.UnknownNameError,
        errors.UnknownIdError,
        errors.NotFittedError,
        errors.NotOnlineError,
        errors.CollectionFileError,
        errors.StoreError,
    )
}
"""What a write may be refused with; a file names no other class. Others are kept as their base."""
TEMPLATES = ("message_template", "hint_template")


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
        kind = next(one for one in type(answer).__mro__ if one.__name__ in REFUSALS)
        names = (*TEMPLATES, *getattr(kind, "carries", ()))
        values = {name: _plain(getattr(answer, name)) for name in names}
        args = [_plain(value) for value in answer.args]
        return {"refused": kind.__name__, "args": args, "values": values}
    return {"answer": answer}


def _plain(value: Any) -> Any:
    """Return what an error carries as JSON has it: a text, or a number."""
    if isinstance(value, np.generic):
        return value.item()
    return value if _is_plain(value) else str(value)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | None)


def from_json(about: Any, key: PartKey) -> Any:
    """Return an answer, or an error, that a part of a file holds."""
    require(isinstance(about, dict), key, "no answer")
    if set(about) == {"answer"}:
        answer = about["answer"]
        require(answer is None or type(answer) is int or _is_report(answer), key, "no answer")
        return answer
    require(set(about) == {"refused", "args", "values"}, key, "neither answered nor refused")
    name, args, values = about["refused"], about["args"], about["values"]
    kind = REFUSALS.get(name) if isinstance(name, str) else None
    require(kind is not None, key, f"refused with {name!r:.40}, which is no error of a write")
    assert kind is not None  # noqa: S101 - for the type checker; `require` has raised
    carried = isinstance(args, list) and isinstance(values, dict)
    carried = carried and set(values) == {*TEMPLATES, *kind.carries}
    carried = carried and all(map(_is_plain, [*args, *values.values()]))
    require(carried, key, f"it is not what a {name} carries")
    require(all(isinstance(values[one], str) for one in TEMPLATES), key, "refused without a text")
    error = kind.__new__(kind)
    error.args = tuple(args)
    vars(error).update(values)
    return error


REPORTS = ({"n", "first"}, {"labelled", "new"}, {"shards"}, {"moved", "done"}, {"entries"})
"""What answers tell that are more than a number."""


def _is_report(answer: Any) -> bool:
    """Whether an answer has the fields of one, and counts that are counts."""
    if not isinstance(answer, dict) or set(answer) not in REPORTS:
        return False
    new = answer.get("new", [])
    counts = [value for name, value in answer.items() if name not in ("new", "first")]
    first = answer.get("first")
    pairs = isinstance(new, list) and all(
        isinstance(one, list) and len(one) == 2 and isinstance(one[1], list) for one in new
    )
    counted = all(isinstance(count, int) and 0 <= count <= 2**62 for count in counts)
    return counted and pairs and (first is None or type(first) is int)


def _given_ids(call: Call) -> Any:
    """Return the ids that a call gives to its entries."""
    if "ids" in call.options:
        return call.options["ids"]
    place = {"add": 1, "upsert": 1, "ingest": 2}[call.name]
    return call.arguments[place] if len(call.arguments) > place else None
