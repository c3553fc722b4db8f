"""Hostile files: lessons, models, and buffers that promise the impossible."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from everhash import OnlineHasher
from everhash.learn.model_file import hasher_to_bytes
from everhash.store.parts import PartKey
from tests.fuzz.forging import (
    Edit,
    Forgery,
    both,
    claim,
    cut,
    data,
    drop,
    pack,
    restart,
    set_head,
    swap,
    swap_about,
)
from tests.fuzz.hostile_heads import BOMB, Case


def lesson(rows: Any, steps: Any, which: Any, labels: Any = ("a", "b")) -> Edit:
    """Replace the first lesson: two rows, one of "a" and one of "b"."""
    table = np.array(rows, np.float32).reshape(-1, 3)
    columns = {"steps": np.array(steps, np.uint32), "which": np.array(which, np.uint32)}
    about = labels if isinstance(labels, dict) else list(labels)
    content = pack({"rows": table, **columns}, about)
    return both(data("lesson", content), claim("lesson", len(table)))


def named(text: str) -> Edit:
    """Replace the labels of the last lesson, which gives "new" its word."""
    return swap_about("lesson", text, 2)


ROW = (1.0, 2.0, 3.0)
NO_LABELS = {
    "null": "[null]",
    "a list": "[[1]]",
    "an object": '[{"set": [1]}]',
    "two objects": '[{"tuple": [], "bytes": ""}]',
    "NaN": "[NaN]",
    "infinity": "[Infinity]",
    "of bad bytes": '[{"bytes": "xyz"}]',
    "of bytes that are none": '[{"bytes": 7}]',
    "a tuple of text": '[{"tuple": "abc"}]',
    "deeply nested": "[" + '{"tuple":[' * 50_000 + "1" + "]}" * 50_000 + "]",
}
LESSONS: dict[str, Case] = {
    "a row NaN": (lesson([np.nan, 1, 1, *ROW], [0, 1], [0, 1]), "cannot be learned"),
    "a row infinite": (lesson([np.inf, 1, 1, *ROW], [0, 1], [0, 1]), "cannot be learned"),
    "a row beyond the largest": (lesson([3e38, 1, 1, *ROW], [0, 1], [0, 1]), "cannot be learned"),
    "rows of other features": (swap("lesson", "rows", np.ones((2, 4), np.float32)), "rows is"),
    "rows in doubles": (swap("lesson", "rows", np.ones((2, 3))), "rows is"),
    "a step beyond the rows": (lesson([*ROW, *ROW], [0, 2], [0, 1]), "do not belong to its rows"),
    "a step of nothing": (lesson([], [0], [0]), "do not belong to its rows"),
    "steps that descend": (lesson([*ROW, *ROW], [1, 0], [0, 1]), "do not belong to its rows"),
    "a step twice": (lesson([*ROW, *ROW], [0, 0, 1], [0, 0, 1]), "a label twice"),
    "a label beyond the labels": (
        lesson([*ROW, *ROW], [0, 1], [0, 2]),
        "do not belong to its rows",
    ),
    "fewer labels than steps": (lesson([*ROW, *ROW], [0, 1], [0]), "which is"),
    "a label twice": (lesson([*ROW, *ROW], [0, 1], [0, 1], ["a", "a"]), "is there twice"),
    "a label twice in disguise": (
        lesson([*ROW, *ROW], [0, 1], [0, 1], [1, True]),
        "is there twice",
    ),
    "rows to forget where nothing can be": (
        lesson([*ROW, *ROW], [0, 1], [0, 1], {"forget": ["a", "b"]}),
        "cannot forget",
    ),
    "labels to forget in an object": (
        lesson([*ROW, *ROW], [0, 1], [0, 1], {"forget": {"a": 1}}),
        "labels are not a list",
    ),
    "labels to learn in an object": (
        lesson([*ROW, *ROW], [0, 1], [0, 1], {"learn": ["a", "b"]}),
        "labels are not a list",
    ),
    "labels a text": (named('"ab"'), "labels are not a list"),
    "labels an object": (named('{"a":1,"b":2}'), "labels are not a list"),
    "labels a number": (named("2"), "labels are not a list"),
    "labels no JSON": (named("[a"), "not JSON"),
    "labels that nest": (named(BOMB), "not JSON"),
    **{f"a label {name}": (named(text), "no label|not JSON") for name, text in NO_LABELS.items()},
    "more labels than supported": (named("[" + "0," * 10**6 + "0]"), "more than 1000000 labels"),
    "a lesson missing": (drop("lesson"), "lesson parts"),
    "the last lesson missing": (drop("lesson", 2), "lesson parts"),
    "a lesson numbered below zero": (restart("lesson", -1), "lesson parts"),
    "a lesson numbered far beyond": (restart("lesson", 2**62, 2), "lesson parts"),
    "a lesson that claims other rows": (claim("lesson", 7), "lesson 0: 2 rows"),
}


def model_of(dim: int, bits: int = 3, **options: Any) -> bytes:
    learner = "exact" if "features" in options else "sgd"
    return hasher_to_bytes(OnlineHasher(bits, 2, learner=learner, **options).begin(dim))


def another(model: bytes) -> Edit:
    return both(
        data("model", model), set_head("model_bytes", len(model)), set_head("lesson_bytes", 0)
    )


def outgrown(labels: int, dim: int, **options: Any) -> Edit:
    """A model of a few kilobytes, and one lesson that lets it grow as large as it likes."""

    def edit(forgery: Forgery) -> None:
        for key in list(forgery.parts):
            if key.kind != "model":
                del forgery.parts[key]
        another(model_of(dim, **options))(forgery)
        nothing = {name: np.zeros(0, np.uint32) for name in ("steps", "which")}
        rows = np.zeros((0, dim), np.float32)
        forgery.put(PartKey("lesson", 0), pack({"rows": rows, **nothing}, list(range(labels))))
        forgery.head.update(places=0, lessons=1, changes=0, changed=0)
        forgery.head.update(attached=0, attached_tally=0)
        forgery.statements.append("DELETE FROM attached")

    return edit


MODELS: dict[str, Case] = {
    "model missing": (drop("model"), "model"),
    "model empty": (another(b""), "model"),
    "model no safetensors": (another(b"model" * 100), "model"),
    "model of a plain buffer": (another(pack({"last": np.zeros(3)})), "not a hasher's file"),
    "model damaged": (data("model", lambda raw: raw[:-1] + b"\x55"), "checksum does not match"),
    "model cut short": (data("model", lambda raw: raw[:-8]), "some of it is missing"),
    "model with more behind": (data("model", lambda raw: raw + bytes(8)), "some of it is missing"),
    "model of other features": (another(model_of(4, replay=1)), "lesson 0: rows is"),
    "model of other bits": (another(model_of(3, bits=2, replay=1)), "functions is|outgrows"),
    "model in disorder": (cut("model", 1, 0, 2), "model"),
    "model with a piece missing": (cut("model", 0, 1), "some of it is missing"),
    "model with a piece twice": (cut("model", 0, 1, 2, 2), "some of it is missing"),
    "model numbered from 5": (restart("model", 5), "model parts"),
    "model numbered from below zero": (restart("model", -1), "model parts"),
}
GROWING: dict[str, Case] = {
    "labels that remember a million rows": (outgrown(100, 3, replay=10**6), "lesson"),
    "labels of wide functions": (outgrown(100, 16_384, bits=16, replay=0), "lesson"),
    "labels of many random features": (outgrown(500, 3, features=16_000), "lesson"),
    "labels that take long to tell apart": (outgrown(20_000, 3, bits=16, replay=0), "lesson"),
}


def header(text: str, body: int = 8) -> bytes:
    """Return a safetensors buffer with a header of our own."""
    return len(text).to_bytes(8, "little") + text.encode() + bytes(body)


def tensor(dtype: str, shape: list[int], *offsets: int) -> str:
    return json.dumps({"dtype": dtype, "shape": shape, "data_offsets": offsets})


def one(dtype: str, shape: list[int], *offsets: int, body: int = 8) -> bytes:
    """Return a buffer of one array."""
    return header('{"labels":' + tensor(dtype, shape, *offsets) + "}", body)


TWO = tensor("I64", [1], 0, 8)
NO_BUFFERS: dict[str, bytes] = {
    "nothing": b"",
    "a few bytes": b"1234567",
    "a header of 2**64 bytes": b"\xff" * 8 + b"{}",
    "a header longer than the buffer": (10**9).to_bytes(8, "little") + b"{}",
    "a header that is no JSON": header("{"),
    "a header that nests": header(BOMB),
    "terabytes": one("I64", [2**40], 0, 2**43),
    "a shape that overflows": one("I64", [2**33, 2**33], 0, 8),
    "a shape below zero": one("I64", [-1], 0, 8),
    "nothing, hugely": one("I8", [0, 2**60], 0, 0, body=0),
    "a huge number of nothings": one("I8", [2**60, 0], 0, 0, body=0),
    "too many axes": one("I64", [1] * 100, 0, 8),
    "offsets that overlap": header('{"labels":' + TWO + ',"several":' + TWO + "}"),
    "offsets the wrong way": one("I64", [1], 8, 0),
    "offsets with a hole": one("I64", [1], 8, 16, body=16),
    "bytes nobody owns": one("I64", [1], 0, 8, body=80),
    "a type NumPy lacks": one("BF16", [4], 0, 8),
    "a type nobody knows": one("PICKLE", [8], 0, 8),
    "a name twice": header('{"labels":' + TWO + ',"labels":' + TWO + "}"),
    "metadata that is none": header('{"__metadata__":{"a":1}}', 0),
}
BUFFERS: dict[str, Case] = {
    f"{kind} of {name}": (data(kind, content), kind)
    for name, content in NO_BUFFERS.items()
    for kind in ("entries", "lesson", "mapping", "change", "codes", "features")
}
