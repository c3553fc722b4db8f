"""The calls that change labels: of entries, and the labels themselves."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from everhash.collection.changeset import Changeset
from everhash.collection.expecting import check_expected
from everhash.collection.formats import Lesson
from everhash.collection.labels import rows_learned
from everhash.collection.learning import (
    Counts,
    LabelReport,
    announced,
    can_forget,
    codeword_lesson,
    helped_by_unlabelled,
    learned_again,
    new_labels,
    refuse_new,
    study,
    taught_lesson,
)
from everhash.collection.writing import WriteCall, Writing
from everhash.errors import LabelError, OptionError
from everhash.index.export import LabelChange
from everhash.index.index import Index
from everhash.stream import Labels, as_new_label
from everhash.wire.labels import label_to_json


class LabelCalls(Writing):
    """Labels that teach, and can be taken back, renamed, merged and dropped."""

    def label(
        self,
        ids: Iterable[Any],
        y: Any,
        *,
        teach: bool = True,
        expect: Any = None,
        new: bool = True,
    ) -> LabelReport:
        """Give entries these labels instead of what they had, and learn from it.

        Args:
            ids: of entries, each once.
            y: a label, or a set of labels, for each; a single label is for all of them.
            teach: learn from the entries' features with their new labels; what an entry has taught
                with its old ones is forgotten first, exactly, if the learner can. False changes the
                entries only, and what was learned stays.
            expect: the labels that the caller believes the entries to have. If one has others,
                nothing changes and `LabelConflictError` names it. A label or a set of labels is
                expected of all, an empty set means no label; a list has one of these, or None for
                no label, for each. None expects nothing.
            new: whether labels never seen before are welcome. False refuses them with
                `UnknownNameError`, which names known ones of nearly the same name.
        """
        with self._writing() as call:
            hasher, index = call.state.hasher, call.state.index
            places, labels = index.check_labels(ids, y)
            unseen = new_labels(hasher, labels)
            if not new:
                refuse_new(hasher, unseen)
            check_expected(index, places, expect)
            report = LabelReport(len(places), announced(hasher, unseen))
            old = rows = None
            if teach:
                old = taught_lesson(index, places)
                rows = index.features_at(places, f"so it cannot teach its label; {ONLY_CHANGE}")
            changes = call.begin()
            changes.new_labels = len(unseen)
            if unseen and rows is None:
                changes.lessons.append(codeword_lesson(hasher, unseen))
            study(hasher, changes, old)
            lesson = None if rows is None else Lesson(rows, labels, places=places)
            study(hasher, changes, lesson)
            if hasher.assigns_codewords:
                changes.codes_lost = index.coded_among(places)
            index.relabel(places, labels, taught=teach)
            _note(changes, index, places, taught=teach)
            return report

    def unlabel(self, ids: Iterable[Any], *, teach: bool = True, expect: Any = None) -> int:
        """Take the labels of entries away; return how many had one.

        They need their features: from then on they are found by their bits.

        Args:
            ids: of entries, each once.
            teach: forget what the entries have taught with their labels, if the learner can.
            expect: the labels that the caller believes the entries to have; see `label`.
        """
        with self._writing() as call:
            index = call.state.index
            places = index.find_each(ids)
            check_expected(index, places, expect)
            places = index.check_unlabel(places)
            self._unlabel(call, places, teach=teach)
            return len(places)

    def _unlabel(self, call: WriteCall, places: Counts, *, teach: bool) -> Changeset:
        hasher, index = call.state.hasher, call.state.index
        old = taught_lesson(index, places) if teach else None
        changes = call.begin()
        study(hasher, changes, old)
        index.clear_labels(places)
        if teach and old is not None and helped_by_unlabelled(hasher):
            kept = index.with_features(places)
            study(hasher, changes, Lesson(index.features_at(kept), NO_LABELS, places=kept))
        if hasher.assigns_codewords:
            changes.codes_gained = places
        changes.changes.append(LabelChange.clearing(places))
        return changes

    def rename_label(self, label: Hashable, to: Hashable) -> None:
        """Give a label another name, which no label has."""
        new = as_new_label(to)
        label_to_json(new)
        with self._writing() as call:
            call.state.hasher.numbers([label])
            if not call.state.hasher.unknown([new]):
                raise LabelError(
                    f"label {to!r} is there already", hint="{call merge_labels} joins two"
                )
            call.begin().whole = True
            call.state.hasher.rename_label(label, new)
            call.state.index.labels_changed()

    def merge_labels(self, label: Hashable, into: Hashable) -> int:
        """Make two labels one, `into`; return how many entries had the other.

        What was learned adds up, as if all rows had come with the label `into`; exact learner only.
        """
        with self._writing() as call:
            hasher, index = call.state.hasher, call.state.index
            number, target = hasher.numbers([label, into]).tolist()
            if number == target:
                raise LabelError(f"{label!r} cannot be merged into itself")
            _check_can_change_labels(call)
            places = index.places_with(np.array([number]))
            at, numbers = index.label_pairs(places)
            numbers = np.where(numbers == number, target, numbers)
            pairs = np.unique(np.stack([at, numbers]), axis=1)
            # sums do not know which rows had both labels: such rows are learned again with one
            both = index.with_features(places[np.bincount(pairs[0]) < np.bincount(at)])
            old = taught_lesson(index, both)
            changes = call.begin()
            changes.whole = True
            study(hasher, changes, old)
            self._relabel_each(call, places, *pairs)
            study(hasher, changes, learned_again(index, both))
            hasher.merge_labels(label, into)
            index.labels_changed()
            return len(places)

    def drop_label(self, label: Hashable, *, unused: bool = False) -> int:
        """Forget a label: entries lose it, and no row is taken for it; return how many had it.

        What its entries have taught is forgotten where their features are kept.

        Args:
            label: that goes.
            unused: refuse if an entry has it, or a row that was learned.
        """
        with self._writing() as call:
            hasher, index = call.state.hasher, call.state.index
            number = int(hasher.numbers([label])[0])
            _check_can_change_labels(call)
            places = index.places_with(np.array([number]))
            if unused:
                _check_unused(call, label, number, len(places))
            at, numbers = index.label_pairs(places)
            other = np.unique(at[numbers != number])
            alone = np.delete(places, other)
            if hasher.assigns_codewords:
                index.features_at(alone, "so it cannot be coded without its label")
            kept = index.with_features(places)
            old = taught_lesson(index, kept)
            changes = self._unlabel(call, alone, teach=False)
            changes.whole = True
            study(hasher, changes, old)
            staying = numbers != number
            rows = np.searchsorted(other, at[staying])
            self._relabel_each(call, places[other], rows, numbers[staying])
            study(hasher, changes, learned_again(index, np.intersect1d(places[other], kept)))
            hasher.drop_label(label)
            index.labels_changed()
            return len(places)

    def _relabel_each(self, call: WriteCall, places: Counts, rows: Counts, numbers: Counts) -> None:
        """Give entries other labels by number; whether they taught theirs stays as it is."""
        index, changes = call.state.index, call.changes
        assert changes is not None  # noqa: S101 - the caller has begun
        names = index.hasher.labels_
        taught = index.taught_column[places].copy()
        for flag in (False, True):
            some = np.flatnonzero(taught == flag)
            mine = np.isin(rows, some)
            values = [names[number] for number in numbers[mine].tolist()]
            steps = np.searchsorted(some, rows[mine])
            if len(some):
                chosen = Labels(values, steps, np.arange(len(values)))
                index.relabel(places[some], chosen, taught=flag)
                _note(changes, index, places[some], taught=flag)


NO_LABELS = Labels([], np.empty(0, np.int64), np.empty(0, np.int64))
ONLY_CHANGE = "{option teach=False} changes the label only"


def _note(changes: Changeset, index: Index, places: Counts, *, taught: bool) -> None:
    """Note the labels that entries have now, for the file."""
    rows, numbers = index.label_pairs(places)
    changes.changes.append(LabelChange(places, rows, numbers, taught=taught))


def _check_unused(call: WriteCall, label: Hashable, number: int, entries: int) -> None:
    """Raise if an entry has a label, or a row that was learned."""
    lessons = rows_learned(call.state.hasher)
    rows = 0 if lessons is None else int(lessons[number])
    if entries or rows:
        raise LabelError(
            f"label {label!r} is in use: entries {entries}, rows learned {rows}",
            hint="without {option unused=True} it is dropped all the same",
        )


def _check_can_change_labels(call: WriteCall) -> None:
    if not can_forget(call.state.hasher):
        raise OptionError(
            f"the method {call.state.hasher.method} cannot merge or drop what it has learned",
            hint="the exact learner can; with any method {call label} changes an entry",
        )
