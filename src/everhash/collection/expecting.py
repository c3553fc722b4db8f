"""Labels that a caller believes entries to have: checked before they are changed."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from everhash.collection.learning import Counts
from everhash.errors import LabelConflictError
from everhash.index.index import Index
from everhash.stream import is_one, label_sets
from everhash.wire.labels import label_to_json

Expected = list[frozenset[Hashable]]


def expected_labels(expect: Any, n: int) -> Expected | None:
    """Read the labels that n entries are expected to have; None expects nothing.

    A label or a set of labels is expected of all entries, an empty set means no label. A list has
    a label, a set of labels, or None for no label, for each entry.

    >>> expected_labels(set(), 2), expected_labels(["cat", None], 2)
    ([frozenset(), frozenset()], [frozenset({'cat'}), frozenset()])
    """
    if expect is None:
        return None
    for_all = is_one(expect) or isinstance(expect, set | frozenset)
    expected = label_sets([expect] * n if for_all else expect, n)
    for label in frozenset().union(*expected):
        label_to_json(label)  # what cannot be in a file is no label here either
    return expected


def check_expected(index: Index, places: Counts, expect: Any) -> None:
    """Raise if one of these entries has other labels than the caller expects."""
    expected = expected_labels(expect, len(places))
    if expected is None:
        return
    names = index.hasher.labels_
    has: list[set[Hashable]] = [set() for _ in expected]
    for row, number in zip(*(part.tolist() for part in index.label_pairs(places)), strict=True):
        has[row].add(names[number])
    for row, wanted in enumerate(expected):
        if has[row] != wanted:
            name = index.names_at(places[row : row + 1]).tolist()[0]
            raise LabelConflictError(name, has=has[row], expected=wanted)
