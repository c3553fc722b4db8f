"""Entries listed by cell: blocks of 64 entries with their signs, those of a cell in a chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everhash.kernels.compiling import kernel

Words = NDArray[np.uint64]
Int32 = NDArray[np.int32]

BLOCK = 64
"""Entries of a block."""


class Lists(NamedTuple):
    """Entries by cell."""

    words: Words
    """(blocks, W * 64) word w of entry i of a block at w * 64 + i."""
    places: Int32
    """(blocks, 64) -1 where there is no entry."""
    following: Int32
    """(blocks,) the next block of the same cell, or -1."""
    heads: Int32
    """(cells,) the first block of a cell, or -1."""
    sizes: Int32
    """(cells,) entries of a cell, at least."""


@kernel(
    "void(u8[:, ::1], i8, i4[::1], u8[:, ::1], i4[:, ::1], i4[::1], i4[::1], i4[::1], i4[::1],"
    " i4[::1], i8)"
)
def list_entries(
    codes: Words,
    first: int,
    numbers: Int32,
    words: Words,
    places: Int32,
    following: Int32,
    heads: Int32,
    tails: Int32,
    sizes: Int32,
    slots: Int32,
    blocks: int,
) -> None:
    """Append entries to the lists of their cells; there is room for the blocks they need.

    Args:
        codes: (n, W + 1) likeness codes by place.
        first: place of the first entry.
        numbers: (m,) cells, -1 for an entry that is not listed.
        words: see `Lists`, as are places, following, heads and sizes.
        places: likewise.
        following: likewise.
        heads: likewise.
        tails: (cells,) the last block of a cell, or -1.
        sizes: likewise.
        slots: (n,) filled in: block * 64 + position of each entry, or -1.
        blocks: that are in use.
    """
    for i in range(numbers.size):
        place, cell = first + i, numbers[i]
        slots[place] = -1
        if cell < 0:
            continue
        at = sizes[cell] % BLOCK
        if at == 0:
            if tails[cell] < 0:
                heads[cell] = blocks
            else:
                following[tails[cell]] = blocks
            tails[cell] = blocks
            blocks += 1
        block = tails[cell]
        for w in range(codes.shape[1] - 1):
            words[block, w * BLOCK + at] = codes[place, w]
        places[block, at] = place
        slots[place] = block * BLOCK + at
        sizes[cell] += 1
