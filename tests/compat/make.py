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
from everhash.index import index
from everhash.store.schema import VERSION
from everhash.store.store import Store

HERE = Path(__file__).parent
GIF = b"GIF89a" + bytes(range(40))
PROBES = np.random.default_rng(5).standard_normal((4, 6)).astype(np.float32)


def seen(col: Collection) -> dict[str, Any]:
    """What there is to see of a collection, as JSON. Files before version 3 say less."""
    found, by_meaning = (col.search(PROBES, 5, by) for by in ("hamming", "meaning"))
    ids = [entry.id for entry in col.entries()]
    return {
        "entries": [
            [entry.id, sorted(map(repr, entry.labels)), entry.home, _bits(entry.code)]
            for entry in col.entries()
        ],
        "labels": [repr(label) for label in col.hasher.labels_],
        "codewords": col.hasher.codewords_.tolist(),
        "found": found.ids.tolist(),
        "distances": found.scores.tolist(),
        "carried": [
            [carried.payload, carried.thumbnail and carried.thumbnail.hex()]
            for carried in col.attachments(ids)
        ],
        "options": [col.stats()[name] for name in ("coding", "dim", "bits", "unrefreshable")],
        "kept": [col.stats()[name] for name in ("keep_features", "likeness")],
        "guesses": [repr(entry.guess) for entry in col.entries()],
        "meant": [by_meaning.ids.tolist(), np.round(by_meaning.scores, 4).tolist()],
        "likeness": [[_whole(value) for value in row] for row in by_meaning.likeness.tolist()],
    }


def _whole(value: float) -> int | None:
    """A cosine in thousandths; None for none."""
    return None if np.isnan(value) else round(1000 * value)


def _bits(code: Any) -> str | None:
    return None if code is None else "".join("01"[int(bit)] for bit in code)


def write(path: Path, *, keep: str, likeness: bool, learner: str) -> None:
    """A collection with a part of every kind, and entries that carry something."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((80, 6)).astype(np.float32), np.arange(80) % 7
    hasher = OnlineHasher(8, 3, learner=learner, features=5 if learner == "exact" else 1000)
    options: dict[str, Any] = {"keep_features": keep, "likeness": likeness}
    with everhash.create(path, 6, hasher=hasher, auto_refresh=False, **options) as col:
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
        col.label(["e0"], [{"late", 3}], teach=keep == "all")
        col.remove(["e3", 2])
        col.ingest(X[56:60], [3] * 4, payloads=[{"é": [1, 2.5, None]}, "text", None, 0])
        col.attach(["e1", 5, last], payloads=[True, "x" * 4000, "gone"], thumbnails=[GIF] * 3)
        col.remove([last])
        col.upsert(X[60:62], ["e3", "e6"], [5, None], payloads=["again", None], teach=False)
        col.rename_label("é", "è")
        if keep == "all":
            col.label(["e9", "e2"], ["late", {"odd", 7}])
            col.unlabel([5, "e4"])
            col.update(["e1"], X[62:63])
            col.merge_labels("late", into=3)
            col.drop_label(b"raw")
            col.compact()
            col.remove(["e5"])
            col.label(["e7"], ["last"])
            setattr(index, "LEAST", 20)  # noqa: B010 - so few entries have cells nowhere else
            col.refresh()
            col.add(X[63:66])


def main() -> None:
    """Write the files of this version."""
    samples: dict[str, dict[str, Any]] = {
        "all": {"keep": "all", "likeness": True, "learner": "exact"},
        "bare": {"keep": "none", "likeness": False, "learner": "sgd"},
    }
    for name, options in samples.items():
        path = HERE / f"v{VERSION}-{name}.ever"
        if path.exists():
            continue
        write(path, **options)
        with everhash.open(path, readonly=True) as col:
            text = json.dumps(seen(col), indent=None)
        path.with_suffix(".json").write_text(text + "\n")
        store = Store.open(path, readonly=True)
        kinds = sorted({key.kind for key in store.parts})
        store.close()
        print(path.name, path.stat().st_size, "bytes:", *kinds)  # noqa: T201


if __name__ == "__main__":
    main()
