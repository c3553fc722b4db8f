"""Writes small collections of the present format, and beside each what should be read from it.

    python -m tests.compat.make

Run it once when the format's version changes, or a part of it is new; files that are there stay as
they are: every later everhash must read them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import everhash
from everhash import Collection, OnlineHasher
from everhash.store.schema import VERSION
from everhash.store.store import Store

HERE = Path(__file__).parent
GIF = b"GIF89a" + bytes(range(40))
PROBES = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)


def seen(col: Collection) -> dict[str, Any]:
    """What there is to see of a collection, as JSON."""
    found = col.search(PROBES, 5, "hamming")
    return {
        "entries": [
            [entry.id, sorted(map(repr, entry.labels)), entry.home, _bits(entry.code)]
            for entry in col.entries()
        ],
        "labels": [repr(label) for label in col.hasher.labels_],
        "codewords": col.hasher.codewords_.tolist(),
        "found": found.ids.tolist(),
        "distances": found.distances.tolist(),
        "carried": [
            [carried.payload, carried.thumbnail and carried.thumbnail.hex()]
            for carried in col.attachments(entry.id for entry in col.entries())
        ],
        "options": [col.stats()[name] for name in ("coding", "dim", "bits", "read_only")],
    }


def _bits(code: Any) -> str | None:
    return None if code is None else "".join("01"[int(bit)] for bit in code)


def write(path: Path, coding: str, *, keep: bool, learner: str = "sgd") -> None:
    """A collection with a part of every kind, and entries that carry something."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((60, 6)).astype(np.float32), np.arange(60) % 7
    hasher = OnlineHasher(8, 3, learner=learner, features=5 if learner == "exact" else 1000)
    with everhash.create(path, 6, hasher=hasher, coding=coding, keep_features=keep) as col:
        if learner == "exact":  # beyond what is kept as rows, with something taken back
            many = rng.standard_normal((1200, 6)).astype(np.float32)
            col.learn(many, np.arange(1200) % 5)
            col.forget(many[1100:1110], np.arange(1100, 1110) % 5)
        col.learn(X[:20], y[:20])
        col.ingest(X[20:35], [["é", 7, b"raw", ("a", 1)][i % 4] for i in range(15)])
        col.add(X[35:50], [f"e{i}" for i in range(15)], [None, {0, 1}, 2] * 5)
        col.learn(X[50:52], y[50:52])
        col.refresh()
        *_, last = col.add(X[52:56])
        col.label(["e0"], [{"late", 3}])
        col.remove(["e3", 2])
        col.ingest(X[56:], [3] * 4, payloads=[{"é": [1, 2.5, None]}, "text", None, 0])
        col.attach(["e1", 5, last], payloads=[True, "x" * 4000, "gone"], thumbnails=[GIF] * 3)
        col.remove([last])


def main() -> None:
    """Write the files of this version."""
    for name, coding, keep, learner in (
        ("home", "home", True, "sgd"),
        ("full", "full", True, "sgd"),
        ("bare", "home", False, "sgd"),
        ("exact", "home", True, "exact"),
    ):
        path = HERE / f"v{VERSION}-{name}.ever"
        if path.exists():
            continue
        write(path, coding, keep=keep, learner=learner)
        with everhash.open(path, readonly=True) as col:
            text = json.dumps(seen(col), indent=None)
        path.with_suffix(".json").write_text(text + "\n")
        store = Store.open(path, readonly=True)
        kinds = sorted({key.kind for key in store.parts})
        store.close()
        print(path.name, path.stat().st_size, "bytes:", *kinds)  # noqa: T201


if __name__ == "__main__":
    main()
