"""Labels by number, in their order of arrival.

A number is never given away again: a label that was merged into another or dropped leaves a gap,
and its name, should it come again, is a new label.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everhash.errors import LabelError, UnknownNameError
from everhash.estimator import Estimator
from everhash.stream import as_label


class Labelled(Estimator):
    """What knows labels by number."""

    _names: list[Hashable]
    """The label of each number; None for one that is gone."""
    _numbers: dict[Hashable, int]
    """The number of each label that is not."""

    def _take_names(self, names: list[Hashable]) -> None:
        """Know these labels and no others."""
        self._names = names
        self._numbers = {name: number for number, name in enumerate(names) if name is not None}

    def _add_name(self, label: Hashable) -> None:
        """Give a label the next number. None takes one that no label has."""
        if label is not None:
            self._numbers[label] = len(self._names)
        self._names.append(label)

    def _remove_name(self, label: Hashable) -> None:
        """Let a label be gone."""
        self._names[self._numbers.pop(label)] = None

    @property
    def labels_(self) -> list[Hashable]:
        """Labels in order of arrival, by number; None where a label is gone."""
        self._require_fitted()
        return list(self._names)

    def unknown(self, labels: Iterable[Hashable]) -> list[Hashable]:
        """Return those labels that have not arrived yet."""
        return [label for label in labels if label not in self._numbers]

    def numbers(self, labels: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return each label's place in `labels_`."""
        self._require_fitted()
        wanted = list(labels)
        try:
            return np.array([self._numbers[label] for label in wanted], np.int64)
        except (KeyError, TypeError):  # TypeError: what has no hash is no label
            stranger = next(label for label in wanted if not self._knows(label))
            raise UnknownNameError(
                f"label {stranger!r} has not been seen", hint="{say labels}"
            ) from None

    def _knows(self, label: Any) -> bool:
        try:
            return label in self._numbers
        except TypeError:
            return False

    def rename_label(self, old: Any, new: Any) -> Self:
        """Give a label another name, which no label has. Nothing else changes."""
        old, new = as_label(old), as_label(new)
        number = int(self.numbers([old])[0])
        if new in self._numbers:
            raise LabelError(
                f"cannot rename {old!r}: there is a label {new!r}",
                hint="{call merge_labels} makes them one",
            )
        del self._numbers[old]
        self._names[number], self._numbers[new] = new, number
        return self
