"""Checks of all rows of all files before `everhash ingest` applies the first."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from everhash import sources
from everhash.cli.inputs import shown, wrong_width
from everhash.collection.api import CollectionApi
from everhash.collection.attachments import pictured, written
from everhash.collection.collection import Collection
from everhash.errors import (
    DimensionError,
    DuplicateIdError,
    EverhashError,
    InputError,
    LabelError,
    NotFiniteError,
    OptionError,
)
from everhash.sources import Batch, Taken
from everhash.stream import as_labels, as_rows
from everhash.wire.ids import Id, as_id
from everhash.wire.labels import label_to_json


@dataclass(frozen=True)
class IngestPlan:
    """Which files and columns to read, and how."""

    files: list[Path]
    columns: dict[str, Any]
    """The columns that were named, as arguments of `read`."""
    batch_rows: int
    resume: bool
    learn: bool

    @cached_property
    def taken(self) -> dict[Path, Taken | None]:
        """The columns that are read of each file; None where there are none to choose from."""
        return {file: sources.infer(file, **self.columns) for file in self.files}

    @cached_property
    def has_ids(self) -> bool:
        """Whether all files have ids."""
        return all(taken is not None and taken.choice.id for taken in self.taken.values())

    def found(self) -> list[str]:
        """Return a line for each set of columns that were taken without being named."""
        lines: dict[str, list[Path]] = {}
        for file, taken in self.taken.items():
            if taken is not None and not self._named_all(taken):
                lines.setdefault(str(taken), []).append(file)
        more = {text: f" and {len(files) - 1} more" for text, files in lines.items() if files[1:]}
        return [f"{shown(files[0])}{more.get(text, '')}: {text}" for text, files in lines.items()]

    def _named_all(self, taken: Taken) -> bool:
        used = taken.choice._asdict() | {"features": "some"}
        return all(self.columns[use] is not None for use, name in used.items() if name)

    def batches(self) -> Iterator[tuple[Path, int, Batch]]:
        """Read all files; yield each batch with its file and the number of its first row there."""
        for file in self.files:
            start = 0
            for batch in sources.read(file, **self.columns, batch_rows=self.batch_rows):
                yield file, start, batch
                start += len(batch.X)

    def dim(self) -> int:
        """Return how many features the first row has."""
        for _, _, batch in self.batches():
            return int(batch.X.shape[1])
        raise InputError(
            "there are no rows, so nothing says how many features a row has",
            hint="name a file with rows, or use everhash create --dim",
        )

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

    collection: CollectionApi
    plan: IngestPlan
    name: str
    """What the collection is called, for messages."""
    rows: int = 0
    _ids: set[Id] = field(default_factory=set)
    _labels: dict[Hashable, None] = field(default_factory=dict)
    _with_ids: Path | None = None
    _without_ids: Path | None = None

    @cached_property
    def _dim(self) -> int:
        return int(self.collection.stats()["dim"])

    def check_batch(self, file: Path, start: int, batch: Batch) -> None:
        """Raise if a row cannot be used; `start` is the number of the first row in the file."""
        try:
            as_rows(batch.X, self._dim, "the collection")
            self._check_labels(start, batch)
            self._check_ids(file, batch)
            _check_attachments(start, batch)
        except NotFiniteError as error:
            raise InputError(
                f"{file}: row {start + error.row} holds NaN, infinity or a value beyond 1e37",
                hint="drop or repair the row; nothing was applied",
            ) from None
        except DimensionError as error:
            raise wrong_width(error, file, self.plan.taken[file], self.name) from None
        except EverhashError as error:
            error.message_template = f"{file}: {error.message_template}"
            raise
        self.rows += len(batch.X)

    def _check_labels(self, start: int, batch: Batch) -> None:
        n = len(batch.X)
        try:
            labels = as_labels(batch.y, n)
        except LabelError as error:  # its row numbers start at the batch
            if start:
                error.message_template = f"rows from {start} on: {error.message_template}"
            raise
        if batch.y is None and self.plan.learn and self.plan.columns["label"] is None:
            hint = "name their column with --label, or pass --no-learn to add rows without labels"
            raise LabelError("there is no column of labels to learn from", hint=hint)
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
        if isinstance(self.collection, Collection):  # a service looks at each batch by itself
            self.collection.hasher.check_room(list(self._labels))
        if self._with_ids is not None and self._without_ids is not None:
            raise mixed_ids(self._with_ids, self._without_ids)


def mixed_ids(having: Path, without: Path) -> OptionError:
    """Return the error for files of which only some have ids."""
    return OptionError(
        f"{having} has ids, {without} has none", hint="ingest them with two commands"
    )


def _check_attachments(start: int, batch: Batch) -> None:
    """Raise if a payload or thumbnail is too large or of another type."""
    try:
        for row, payload in enumerate(batch.payloads or (), start):
            written(payload, f"row {row}: the payload")
        for row, thumbnail in enumerate(batch.thumbnails or (), start):
            pictured(thumbnail, f"row {row}: the thumbnail")
    except InputError as error:
        error.hint_template += "; nothing was applied"
        raise


def _duplicate(value: Any, problem: str, hint: str) -> DuplicateIdError:
    error = DuplicateIdError(value)
    error.message_template = f"id {value!r} {problem}"
    error.hint_template = f"{hint}; nothing was applied"
    return error
