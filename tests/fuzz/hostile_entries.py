"""Hostile files: entries, their ids, and changes to them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.fuzz.forging import (
    Edit,
    Forgery,
    both,
    claim,
    data,
    drop,
    pack,
    put,
    restart,
    set_about,
    set_head,
    swap,
    swap_about,
    swap_text,
)
from tests.fuzz.hostile_heads import BOMB, Case


def pairs(*several: tuple[int, int]) -> Edit:
    """Replace which entries have several labels; in truth 5 has 0 and 2."""
    return swap("entries", "several", np.array(several, np.int64).reshape(-1, 2))


LABELS: dict[str, Case] = {
    "a label nobody has": (put("entries", "labels", 0, 5), "labels that the hasher does not have"),
    "a label of 2**31 - 1": (
        put("entries", "labels", 0, 2**31 - 1),
        "labels that the hasher does not have",
    ),
    "a label below what stands for none": (put("entries", "labels", 0, -4), "labels"),
    "a label of -2**31": (put("entries", "labels", 0, -(2**31)), "labels"),
    "labels of doubles": (swap("entries", "labels", np.zeros(8)), "labels"),
    "labels of eight bytes": (swap("entries", "labels", np.zeros(8, np.int64)), "labels"),
    "labels in a table": (swap("entries", "labels", np.zeros((8, 1), np.int8)), "labels is"),
    "labels missing": (data("entries", pack({"several": np.zeros((0, 2), np.int64)})), "missing"),
    "flags that are numbers": (put("entries", "taught", 0, 2), "taught are not flags"),
    "flags too few": (swap("entries", "taught", np.zeros(7, np.uint8)), "taught is"),
    "flags of two bytes": (swap("entries", "taught", np.zeros(8, np.uint16)), "taught is"),
    "several for an entry with one": (pairs((4, 0), (4, 2)), "several labels do not fit"),
    "several for nobody": (pairs(), "several labels do not fit"),
    "several that are one": (pairs((5, 0)), "several labels do not fit"),
    "several that repeat": (pairs((5, 0), (5, 0)), "several labels do not fit"),
    "several beyond the part": (pairs((5, 0), (5, 2), (9, 0), (9, 1)), "do not fit"),
    "several beyond any place": (pairs((5, 0), (5, 2), (2**62, 0), (2**62, 1)), "do not fit"),
    "several of negative places": (pairs((5, 0), (5, 2), (-3, 0), (-3, 1)), "do not fit"),
    "several with a label nobody has": (pairs((5, 0), (5, 5)), "several labels do not fit"),
    "several with a negative label": (pairs((5, 0), (5, -1)), "several labels do not fit"),
    "several of three": (swap("entries", "several", np.zeros((2, 3), np.int64)), "several is"),
    "a gap between entries": (restart("entries", 9, 1), "expected entries from 8"),
    "entries that overlap": (restart("entries", 7, 1), "expected entries from 8"),
    "entries that start below zero": (restart("entries", -1), "expected entries from 0"),
    "entries from 2**31 on": (restart("entries", 2**31, 1), "expected entries from 8"),
    "entries from the largest number on": (restart("entries", 2**63 - 1, 1), "expected"),
    "entries missing": (drop("entries", 1), "some are missing"),
    "no entries at all": (both(drop("entries"), drop("entries")), "some are missing"),
    "entries that claim more rows": (claim("entries", 9), "labels is"),
    "entries that claim fewer rows": (claim("entries", 7), "labels is"),
    "entries that claim negative rows": (claim("entries", -8), "labels is"),
    "entries that claim 2**62 rows": (claim("entries", 2**62), "labels is"),
}


def names(value: Any) -> Edit:
    """Replace the ids of the last four entries."""
    return swap_text("entries", "names", value if isinstance(value, str) else json.dumps(value), 1)


def numbers(ids: Any) -> Edit:
    """Let the last four entries have numbers for ids."""

    def edit(forgery: Forgery) -> None:
        key = forgery.find("entries", 1)
        arrays = forgery.arrays(key)
        del arrays["names"]
        forgery.put(key, pack({**arrays, "ids": np.array(ids)}))

    return edit


REST = ["e8", "e9", "e10"]
IDS: dict[str, Case] = {
    "too few ids": (names(REST), "3 ids for 4 entries"),
    "too many ids": (names([*REST, "e11", "e12"]), "5 ids for 4 entries"),
    "an id a float": (names([*REST, 1.5]), "cannot be an id"),
    "an id NaN": (names([*REST, float("nan")]), "cannot be an id"),
    "an id null": (names([*REST, None]), "cannot be an id"),
    "an id true": (names([*REST, True]), "cannot be an id"),
    "an id a list": (names([*REST, ["x"]]), "cannot be an id"),
    "an id empty": (names([*REST, ""]), "cannot be an id"),
    "an id of 65 characters": (names([*REST, "x" * 65]), "cannot be an"),
    "an id beyond int64": (names([*REST, 2**63]), "cannot be an id"),
    "an id below int64": (names([*REST, -(2**63) - 1]), "cannot be an id"),
    "ids an object": (names(dict.fromkeys([*REST, "e11"])), "no ids"),
    "ids a text": (names(json.dumps("abcd")), "no ids"),
    "ids a number": (names("4"), "no ids"),
    "ids null": (names("null"), "no ids"),
    "ids no JSON": (names("[e8"), "no ids"),
    "ids of a million digits": (names("[1,2,3," + "1" * 10**6 + "]"), "no ids"),
    "ids deeply nested": (names(BOMB), "no ids"),
    "ids deeply nested inside": (names('["e8","e9","e10",' + BOMB + "]"), "no ids"),
    "ids that are no UTF-8": (swap_text("entries", "names", b'["\xff","b","c","d"]', 1), "no ids"),
    "an id twice in a part": (names(["e8", "e8", "e10", "e11"]), "two have one id"),
    "an id twice in two parts": (names([3, "e9", "e10", "e11"]), "two have one id"),
    "a number twice": (numbers([100, 101, 101, 102]), "two have one id"),
    "a number twice in two parts": (numbers([100, 101, 3, 102]), "two have one id"),
    "numbers of four bytes": (numbers(np.arange(4, dtype=np.int32)), "ids is int32"),
    "numbers that are doubles": (numbers([100.0, 101.5, 102, 103]), "ids is float64"),
    "too few numbers": (numbers([50, 51, 52]), "ids is"),
}


def change(places: Any, rows: Any = (), labels: Any = (), number: int = 0) -> Edit:
    """Replace a change; the first gives entry 2 the label 4, the second removes entry 1."""
    columns = {"places": places, "rows": rows, "numbers": labels}
    about = {"removed": len(rows) == 0, "taught": False}
    content = pack({name: np.array(column, np.uint32) for name, column in columns.items()}, about)
    return both(data("change", content, number), claim("change", len(places), number))


CHANGES: dict[str, Case] = {
    "a change beyond the entries": (change([12], [0], [0]), "not there"),
    "a change far beyond": (change([2**32 - 1], [0], [0]), "not there"),
    "a removal beyond": (change([12]), "not there"),
    "a change below zero": (swap("change", "places", np.array([-1], np.int8)), "below 0"),
    "a change of one entry twice": (
        both(change([2, 2], [0, 1], [0, 1]), set_head("changed", 3)),
        "not there",
    ),
    "a change that leaves one out": (
        both(change([2, 4], [0], [0]), set_head("changed", 3)),
        "labels do not fit",
    ),
    "a change to a label nobody has": (change([2], [0], [5]), "labels do not fit"),
    "a change of rows that are not there": (change([2], [1], [0]), "labels do not fit"),
    "a change to one label twice": (change([2], [0, 0], [0, 0]), "labels do not fit"),
    "a change of other lengths": (change([2], [0, 0], [0]), "numbers is"),
    "a change in doubles": (swap("change", "places", np.array([2.0])), "places"),
    "a change without places": (data("change", pack({"rows": np.zeros(0, np.int8)})), "missing"),
    "a change that brings back the removed": (
        both(change([1]), change([1], [0], [0], number=1)),
        "bring back entries",
    ),
    "a change that brings back what never was": (
        both(put("entries", "labels", 2, -2), change([2], [0], [4])),
        "bring back entries",
    ),
    "a change that removes and labels": (set_about("change", removed=True), "labels do not fit"),
    "a change that says too little": (swap_about("change", '{"removed":false}'), "do not fit"),
    "a change that says too much": (set_about("change", more=1), "labels do not fit"),
    "a change whose flag is a number": (set_about("change", taught=1), "labels do not fit"),
    "a change that says a list": (swap_about("change", "[false,false]"), "labels do not fit"),
    "a change that says nothing": (swap_about("change", ""), "not JSON"),
    "a change that nests": (swap_about("change", BOMB), "not JSON"),
    "a change that takes labels away without a code": (
        both(change([2]), set_about("change", removed=False)),
        "some entries have none",
    ),
    "a change missing": (drop("change"), "change parts"),
    "a change numbered below zero": (restart("change", -1), "change parts"),
    "a change numbered far beyond": (restart("change", 2**62, 1), "change parts"),
    "a change that claims more rows": (claim("change", 7), "changed entries"),
    "changes that claim each other's rows": (
        both(claim("change", 0), claim("change", 2, 1)),
        "1 entries",
    ),
}
