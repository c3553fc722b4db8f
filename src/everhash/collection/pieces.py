"""Keeping the parts of a file few and of a good size."""

from __future__ import annotations

from bisect import bisect_right

from everhash.store.parts import PartKey
from everhash.store.store import Store
from everhash.store.transaction import Transaction

PIECE_BYTES = 64 << 20
"""Bytes of a model or mapping in one part: SQLite's blobs have a limit."""
MERGED_PARTS = 8
"""So many parts of a size become one."""


def many_small(change: Transaction, kind: str, most: int) -> list[int]:
    """Return the starts of the last parts to be merged; none if they are few or large.

    Parts are sorted into sizes that differ eightfold; those of an eighth of `most` rows stay as
    they are. So a row is written again at most once a size.
    """
    starts: list[int] = []
    largest = 0
    for start in reversed(change.parts.starts(kind)):
        rows = change.parts[PartKey(kind, start)].rows
        size = (max(rows, 1).bit_length() + 2) // 3
        full = rows * MERGED_PARTS >= most
        if len(starts) >= MERGED_PARTS and (full or size > largest):
            break
        if full:
            return []
        largest = max(largest, size)
        starts.append(start)
    return starts[::-1] if len(starts) >= MERGED_PARTS else []


def write_pieces(change: Transaction, kind: str, data: bytes) -> None:
    """Replace all parts of a kind by these bytes, cut into pieces."""
    delete_all(change, kind)
    for key, piece in pieces_of(kind, data).items():
        change.put(key, 0, piece)


def pieces_of(kind: str, data: bytes) -> dict[PartKey, bytes]:
    """Cut bytes into parts."""
    starts = range(0, len(data), PIECE_BYTES)
    return {PartKey(kind, i): data[start : start + PIECE_BYTES] for i, start in enumerate(starts)}


def delete_all(change: Transaction, kind: str) -> None:
    """Delete all parts of a kind."""
    for start in change.parts.starts(kind):
        change.delete(PartKey(kind, start))


def covering(store: Store, kind: str, place: int) -> list[int]:
    """Return the starts of the parts that have entries from a place on."""
    starts = store.starts(kind)
    return starts[max(0, bisect_right(starts, place) - 1) :]
