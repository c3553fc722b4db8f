"""A first day asks for few kernels, and none before there is something to do."""

from __future__ import annotations

import json
import subprocess
import sys

PATH = """
import json, sys, tempfile
from pathlib import Path

import numpy as np

import everhash
from everhash import kernels

def asked():
    compiling = sys.modules.get("everhash.kernels.compiling")
    return sorted(compiling.READY) if compiling else []

rng = np.random.default_rng(0)
X = rng.standard_normal((400, 64)).astype(np.float32)
y = [i % 10 if i % 4 else None for i in range(400)]
steps = {"import": asked()}
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "first.ever")
    with everhash.create(path, 64) as collection:
        steps["create"] = asked()
        for part in (slice(200), slice(200, 400)):
            collection.ingest(X[part], y[part])
        steps["ingest"] = asked()
        collection.search(X[:97], by="meaning")
        steps["meaning"] = asked()
        for by in ("likeness", "relevance"):
            collection.search(X[:97], by=by)
        collection.refresh()
    with everhash.open(path) as collection:
        collection.search(X[:1])
steps["all"] = asked()
print(json.dumps(steps))
"""
INGEST = {
    *("lift_into", "unit_rows", "margins_into", "encode", "halve", "unhalve"),
    *("settle", "find_stale", "recompute"),
    *("insert_postings", "copy_postings", "shell_keys"),
}
MEANING = INGEST | {"encode_queries", "search_meaning", "own_cosines_at"}
ALL = MEANING | {"cosines_at", "unit_rows_at", "offer_products", "add_votes"}


def test_a_first_day_asks_for_these_kernels_only() -> None:
    command = [sys.executable, "-c", PATH]
    steps = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert {name: set(asked) for name, asked in steps.items()} == {
        "import": set(),
        "create": set(),
        "ingest": INGEST,
        "meaning": MEANING,
        "all": ALL,
    }
