"""Hostile files: codes, features, and the mapping they belong to."""

from __future__ import annotations

from typing import Any

import numpy as np

from everhash.store.parts import Arrays, PartKey
from tests.fuzz.forging import (
    Edit,
    Forgery,
    both,
    claim,
    cut,
    data,
    drop,
    pack,
    put,
    restart,
    set_about,
    swap,
    swap_about,
)
from tests.fuzz.hostile_heads import BOMB, Case

FLOATS = np.float32


def codes(places: Any, number: int = 0, *, start: int | None = None) -> Edit:
    """Replace the codes of a part, in truth of 3 and 7, or 8 to 11: no bit set, all of cycle 0."""
    n = len(places)
    arrays: Arrays = {
        "places": np.array(places, np.uint32),
        "homes": np.zeros(n, np.uint32),
        "words": np.zeros((n, 1), np.uint64),
    }
    edit = both(data("codes", pack(arrays), number), claim("codes", n, number))
    return edit if start is None else both(edit, restart("codes", start, number))


def owners(*places: int) -> Edit:
    """Replace whose features the first part has, in truth those of 0 to 7."""
    return swap("features", "places", np.array(places, np.uint32))


CODES: dict[str, Case] = {
    "a home beyond the cycles": (put("codes", "homes", 0, 2), "homes in cycles"),
    "a home of 2**31 - 1": (put("codes", "homes", 0, 2**31 - 1), "homes in cycles"),
    "a home below zero": (put("codes", "homes", 0, -1), "below 0"),
    "a bit beyond k": (put("codes", "words", 0, 8), "bits beyond the 3"),
    "the highest bit": (put("codes", "words", 0, 2**63), "bits beyond the 3"),
    "other bits than the features give": (swap("codes", "words", lambda w: w ^ 1), "features give"),
    "codes that descend": (codes([4, 0]), "places do not ascend"),
    "a code twice": (codes([0, 0]), "places do not ascend"),
    "a code twice in two parts": (codes([0, 4, 5]), "beyond the next part"),
    "codes beyond the next part": (both(codes([0, 4, 5]), codes([1, 2, 3], 1)), "beyond the next"),
    "a code of nobody": (codes([0, 1, 2, 3, 4], 1), "belong to no entry"),
    "a code of place 2**32 - 1": (codes([0, 1, 2, 2**32 - 1], 1), "beyond the next"),
    "a code of somebody else": (codes([0, 1]), "some entries have none"),
    "a code too few": (codes([0]), "some entries have none"),
    "codes missing": (drop("codes"), "some entries have none"),
    "no codes at all": (both(drop("codes"), drop("codes")), "some entries have none"),
    "codes and features missing": (both(drop("codes"), drop("features")), "some entries have none"),
    "codes that wrap around": (both(codes([4, 8, 12], start=-5), codes([0, 1, 2], 1)), "codes"),
    "codes from below zero": (codes([4, 8], start=-1), "codes and features"),
    "codes of no bit": (codes([2, 6], start=1), "features give"),
    "codes from 2**31 on": (restart("codes", 2**31, 1), "codes"),
    "codes from the largest number on": (
        both(restart("codes", 2**63 - 1, 1), restart("features", 2**63 - 1, 1)),
        "codes",
    ),
    "codes in eight bytes": (swap("codes", "places", np.array([0, 4])), "places"),
    "codes of two words": (swap("codes", "words", np.zeros((2, 2), np.uint64)), "words is"),
    "codes without words": (swap("codes", "words", np.zeros((2, 0), np.uint64)), "words is"),
    "codes that claim fewer rows": (claim("codes", 1), "places is"),
    "codes that claim 2**62 rows": (claim("codes", 2**62), "places is"),
    "codes without a mapping": (drop("mapping"), "homes in cycles"),
}


def more_features(forgery: Forgery) -> None:
    forgery.put(PartKey("features", 5), forgery.parts[forgery.find("features")].data, 8)


def fewer_features(forgery: Forgery) -> None:
    key = forgery.find("features")
    forgery.put(key, pack({name: a[:7] for name, a in forgery.arrays(key).items()}), 7)


FEATURES: dict[str, Case] = {
    "features too wide": (swap("features", "halves", np.zeros((8, 4), np.float16)), "halves is"),
    "features in floats": (swap("features", "halves", np.zeros((8, 3), FLOATS)), "halves is"),
    "features of nothing": (swap("features", "halves", np.zeros((8, 0), np.float16)), "halves is"),
    "features missing": (drop("features"), "some are missing"),
    "features in place of others": (more_features, "features"),
    "features of one row missing": (fewer_features, "features are missing"),
    "features that descend": (owners(0, 1, 2, 3, 4, 6, 5, 7), "places do not ascend"),
    "features of somebody else": (owners(0, 1, 2, 3, 4, 5, 6, 9), "features are missing"),
    "features of others": (swap("features", "halves", lambda old: old[::-1]), "features give"),
    "features that claim fewer rows": (claim("features", 7), "places is"),
    "features that claim 2**62 rows": (claim("features", 2**62), "places is"),
    "features from 2**31 on": (restart("features", 2**31, 1), "features"),
    "features from below zero": (restart("features", -1), "do not start where they should"),
    "a scale infinite": (put("features", "scales", 0, np.inf), "scales"),
    "a scale NaN": (put("features", "scales", 0, np.nan), "scales"),
    "a scale beyond the largest": (put("features", "scales", 0, 3e38), "scales"),
    "a scale of nothing": (put("features", "scales", 0, 0), "scales"),
    "a scale below zero": (put("features", "scales", 0, -1), "scales"),
    "a feature NaN": (put("features", "halves", 0, np.nan), "beyond their scales"),
    "a feature infinite": (put("features", "halves", 0, -np.inf), "beyond their scales"),
    "a feature beyond its scale": (put("features", "halves", 0, 1.001), "beyond their scales"),
}


def coarser(forgery: Forgery) -> None:
    """One cycle instead of two, which is consistent in itself."""
    swap("mapping", "functions", lambda old: old[:1])(forgery)
    swap("mapping", "versions", lambda old: old[:3])(forgery)
    set_about("mapping", labels_per_cycle=4)(forgery)
    put("codes", "homes", slice(None), 0, 1)(forgery)


def wider(forgery: Forgery) -> None:
    """More labels and cycles than the hasher has."""
    for name in ("functions", "versions", "words"):
        swap("mapping", name, lambda old: np.concatenate([old, old, old]))(forgery)


def emptier(forgery: Forgery) -> None:
    for name in ("functions", "versions", "words"):
        swap("mapping", name, lambda old: old[:0])(forgery)


def functions(*shape: int) -> Edit:
    return swap("mapping", "functions", np.ones(shape, FLOATS))


HELD = "not those of a mapping"
SEEN = "unknown view|view does not fit"
STRANGE_VIEWS: tuple[Any, ...] = ("anchored", "os", "", 5, [], {}, True)
MAPPINGS: dict[str, Case] = {
    "a function NaN": (put("mapping", "functions", 0, np.nan), HELD),
    "a function infinite": (put("mapping", "functions", 0, np.inf), HELD),
    "a function of 3e38": (put("mapping", "functions", 0, 3e38), "features give"),
    "functions of other bits": (functions(2, 4, 3), "functions is"),
    "functions of other features": (functions(2, 3, 4), "functions is"),
    "functions of one cycle too few": (functions(1, 3, 3), "versions is"),
    "functions in doubles": (swap("mapping", "functions", np.ones((2, 3, 3))), "functions is"),
    "no functions": (emptier, "do not need 0 cycles"),
    "a word of 0": (put("mapping", "words", (0, 0), 0), "not the hasher's"),
    "a word of 2": (put("mapping", "words", (0, 0), 2), HELD),
    "a word of -128": (put("mapping", "words", (0, 0), -128), HELD),
    "words of others": (swap("mapping", "words", lambda old: -old), "not the hasher's"),
    "words of other bits": (swap("mapping", "words", np.ones((4, 2), np.int8)), "words is"),
    "cycles of another size": (coarser, "not the hasher's"),
    "more cycles than the hasher": (wider, "not the hasher's"),
    "a center NaN": (put("mapping", "center", 0, np.nan), SEEN),
    "a center beyond the largest": (put("mapping", "center", 0, 3e38), SEEN),
    "a center of other features": (swap("mapping", "center", np.ones(4, FLOATS)), SEEN),
    "a center in doubles": (swap("mapping", "center", np.ones(3)), SEEN),
    **{f"seen {value!r}": (set_about("mapping", view=value), SEEN) for value in STRANGE_VIEWS},
    "seen with a constant": (set_about("mapping", view="homogeneous"), "functions is"),
    "versions of other bits": (swap("mapping", "versions", np.ones(5, np.int64)), "versions is"),
    "versions below zero": (put("mapping", "versions", 0, -1), "counts are damaged"),
    **{
        f"labels a cycle {value!r}": (set_about("mapping", labels_per_cycle=value), "mapping 0")
        for value in (0, -1, 1, 2.0, "2", None, True, 2**70)
    },
    **{
        f"mapping version {value!r}": (set_about("mapping", version=value), "counts are damaged")
        for value in (0, -1, 1.5, "1", None, 2**63)
    },
    "mapping with more to say": (set_about("mapping", command="rm"), "counts are damaged"),
    "mapping that says nothing": (swap_about("mapping", ""), "not JSON"),
    "mapping that says a list": (swap_about("mapping", "[2,1]"), "counts are damaged"),
    "mapping that nests": (swap_about("mapping", BOMB), "not JSON"),
    "mapping in disorder": (cut("mapping", 1, 0, 2), "not arrays"),
    "mapping with a piece missing": (cut("mapping", 0, 1), "not arrays"),
    "mapping with a piece twice": (cut("mapping", 0, 1, 2, 2), "not arrays"),
    "mapping numbered from 5": (restart("mapping", 5), "mapping parts"),
    "mapping numbered from below zero": (restart("mapping", -1), "mapping parts"),
    "mapping empty": (data("mapping", b""), "not arrays"),
}
