"""Hostile files: likeness codes, what makes them, and the generation of a mapping."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tests.fuzz.forging import (
    Edit,
    Forgery,
    both,
    data,
    drop,
    pack,
    put,
    restart,
    set_about,
    set_head,
    swap,
)
from tests.fuzz.hostile_heads import Case

WIDTH = 5
"""Words of a likeness code of 3 features: 256 signs, and two floats."""


def floats(value: float) -> Edit:
    """Let the two floats of the first code be this."""
    pair = np.array([value, value], np.float32).view(np.uint64)[0]
    return put("entries", "likeness", (0, -1), pair)


def codes(*shape: int, dtype: type = np.uint64) -> Edit:
    return swap("entries", "likeness", np.zeros(shape, dtype))


def without_codes(forgery: Forgery) -> None:
    key = forgery.find("entries")
    arrays = forgery.arrays(key)
    del arrays["likeness"]
    forgery.put(key, pack(arrays))


def direction(*values: float) -> Edit:
    """Say that the direction is settled, and what it is."""
    settled = swap("likeness", "direction", np.array(values, np.float32))
    return both(settled, swap("likeness", "first", np.zeros((0, 3), np.float32)))


def other_signs(old: NDArray[np.int8]) -> NDArray[np.int8]:
    return -old


GIVE = "likeness codes are not what their features give"
FIRST = "its rows are not those of the first entries"
LIKENESS: dict[str, Case] = {
    "a code of another row": (put("entries", "likeness", (0, 0), 7), FIRST),
    "codes of other rows": (swap("entries", "likeness", lambda old: old[::-1]), FIRST),
    "codes missing": (without_codes, "likeness is missing"),
    "codes too narrow": (codes(8, WIDTH - 1), "likeness is"),
    "codes too wide": (codes(8, WIDTH + 1), "likeness is"),
    "codes too few": (codes(7, WIDTH), "likeness is"),
    "codes in a row": (codes(8 * WIDTH), "likeness is"),
    "codes of four bytes": (codes(8, WIDTH, dtype=np.uint32), "likeness is"),
    "floats NaN": (floats(np.nan), "likeness codes of no row"),
    "floats infinite": (floats(np.inf), "likeness codes of no row"),
    "floats of a row too long": (floats(-1.5), "likeness codes of no row"),
    "what makes codes missing": (drop("likeness"), "likeness 0: it is missing"),
    "what makes codes numbered from 1": (restart("likeness", 1), "likeness parts"),
    "what makes codes no arrays": (data("likeness", b"rubbish"), "not arrays"),
    "what makes codes empty": (data("likeness", pack({"signs": np.zeros(0)})), "signs"),
    "signs of 0": (put("likeness", "signs", (0, 0), 0), "signs of -1 and \\+1"),
    "signs of -128": (put("likeness", "signs", (0, 0), -128), "signs of -1 and \\+1"),
    "signs too few": (swap("likeness", "signs", np.ones((3, 255), np.int8)), "signs of shape"),
    "signs of another rotation": (swap("likeness", "signs", other_signs), FIRST),
    "a direction too long": (direction(1, 1, 1), "a direction of length 1"),
    "a direction NaN": (direction(np.nan, 0, 0), "finite numbers"),
    "a direction infinite": (direction(np.inf, 0, 0), "finite numbers"),
    "a direction of other features": (direction(1, 0, 0, 0), "direction of shape"),
    "a direction nobody settled": (direction(1, 0, 0), GIVE),
    "first rows of others": (swap("likeness", "first", np.zeros((12, 3), np.float32)), FIRST),
    "first rows too few": (
        swap("likeness", "first", np.zeros((3, 3), np.float32)),
        "3 first rows for 12 entries",
    ),
    "first rows too many": (
        swap("likeness", "first", np.zeros((16, 3), np.float32)),
        "at most 15 rows",
    ),
    "first rows NaN": (put("likeness", "first", 0, np.nan), "finite numbers"),
    "first rows of other features": (
        swap("likeness", "first", np.zeros((12, 4), np.float32)),
        "first of shape",
    ),
    "first rows beside a direction": (
        swap("likeness", "direction", np.array([1, 0, 0], np.float32)),
        "at most 0 rows",
    ),
    "no likeness codes in a file that says so": (
        both(without_codes, set_head("options.likeness", True)),
        "likeness is missing",
    ),
    **{
        f"mapping generation {value!r}": (
            set_about("mapping", generation=value),
            "counts are damaged",
        )
        for value in (-2, 1.5, "1", None, True, 2**63)
    },
}
