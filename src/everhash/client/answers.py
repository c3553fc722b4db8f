"""Matches, entries and reports on their way in.

An answer is not to be trusted: whatever has another form raises, and `Service.reading` says so.
"""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everhash.client.messages import BATCH, SCHEMA, messages_in
from everhash.collection.attachments import image_type
from everhash.collection.labels import LabelInfo
from everhash.index.entries import Entry
from everhash.index.refresh import RefreshReport
from everhash.matches import Explanation, Matches
from everhash.wire.ids import Id, as_id
from everhash.wire.labels import label_from_json

MOST, LARGEST = 2**31, 2**63 - 1
"""Entries that can have arrived, and how much there can be of anything else."""
SERVED = ("version", "readonly")
"""Of a service's `stats`: what a collection's own have not."""
ID_TYPES = {"int": "int64", "str": "string", "json": "string"}
COLUMNS = [
    {"query": "int32", "id": kind, "distance": "float", "label": "string", "novelty": "float"}
    for kind in ID_TYPES.values()
]
"""Of a table of matches."""


@dataclass(frozen=True, eq=False)
class Found:
    """What was found for some of the queries, one after another."""

    counts: NDArray[np.int64]
    ids: NDArray[Any]
    distances: NDArray[np.float32]
    labels: NDArray[Any]
    novelty: NDArray[np.float32]
    explanations: list[list[Explanation]]
    columns: int
    """Of the table they belong in, which may be wider than any of them is long."""


def found_in_json(answer: dict[str, Any], *, explain: bool) -> Found:
    """Read what was found for a few queries; NaN stands for a novelty that JSON cannot write."""
    matches = answer["matches"]
    found = [item for match in matches for item in match["found"]]
    return Found(
        counts=np.array([len(match["found"]) for match in matches], np.int64),
        ids=_ids([item["id"] for item in found]),
        distances=_floats([item["distance"] for item in found], np.inf),
        labels=_objects([_label(item["label"]) for item in found]),
        novelty=_floats([match["novelty"] for match in matches], np.nan),
        explanations=[_explanations(match) for match in matches] if explain else [],
        columns=whole(answer["columns"]),
    )


def found_in_table(body: bytes, n: int, k: int | None) -> Found:
    """Read what was found for many queries, at most n, a row of a table each; see `joined`."""
    table = _table(body, None if k is None else n * k)
    about = json.loads(table.schema.metadata[b"everhash"])
    queries = table.column("query").to_numpy()
    texts = table.column("label").to_pylist()
    labels = {text: None if text is None else _label(json.loads(text)) for text in set(texts)}
    novelty = np.frombuffer(base64.b64decode(about["novelty"], validate=True), "<f4")
    if not whole(about["queries"]) == len(novelty) <= n:
        raise ValueError("another number of queries")
    if (np.diff(queries) < 0).any() or queries.max(initial=0) >= len(novelty):
        raise ValueError("matches in another order, or of a query that was not asked")
    return Found(
        counts=np.bincount(queries, minlength=len(novelty)),
        ids=_id_column(table.column("id"), about["ids"]),
        distances=table.column("distance").to_numpy().astype(np.float32),
        labels=_objects([labels[text] for text in texts]),
        novelty=novelty.astype(np.float32),
        explanations=[],
        columns=whole(about["columns"]),
    )


def _table(body: bytes, most: int | None) -> Any:
    """Return a table as a service writes it: one record batch of plain columns, not compressed."""
    import pyarrow as pa

    try:
        heads = list(islice(messages_in(body), 3))
        if [head.kind for head in heads] != [SCHEMA, BATCH] or heads[1].compressed:
            raise ValueError("more than a table, or a compressed one")
        with pa.ipc.open_stream(pa.py_buffer(body)) as stream:
            kinds = {field.name: str(field.type) for field in stream.schema}
            if len(stream.schema) != len(kinds) or kinds not in COLUMNS:
                raise ValueError("other columns")
            batch = stream.read_next_batch()
        if most is not None and batch.num_rows > most:
            raise ValueError("more matches than were asked for")
        batch.validate(full=True)
    except (pa.ArrowException, OSError, struct.error) as error:
        raise ValueError(str(error)) from None
    return batch


def joined(parts: list[Found], n: int, k: int | None) -> Matches:
    """Put what was found for all n queries into one table, padded as a search pads it.

    It has at most k columns; without k, as many as were found for some query.
    """
    counts = np.concatenate([part.counts for part in parts])
    columns, longest = max(part.columns for part in parts), counts.max()
    if len(counts) != n or not longest <= columns <= (longest if k is None else k):
        raise ValueError("another number of queries or columns")
    there = np.arange(columns) < counts[:, None]
    ids = _filled(there, None, [part.ids for part in parts])
    return Matches(
        ids=ids.astype(np.int64) if _all_numbers(parts) and there.all() else ids,
        distances=_filled(there, np.float32(np.inf), [part.distances for part in parts]),
        labels=_filled(there, None, [part.labels for part in parts]),
        counts=counts,
        novelty=np.concatenate([part.novelty for part in parts]),
        explanations=[row for part in parts for row in part.explanations],
    )


def _all_numbers(parts: list[Found]) -> bool:
    return all(part.ids.dtype == np.int64 for part in parts)


def _filled(there: NDArray[np.bool_], padding: Any, columns: list[NDArray[Any]]) -> NDArray[Any]:
    """Return a table that has values where it should, row by row, and padding elsewhere."""
    table = np.full(there.shape, padding)
    table[there] = np.concatenate(columns)
    return table


def entry_of(told: dict[str, Any]) -> Entry:
    """Read an entry."""
    home, code = told["home"], told["code"]
    return Entry(
        as_id(told["id"]),
        tuple(label_from_json(label) for label in listed(told["labels"])),
        None if home is None else whole(home),
        None if code is None else _signs(code) > 0,
    )


def entries_of(told: list[Any], names: list[Id]) -> list[Entry]:
    """Read the entries that were asked for, and no others."""
    entries = [entry_of(one) for one in told]
    if [entry.id for entry in entries] != names:
        raise ValueError("other entries")
    return entries


def label_info_of(told: dict[str, Any]) -> LabelInfo:
    """Read how a label stands."""
    lessons, accuracy, codeword = told["lessons"], told["accuracy"], told["codeword"]
    return LabelInfo(
        label_from_json(told["label"]),
        whole(told["cycle"]),
        whole(told["entries"]),
        None if lessons is None else whole(lessons),
        _maybe(accuracy, most=1),
        None if codeword is None else _signs(codeword),
    )


def report_of(told: dict[str, Any]) -> RefreshReport:
    """Read what a refresh did."""
    values = {field.name: told[field.name] for field in fields(RefreshReport)}
    seconds, dry_run = number(values.pop("seconds")), flag(values.pop("dry_run"))
    counts = {name: whole(value) for name, value in values.items()}
    return RefreshReport(**counts, seconds=seconds, dry_run=dry_run)


def stats_of(told: dict[str, Any]) -> dict[str, Any]:
    """Read how a collection stands, as it says itself."""
    stats = {name: value for name, value in told.items() if name not in SERVED}
    if whole(stats["entries"]) == 0:  # a service tells what was learned, a collection does not
        stats |= {"labels": 0, "cycles": 0, "width": 0}
    return {**stats, "learned": _record_of(stats["learned"])}


def _record_of(told: dict[str, Any] | None) -> dict[str, Any] | None:
    """Read what was learned and how good the learner was; None where nobody knows."""
    if told is None:
        return None
    return {
        **{name: whole(told[name]) for name in ("rows", "published_rows", "scored_rows")},
        "accuracy": _maybe(told["accuracy"], most=1),
        "log_loss": _maybe(told["log_loss"]),
        "temperature": number(told["temperature"]),
    }


def job_of(told: dict[str, Any]) -> str:
    """Read the number of a job."""
    number = told["job"]
    if not re.fullmatch(r"[\w-]{1,64}", number, re.ASCII):
        raise ValueError("no number of a job")
    return str(number)


def picture_of(data: bytes) -> bytes:
    """Read a thumbnail."""
    if image_type(data) is None:
        raise ValueError("no picture")
    return data


def given_ids(told: Any, wanted: list[Id] | None, n: int) -> list[Id]:
    """Read the ids that n new entries have: those wanted, or any that differ."""
    ids = [as_id(value) for value in listed(told, n)]
    if len(set(ids)) != n or (wanted is not None and ids != wanted):
        raise ValueError("other ids")
    return ids


def after(least: int, told: Any) -> int | None:
    """Read where the next page starts, None after the last; it is never one that has been."""
    return None if told is None else whole(told, least, MOST)


def listed(told: Any, n: int | None = None) -> list[Any]:
    """Read a list, of n values if that is known."""
    if not isinstance(told, list) or (n is not None and len(told) != n):
        raise ValueError("no list, or one of another length")
    return told


def flag(told: Any) -> bool:
    """Read whether something is so."""
    if not isinstance(told, bool):
        raise ValueError("neither true nor false")
    return told


def number(told: Any, most: float = math.inf) -> float:
    """Read how much there is of something."""
    if type(told) not in (int, float) or not 0 <= told <= most:
        raise ValueError("no number, or one that cannot be")
    return float(told)


def _maybe(told: Any, most: float = math.inf) -> float | None:
    """Read how much there is of something, None where nobody knows."""
    return None if told is None else number(told, most)


def whole(told: Any, least: int = 0, most: int = LARGEST) -> int:
    """Read a whole number, one that counts something."""
    if type(told) is not int or not least <= told <= most:
        raise ValueError("no number, or one that cannot be")
    return told


def _explanations(match: dict[str, Any]) -> list[Explanation]:
    told = [item["explanation"] for item in match["found"]]
    return [
        Explanation(_label(why["label"]), whole(why["cycle"], -1), _signs(why["bits"]))
        for why in told
    ]


def _label(told: Any) -> Any:
    return None if told is None else label_from_json(told)


def _signs(told: Any) -> NDArray[np.int8]:
    """Read bits, of which some may be off: all are -1, 0 or 1."""
    signs = np.array(listed(told), np.int8)
    if signs.ndim != 1 or signs.tolist() != told or (abs(signs) > 1).any():
        raise ValueError("no bits")
    return signs


def _ids(told: list[Any]) -> NDArray[Any]:
    ids = [as_id(value) for value in told]
    return np.array(ids, np.int64) if all(isinstance(i, int) for i in ids) else _objects(ids)


def _id_column(column: Any, kind: str) -> NDArray[Any]:
    if str(column.type) != ID_TYPES[kind]:
        raise ValueError("ids of another type")
    if kind == "int":
        numbers: NDArray[Any] = column.to_numpy().astype(np.int64, casting="safe")
        return numbers
    values = column.to_pylist()
    return _ids([json.loads(text) for text in values] if kind == "json" else values)


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return a column, of tuples too: a list of them would become a table."""
    return np.fromiter(values, object, len(values))


def _floats(values: list[Any], missing: float) -> NDArray[np.float32]:
    return np.array([missing if value is None else value for value in values], np.float32)
