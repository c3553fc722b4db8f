"""The collection: hasher, index and file behind one small interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everhash.collection.attachments import (
    AttachmentColumns,
    Blobs,
    as_blobs,
    at_places,
    blobs_at,
    cleared_at,
)
from everhash.collection.formats import Lesson
from everhash.collection.label_calls import LabelCalls
from everhash.collection.learning import (
    codeword_lesson,
    labels_of,
    new_labels,
    rounded,
    study,
    taught_lesson,
)
from everhash.collection.writing import WriteCall
from everhash.errors import InputError
from everhash.index.arrays import Bools, Counts
from everhash.index.export import LabelChange
from everhash.index.stored import CheckedEntries
from everhash.stream import Labels, as_labels
from everhash.wire.ids import Id


class Collection(LabelCalls):
    """Entries that keep coming, the hasher that codes them, and the file that keeps both.

    Every call that changes something is one transaction: when it returns, the file has it; when it
    raises, or the process dies, neither file nor memory has any of it. One process writes; others
    read with `open(path, readonly=True)`, each from the state the file had when it was opened or
    last caught up. Calls that read more from the file make them catch up first, so that all of an
    answer is of one state.

    Threads may share a collection. Calls that change something take turns. Searches and other calls
    that only need memory do not wait for the disk: while a commit is being made durable they go on,
    and see its changes already. If it fails, the writing call raises and memory is read again from
    the file, so what they saw may be gone. Calls that read the file wait for the commit, and so do
    those that must not see anything change: `attachments`, `features`, searches with
    `payloads=True`, `page` and `entries` with a text, `held`, `catch_up`, `close`, `snapshot` of a
    collection in memory, and searches that need features which nobody has read yet.

    `create` and `open` make collections.
    """

    def learn(self, X: ArrayLike, y: Any = None) -> None:
        """Move the mapping by rows and their labels; index nothing."""
        with self._writing() as call:
            hasher = call.state.hasher
            rows = rounded(X, hasher)
            labels = as_labels(y, len(rows))
            hasher.check_room(labels.values)
            new = new_labels(hasher, labels)
            changes = call.begin()
            changes.new_labels = len(new)
            study(hasher, changes, Lesson(rows, labels))

    def forget(self, X: ArrayLike, y: Any) -> None:
        """Take back rows that were learned, given as they were; entries stay as they are.

        A wrong label of an entry is corrected by `label`, which does this by itself. See
        `OnlineHasher.forget`.
        """
        with self._writing() as call:
            hasher = call.state.hasher
            rows = rounded(X, hasher)
            labels = as_labels(y, len(rows))
            hasher.check_forget(rows, labels)
            study(hasher, call.begin(), Lesson(rows, labels, forget=True))

    def add(
        self,
        X: ArrayLike,
        ids: Iterable[Any] | None = None,
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Add entries and return their ids: labelled ones by codeword, others by their bits.

        Args:
            X: (n, d) rows.
            ids: int64 or strings; numbers in order of arrival if None.
            y: a label or a set of labels a row; None for none.
            payloads: a JSON value a row, None for none; see `attach`.
            thumbnails: a picture a row, None for none.
        """
        with self._writing() as call:
            checked = call.state.index.check(X, ids, y)
            return self._add(call, checked, (payloads, thumbnails), teach=False)

    def ingest(
        self,
        X: ArrayLike,
        y: Any = None,
        ids: Iterable[Any] | None = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> list[Id]:
        """Learn from rows and add them, in one transaction; return their ids. See `add`."""
        with self._writing() as call:
            checked = call.state.index.check(X, ids, y)
            return self._add(call, checked, (payloads, thumbnails), teach=True)

    def upsert(
        self,
        X: ArrayLike,
        ids: Iterable[Any],
        y: Any = None,
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
        teach: bool = True,
    ) -> list[Id]:
        """Add entries, in place of those that have the same ids; return the ids.

        Args:
            X: (n, d) rows.
            ids: of entries that are new or replaced with all they have.
            y: a label or a set of labels a row; None for none.
            payloads: a JSON value a row, None for none.
            thumbnails: a picture a row, None for none.
            teach: learn from the rows, as `ingest` does; what replaced entries have taught is
                forgotten, if the learner can. False is as `add`.
        """
        with self._writing() as call:
            checked = call.state.index.check(X, ids, y, replace=True)
            return self._add(call, checked, (payloads, thumbnails), teach=teach)

    def update(self, ids: Iterable[Any], X: ArrayLike, *, teach: bool = True) -> None:
        """Give entries other features; labels, payloads and thumbnails stay.

        Args:
            ids: of entries, each once.
            X: (n, d) their new rows.
            teach: what an entry has taught is forgotten with its old row and learned with the new
                one. False leaves what was learned.
        """
        with self._writing() as call:
            index = call.state.index
            places = index.find_each(ids)
            checked = index.check(X, index.names_at(places), labels_of(index, places), replace=True)
            taught = index.taught_column[places].copy()
            blobs = blobs_at(self._store, places)
            self._replace(call, checked, blobs, teach=teach, learns=taught)

    def _add(
        self,
        call: WriteCall,
        checked: CheckedEntries,
        attachments: AttachmentColumns,
        *,
        teach: bool,
    ) -> list[Id]:
        """Add checked entries, replacing those that they replace."""
        blobs = as_blobs(attachments, len(checked.rows))
        learns = np.ones(len(checked.rows), np.bool_)
        return self._replace(call, checked, blobs, teach=teach, learns=learns)

    def _replace(
        self, call: WriteCall, checked: CheckedEntries, blobs: Blobs, *, teach: bool, learns: Bools
    ) -> list[Id]:
        """Add checked entries; `learns` says which of them teach, if any do."""
        hasher, index = call.state.hasher, call.state.index
        new, replaced = new_labels(hasher, checked.labels), checked.replaced
        old = taught_lesson(index, replaced) if teach else None
        changes = call.begin()
        changes.new_labels = len(new)
        changes.codes_lost = index.coded_among(replaced)
        if len(replaced):
            changes.changes.append(LabelChange.removal(replaced))
        places = index.arrived + np.arange(len(checked.rows))
        changes.attached = cleared_at(replaced) | at_places(blobs, places)
        study(hasher, changes, old)
        if not teach and new:
            changes.lessons.append(codeword_lesson(hasher, new))
        if teach:
            study(hasher, changes, _lesson_of(checked, learns, places))
        return index.add_checked(checked, taught=learns & teach)

    def attach(
        self,
        ids: Iterable[Any],
        *,
        payloads: Iterable[Any] | None = None,
        thumbnails: Iterable[bytes | None] | None = None,
    ) -> None:
        """Give entries payloads or thumbnails instead of what they had.

        Args:
            ids: of entries, each once.
            payloads: for each a JSON value of at most 4,096 bytes, or None to remove it; None
                instead of a list leaves all as they are.
            thumbnails: the same with PNG, JPEG, GIF or WebP pictures of at most 32,768 bytes.
        """
        with self._writing() as call:
            places = call.state.index.find(ids)
            if len(np.unique(places)) < len(places):
                raise InputError("an id is given twice", hint="name each entry once")
            blobs = as_blobs((payloads, thumbnails), len(places))
            call.begin().attached = at_places(blobs, places)

    def remove(self, ids: Iterable[Any]) -> int:
        """Remove entries and return how many there were. Their ids are free again.

        What they have taught stays; `unlabel` them first to forget it.
        """
        with self._writing() as call:
            index = call.state.index
            places = np.unique(index.find(ids))
            changes = call.begin()
            changes.codes_lost = index.coded_among(places)
            changes.changes.append(LabelChange.removal(places))
            changes.attached = cleared_at(places)
            return index.forget(places)


def _lesson_of(checked: CheckedEntries, learns: Bools, places: Counts) -> Lesson:
    """Return the lesson of those rows that teach, which get these places."""
    rows, labels = checked.rows, checked.labels
    if learns.all():
        return Lesson(rows, labels, places=places)
    number, mine = np.cumsum(learns) - 1, learns[labels.rows]
    part = Labels(labels.values, number[labels.rows[mine]], labels.which[mine])
    return Lesson(rows[learns], part, places=places[learns])
