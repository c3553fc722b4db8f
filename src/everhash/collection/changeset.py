"""What a call has changed in memory and must write to the file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from everhash.collection.attachments import Blobs
from everhash.collection.formats import Lesson
from everhash.collection.recorder import Recorder
from everhash.index.records import LabelChange
from everhash.index.refresh import RefreshReport
from everhash.store.transaction import Transaction


@dataclass
class Changeset:
    """What a call has changed in hasher and index. New entries need no mention."""

    whole: bool
    """The hasher has learned more than the lesson, and must be written whole."""
    lesson: Lesson | None = None
    new_labels: int = 0
    change: LabelChange | None = None
    coded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    """Places in `change` whose entries had bits of their own before."""
    refreshed: RefreshReport | None = None
    attached: Blobs = field(default_factory=dict)


def write_changeset(transaction: Transaction, recorder: Recorder, changes: Changeset) -> None:
    """Write to the file what a call has changed, and what else memory has that the file lacks."""
    recorder.write_hasher(transaction, changes.lesson, changes.new_labels, whole=changes.whole)
    recorder.write_mapping(transaction)
    if changes.change is not None and len(changes.change.places):
        recorder.write_change(transaction, changes.change, changes.coded)
    recorder.write_entries(transaction)
    transaction.attach(changes.attached)
    if changes.refreshed is not None:
        when = datetime.now(UTC).isoformat(timespec="seconds")
        transaction.about["refreshed"] = {"at": when, **asdict(changes.refreshed)}
