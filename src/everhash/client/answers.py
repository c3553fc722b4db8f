"""Entries, labels and reports on their way in.

An answer may be wrong: whatever has another form raises, and `Session.reading` says so.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

from numpy.typing import NDArray

from everhash.collection.attachments import image_type
from everhash.collection.labels import LabelInfo
from everhash.collection.learning import NewLabel
from everhash.index.entries import Entry
from everhash.index.refresh import RefreshReport
from everhash.wire.ids import Id, as_id
from everhash.wire.labels import label_from_json
from everhash.wire.matches import objects, read_label
from everhash.wire.values import read_count, read_flag, read_list, read_number, read_signs

MAX_ENTRIES = 2**31
"""Entries that can have arrived."""
OF_SERVICE = ("version", "readonly", "name")
"""What of a service's stats a collection's own have not."""


def entry_of(said: dict[str, Any]) -> Entry:
    """Read an entry."""
    home, code = said["home"], said["code"]
    return Entry(
        as_id(said["id"]),
        tuple(label_from_json(label) for label in read_list(said["labels"])),
        None if home is None else read_count(home),
        None if code is None else read_signs(code) > 0,
        read_label(said["guess"]),
    )


def entries_of(said: list[Any], ids: list[Id]) -> list[Entry]:
    """Read the entries that were asked for, and no others."""
    entries = [entry_of(one) for one in said]
    if [entry.id for entry in entries] != ids:
        raise ValueError("other entries")
    return entries


def label_info_of(said: dict[str, Any]) -> LabelInfo:
    """Read what is known of a label."""
    lessons, codeword = said["lessons"], said["codeword"]
    return LabelInfo(
        label_from_json(said["label"]),
        read_count(said["cycle"]),
        read_count(said["entries"]),
        None if lessons is None else read_count(lessons),
        _maybe(said["accuracy"], most=1),
        None if codeword is None else read_signs(codeword),
    )


def new_labels(said: Any) -> list[NewLabel]:
    """Read labels that were not known before."""
    return [
        NewLabel(
            label_from_json(one["label"]),
            tuple(label_from_json(near) for near in read_list(one["near"])),
        )
        for one in read_list(said)
    ]


def predicted(said: dict[str, Any], n: int) -> NDArray[Any]:
    """Read the likeliest labels of n rows, as an array of the type a collection gives them."""
    labels = objects([label_from_json(label) for label in read_list(said["labels"], n)])
    if not re.fullmatch(r"object|bool|u?int64|float64|<U\d{1,4}", said["dtype"], re.ASCII):
        raise ValueError("no type of labels")
    return labels.astype(said["dtype"])


def report_of(said: dict[str, Any]) -> RefreshReport:
    """Read what a refresh did."""
    values = {field.name: said[field.name] for field in fields(RefreshReport)}
    seconds, dry_run = read_number(values.pop("seconds")), read_flag(values.pop("dry_run"))
    counts = {name: read_count(value) for name, value in values.items()}
    return RefreshReport(**counts, seconds=seconds, dry_run=dry_run)


def stats_of(said: dict[str, Any]) -> dict[str, Any]:
    """Read the stats of a collection, as it gives them itself."""
    stats = {name: value for name, value in said.items() if name not in OF_SERVICE}
    if (
        read_count(stats["entries"]) == 0
    ):  # a service counts what was learned, a collection does not
        stats |= {"labels": 0, "cycles": 0, "width": 0}
    return {**stats, "learned": _record_of(stats["learned"])}


def _record_of(said: dict[str, Any] | None) -> dict[str, Any] | None:
    """Read what was learned and how good the learner was; None where that is not known."""
    if said is None:
        return None
    return {
        **{name: read_count(said[name]) for name in ("rows", "published_rows", "scored_rows")},
        "accuracy": _maybe(said["accuracy"], most=1),
        "accuracy_now": _maybe(said.get("accuracy_now"), most=1),
        "log_loss": _maybe(said["log_loss"]),
        "temperature": read_number(said["temperature"]),
    }


def _maybe(value: Any, most: float = float("inf")) -> float | None:
    return None if value is None else read_number(value, most)


def job_of(said: dict[str, Any]) -> str:
    """Read the number of a job."""
    number = said["job"]
    if not re.fullmatch(r"[\w-]{1,64}", number, re.ASCII):
        raise ValueError("no number of a job")
    return str(number)


def picture_of(data: bytes) -> bytes:
    """Read a thumbnail."""
    if image_type(data) is None:
        raise ValueError("no picture")
    return data


def new_ids(said: Any, given: list[Id] | None, n: int) -> list[Id]:
    """Read the ids of n new entries: those that were given, or any that differ."""
    ids = [as_id(value) for value in read_list(said, n)]
    if len(set(ids)) != n or (given is not None and ids != given):
        raise ValueError("other ids")
    return ids


def next_page(least: int, said: Any) -> int | None:
    """Read where the next page starts, None after the last; it never goes back."""
    return None if said is None else read_count(said, least, MAX_ENTRIES)
