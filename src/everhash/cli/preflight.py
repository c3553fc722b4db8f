"""Checks of all rows of all files before `everhash ingest` applies the first."""

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
class IngestPlan:
    """Which files and columns to read, and how."""

    files: list[Path]
    features: str | None
    label: str | None
    id: str | None
    payload: str | list[str] | None
    """One column of payloads, or several that become an object."""
    thumbnail: str | None
    rows: int
    resume: bool
    unlabelled: bool

    def batches(self) -> Iterator[tuple[Path, int, Batch]]:
        """Read all files; yield each batch with its file and the number of its first row there."""
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
        """Return how many rows the files have, or None if that needs reading them."""
        counts = [sources.count_rows(file) for file in self.files]
        known = [n for n in counts if n is not None]
        return sum(known) if len(known) == len(counts) else None


@dataclass
class RowCheck:
    """Raises for every row that the collection would refuse later.

    `check_batch` checks each batch, and `finish` what depends on all rows together.
    """

    collection: Collection
    plan: IngestPlan
    rows: int = 0
    _ids: set[Id] = field(default_factory=set)
    _labels: dict[Hashable, None] = field(default_factory=dict)
    _with_ids: Path | None = None
    _without_ids: Path | None = None

    def check_batch(self, file: Path, start: int, batch: Batch) -> None:
        """Raise if a row cannot be used; `start` is the number of the first row in the file."""
        try:
            as_rows(batch.X, self.collection.hasher.n_features_in_, "the collection")
            self._check_labels(start, batch)
            self._check_ids(file, batch)
            _check_attachments(start, batch)
        except NotFiniteError as error:
            raise InputError(
                f"{file}: row {start + error.row} holds NaN, infinity or a value beyond 1e37",
                hint="drop or repair the row; nothing was applied",
            ) from None
        except EverhashError as error:
            error.message = f"{file}: {error.message}"
            raise
        self.rows += len(batch.X)

    def _check_labels(self, start: int, batch: Batch) -> None:
        n = len(batch.X)
        try:
            labels = as_labels(batch.y, n)
        except LabelError as error:  # its row numbers start at the batch
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
                hint="pass --unlabelled to accept rows without a label; nothing was applied",
            )
        for label in labels.values:
            if label not in self._labels:
                label_to_json(label)
                self._labels[label] = None

    def _check_ids(self, file: Path, batch: Batch) -> None:
        if batch.ids is None:
            self._without_ids = self._without_ids or file
            return
        self._with_ids = self._with_ids or file
        ids = [as_id(value) for value in batch.ids]
        for value in ids:
            if value in self._ids:
                raise _duplicate(value, "appears twice", "give each row an id of its own")
            self._ids.add(value)
        if not self.plan.resume:
            taken = self.collection.has(ids)
            if taken.any():
                hint = "--resume skips rows whose ids are taken"
                raise _duplicate(ids[int(taken.argmax())], "is taken", hint)

    def finish(self) -> None:
        """Raise if there are too many labels, or ids in some files only."""
        self.collection.hasher.check_room(list(self._labels))
        if self._with_ids is not None and self._without_ids is not None:
            raise OptionError(
                f"{self._with_ids} has ids, {self._without_ids} has none",
                hint="ingest them with two commands",
            )


def _check_attachments(start: int, batch: Batch) -> None:
    """Raise if a payload or thumbnail is too large or of another type."""
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
