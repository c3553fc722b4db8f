"""What entries teach: rows to learn and to forget, as the file will hold them."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everhash.collection.changeset import Changeset
from everhash.collection.formats import Lesson
from everhash.errors import OptionError, UnknownNameError
from everhash.index.features import StoredFeatures
from everhash.index.index import Index
from everhash.learn.hasher import OnlineHasher
from everhash.learn.stream_hasher import StreamHasher
from everhash.stream import Labels, as_rows
from everhash.wire.labels import label_to_json

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]

ALIKE = 0.75
"""How alike two names must be to be called near; see `difflib.get_close_matches`."""


@dataclass(frozen=True)
class NewLabel:
    """A label that was not known before."""

    label: Hashable
    near: tuple[Hashable, ...]
    """Known labels with nearly the same name."""

    def __str__(self) -> str:
        near = f": known ones are near: {', '.join(map(str, self.near))}" if self.near else ""
        return f"new label {self.label!r}{near}"


@dataclass(frozen=True)
class LabelReport:
    """What a call of `label` did."""

    labelled: int
    """Entries that have their new labels."""
    new: tuple[NewLabel, ...]
    """Labels that were not known before, each with known ones of nearly the same name."""


def rounded(X: ArrayLike, hasher: StreamHasher) -> Floats:
    """Return rows as a collection learns them: in half precision, as it would store them.

    So an entry can be forgotten exactly by its stored features, or by the row it came from.
    """
    rows = as_rows(X, hasher.n_features_in_, "this collection")
    return StoredFeatures.of(rows).rows


def new_labels(hasher: StreamHasher, labels: Labels) -> list[Hashable]:
    """Return labels never seen before; raise if one cannot be written to the file."""
    new = hasher.unknown(labels.values)
    for label in new:
        label_to_json(label)
    return new


def refuse_new(hasher: StreamHasher, new: list[Hashable]) -> None:
    """Raise if there is a label never seen before: it may be a misspelt one."""
    for label in new:
        known = [name for name in hasher.labels_ if name is not None]
        raise unknown_label(label, known, "{say new label}; nothing was changed")


def unknown_label(label: Hashable, known: Iterable[Hashable], hint: str) -> UnknownNameError:
    """Return the error for a label that has not been seen, with known ones that are near."""
    near = near_labels(label, known)
    hint = f"known ones are near: {', '.join(map(str, near))}; {hint}" if near else hint
    return UnknownNameError(f"label {label!r} has not been seen", hint=hint)


def announced(hasher: StreamHasher, new: list[Hashable]) -> tuple[NewLabel, ...]:
    """Return new labels with the known ones that have nearly the same name."""
    known = [label for label in hasher.labels_ if label is not None] if new else []
    return tuple(NewLabel(label, near_labels(label, known)) for label in new)


def near_labels(label: Hashable, known: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return those of the known labels that have nearly the same name, the nearest first.

    >>> near_labels("shoos", ["boots", "shoes"])
    ('shoes',)
    """
    names = {str(one): one for one in known}
    return tuple(names[n] for n in difflib.get_close_matches(str(label), names, cutoff=ALIKE))


def codeword_lesson(hasher: StreamHasher, new: list[Hashable]) -> Lesson:
    """Return the lesson, without rows, that gives new labels their codewords."""
    rows, nothing = np.empty((0, hasher.n_features_in_), np.float32), np.empty(0, np.int64)
    return Lesson(rows, Labels(new, nothing, nothing))


def can_forget(hasher: StreamHasher) -> bool:
    """Whether rows can be taken back exactly."""
    return isinstance(hasher, OnlineHasher) and hasher.learner == "exact"


def labels_of(index: Index, places: Counts) -> Labels:
    """Return the labels that entries have, as if they were given again."""
    at, numbers = index.label_pairs(places)
    distinct, which = np.unique(numbers, return_inverse=True)
    names = index.hasher.labels_
    return Labels([names[number] for number in distinct.tolist()], at, which.astype(np.int64))


def taught_lesson(index: Index, places: Counts) -> Lesson | None:
    """Return what the entries at these places have taught, to be forgotten; None if nothing.

    Raises if a row that was learned is not kept: it could not be forgotten. Entries without a label
    have taught too, where such rows help (`learn_unlabelled`); those whose features are not kept
    go on helping.
    """
    if not can_forget(index.hasher):  # type: ignore[arg-type]
        return None
    taught = np.sort(places[index.taught_column[places]])
    kept = index.with_features(taught)
    if len(kept) < len(taught):
        name = index.names_at(np.setdiff1d(taught, kept)[:1]).tolist()[0]
        raise OptionError(
            f"entry {name!r} has taught its label, and its features are not kept: what it has "
            "taught cannot be unlearned",
            hint="{option teach=False} changes the entry and leaves what was learned",
        )
    if helped_by_unlabelled(index.hasher):
        taught = np.union1d(taught, index.with_features(index.coded_among(places)))
    if len(taught) == 0:
        return None
    return Lesson(index.features_at(taught), labels_of(index, taught), True, taught)


def helped_by_unlabelled(hasher: object) -> bool:
    """Whether rows without a label help a hasher."""
    return isinstance(hasher, OnlineHasher) and hasher.learn_unlabelled == "auto"


def learned_again(index: Index, places: Counts) -> Lesson | None:
    """Return what those of these entries that teach would teach with the labels they have now."""
    lesson = taught_lesson(index, places)
    return None if lesson is None else lesson._replace(forget=False)


def study(hasher: StreamHasher, changes: Changeset, lesson: Lesson | None) -> None:
    """Learn or forget a lesson, and note it for the file."""
    if lesson is None or len(lesson.rows) == 0:
        return
    if lesson.forget:
        hasher.forget_rows(lesson.rows, lesson.labels)
    else:
        hasher.learn_rows(lesson.rows, lesson.labels)
    changes.lessons.append(lesson)
