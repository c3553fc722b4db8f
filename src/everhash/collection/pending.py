"""What a call has done in memory, on its way to the file."""

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
from everhash.store.store import Store


@dataclass
class Pending:
    """What a call has done to hasher and index, to be written down."""

    lesson: Lesson | None = None
    new_labels: int = 0
    change: LabelChange | None = None
    coded: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    refreshed: RefreshReport | None = None
    attached: Blobs = field(default_factory=dict)


def write_down(store: Store, recorder: Recorder, pending: Pending, *, whole: bool) -> None:
    """Write all of it to the file in one transaction; `whole` as for `Recorder.write_hasher`."""
    with store.transaction() as change:
        recorder.write_hasher(change, pending.lesson, pending.new_labels, whole=whole)
        recorder.write_mapping(change)
        if pending.change is not None and len(pending.change.places):
            recorder.write_change(change, pending.change, pending.coded)
        recorder.write_entries(change)
        change.attach(pending.attached)
        if pending.refreshed is not None:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            change.about["refreshed"] = {"at": when, **asdict(pending.refreshed)}
