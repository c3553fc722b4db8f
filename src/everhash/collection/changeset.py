"""What a call has changed in memory and must write to the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import Blobs
from everhash.collection.formats import Lesson, current_options
from everhash.collection.recorder import Recorder
from everhash.index.export import LabelChange
from everhash.index.refresh import RefreshReport
from everhash.learn.following import Solved
from everhash.store.transaction import Transaction

NOWHERE = np.empty(0, np.int64)


@dataclass
class Changeset:
    """What a call has changed in hasher and index. New entries need no mention."""

    whole: bool
    """The hasher has learned more than the lessons, and must be written whole."""
    lessons: list[Lesson | Solved] = field(default_factory=list)
    new_labels: int = 0
    changes: list[LabelChange] = field(default_factory=list)
    codes_lost: NDArray[np.int64] = field(default_factory=lambda: NOWHERE)
    """Places of entries that had bits of their own before, and have none now."""
    codes_gained: NDArray[np.int64] = field(default_factory=lambda: NOWHERE)
    """Places of old entries that have bits of their own now, ascending."""
    compact: bool = False
    """Whether to drop the places of removed entries."""
    refreshed: RefreshReport | None = None
    attached: Blobs = field(default_factory=dict)
    also: Callable[[Transaction], None] | None = None
    """Writes what a shard has besides; see `everhash.cluster`."""


def write_changeset(transaction: Transaction, recorder: Recorder, changes: Changeset) -> None:
    """Write to the file what a call has changed, and what else memory has that the file lacks."""
    transaction.about["options"] = current_options(transaction.about["options"])
    recorder.write_hasher(transaction, changes.lessons, changes.new_labels, whole=changes.whole)
    recorder.write_mapping(transaction)
    recorder.write_likeness(transaction)
    for change in changes.changes:
        if len(change.places):
            recorder.write_change(transaction, change)
    recorder.write_code_changes(transaction, changes.codes_gained, changes.codes_lost)
    recorder.write_entries(transaction)
    recorder.write_cells(transaction)
    transaction.attach(changes.attached)
    if changes.also is not None:
        changes.also(transaction)
    if changes.compact:
        recorder.compact(transaction)
    if changes.refreshed is not None:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        transaction.about["refreshed"] = {"at": when, **asdict(changes.refreshed)}
