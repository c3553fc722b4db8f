"""Looking at all rows of all sources before the first of them is applied."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from everhash import sources
from everhash.collection.attachments import pictured, written
from everhash.collection.collection import Collection
from everhash.errors import (
    DuplicateIdError,
    EverhashError,
    InputError,
    LabelError,
    NotFiniteError,
    OptionError,
)
from everhash.sources import Batch
from everhash.stream import as_labels, as_rows
from everhash.wire.ids import Id, as_id
from everhash.wire.labels import label_to_json


@dataclass(frozen=True)
class Plan:
    """What to read, and how."""

    files: list[Path]
    features: str | None
    label: str | None
    id: str | None
    payload: str | list[str] | None
    """The column whose values entries carry, or several of which they carry an object."""
    thumbnail: str | None
    rows: int
    resume: bool
    unlabelled: bool

    def batches(self) -> Iterator[tuple[Path, int, Batch]]:
        """Read all files: each batch with its file and the number of its first row there."""
        for file in self.files:
            start = 0
            for batch in sources.read(
                file,
                features=self.features,
                label=self.label,
                id=self.id,
                payload=self.payload,
                thumbnail=self.thumbnail,
                rows=self.rows,
            ):
                yield file, start, batch
                start += len(batch.X)

    def count(self) -> int | None:
        """Return how many rows there are, or None where only reading them would tell."""
        counts = [sources.count_rows(file) for file in self.files]
        known = [n for n in counts if n is not None]
        return sum(known) if len(known) == len(counts) else None


@dataclass
class Check:
    """Refuses whatever a collection would refuse in the middle of it.

    Rows are looked at batch by batch, and `finish` at what only all of them together can show.
    """

    collection: Collection
    plan: Plan
    rows: int = 0
    _ids: set[Id] = field(default_factory=set)
    _labels: dict[Hashable, None] = field(default_factory=dict)
    _with_ids: Path | None = None
    _without_ids: Path | None = None

    def look(self, file: Path, start: int, batch: Batch) -> None:
        """Look at a batch; `start` is the number of its first row in the file."""
        try:
            as_rows(batch.X, self.collection.hasher.n_features_in_, "the collection")
            self._look_at_labels(start, batch)
            self._look_at_ids(file, batch)
            _look_at_carried(start, batch)
        except NotFiniteError as error:
            raise InputError(
                f"{file}: row {start + error.row} holds NaN, infinity or a value beyond 1e37",
                hint="drop or repair the row; nothing was applied",
            ) from None
        except EverhashError as error:
            error.message = f"{file}: {error.message}"
            raise
        self.rows += len(batch.X)

    def _look_at_labels(self, start: int, batch: Batch) -> None:
        n = len(batch.X)
        try:
            labels = as_labels(batch.y, n)
        except LabelError as error:  # it counts the rows of the batch
            error.message = f"rows from {start} on: {error.message}" if start else error.message
            raise
        has_label = np.zeros(n, np.bool_)
        has_label[labels.rows] = True
        if not has_label.all() and not self.plan.unlabelled:
            if batch.y is None:
                raise LabelError(
                    "no labels", hint="name their column with --label, or pass --unlabelled"
                )
            raise LabelError(
                f"row {start + int(has_label.argmin())} has no label",
                hint="pass --unlabelled if rows may come without; nothing was applied",
            )
        for label in labels.values:
            if label not in self._labels:
                label_to_json(label)
                self._labels[label] = None

    def _look_at_ids(self, file: Path, batch: Batch) -> None:
        if batch.ids is None:
            self._without_ids = self._without_ids or file
            return
        self._with_ids = self._with_ids or file
        ids = [as_id(value) for value in batch.ids]
        for value in ids:
            if value in self._ids:
                raise _duplicate(value, "stands twice", "give each row an id of its own")
            self._ids.add(value)
        if not self.plan.resume:
            taken = self.collection.has(ids)
            if taken.any():
                hint = "ids are never used again; --resume skips rows whose ids are there"
                raise _duplicate(ids[int(taken.argmax())], "is taken", hint)

    def finish(self) -> None:
        """Look at what only all rows together can show."""
        self.collection.hasher.check_room(list(self._labels))
        if self._with_ids is not None and self._without_ids is not None:
            raise OptionError(
                f"{self._with_ids} has ids, {self._without_ids} has none",
                hint="ingest them one after the other",
            )


def _look_at_carried(start: int, batch: Batch) -> None:
    """Refuse payloads and thumbnails that an entry may not carry."""
    try:
        for row, payload in enumerate(batch.payloads or (), start):
            if payload is not None:
                written(payload, f"row {row}: the payload")
        for row, thumbnail in enumerate(batch.thumbnails or (), start):
            if thumbnail is not None:
                pictured(thumbnail, f"row {row}: the thumbnail")
    except InputError as error:
        error.hint += "; nothing was applied"
        raise


def _duplicate(value: Any, problem: str, hint: str) -> DuplicateIdError:
    error = DuplicateIdError(value)
    error.message, error.hint = f"id {value!r} {problem}", f"{hint}; nothing was applied"
    return error
