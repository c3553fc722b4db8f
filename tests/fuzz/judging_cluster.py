"""Start clusters from files nobody should trust, under a limit of memory, and report what came.

    python -m tests.fuzz.judging_cluster GOOD < folders     one JSON object a line

See `judging`, which does so for a collection's file.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import shutil
import sys
import warnings
from pathlib import Path

from everhash.cluster.lead_file import LeadFile
from everhash.errors import EverhashError
from everhash.learn.hasher import OnlineHasher
from tests.cluster.in_process import InProcess, on_cluster
from tests.fuzz.judging import HANGS, limited
from tests.fuzz.samples import some_rows

ROWS, LABELS = some_rows(20, 3, 2)
OTHERS = some_rows(4, 3, 2, seed=5)[0]


def write_cluster(folder: Path) -> None:
    """Write a good cluster of two shards: labelled and unlabelled entries, lessons, refusals."""
    hasher = OnlineHasher(3, 2, features=4, random_state=0).begin(3)
    members = InProcess(folder, hasher, 2)
    collection = on_cluster(members)
    collection.ingest(ROWS[:12], [*LABELS[:11], None], [*range(11), "text"])
    collection.add(ROWS[12:16], thumbnails=[b"GIF89a" + bytes(9), None, None, None])
    collection.label([3], ["new"])
    with contextlib.suppress(EverhashError):
        collection.remove(["nobody"])
    collection.learn(ROWS[16:], LABELS[16:])
    members.close()


def read(folder: Path) -> list[str]:
    """Start the lead alone."""
    LeadFile.copies_in(folder / "lead.ever")
    file = LeadFile.open(folder / "lead.ever", "none")
    try:
        lead = file.lead()
        assert len(lead.replicas) <= 2 * 5
    finally:
        file.close()
    return []


def work(folder: Path) -> list[str]:
    """Start the lead and the shards from a copy of the files, read and write."""
    copy = folder.with_name(f"{folder.name} at work")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    members = InProcess.opened(copy)
    try:
        collection = on_cluster(members, patience=2)
        collection.stats()
        collection.search(OTHERS, 3)
        collection.search(OTHERS, 3, "likeness")
        collection.ingest(OTHERS, [LABELS[0], "newer", None, LABELS[1]], ["a", "b", "c", "d"])
        collection.label([13], ["new"])
        collection.remove(["a"])
        found = list(collection.entries())
        assert len(found) == len(collection)
        collection.attachments([one.id for one in found])
        collection.refresh()
        collection.drop_label("new")
    finally:
        members.close()
    return []


CALLS = {"read": read, "work": work}


def main(good: str) -> None:
    for call in CALLS.values():
        assert call(Path(good)) == []
    warnings.simplefilter("error")
    for line in sys.stdin:
        folder = Path(line.rstrip("\n"))
        faulthandler.dump_traceback_later(HANGS, exit=True)
        report = {name: limited(folder, call) for name, call in CALLS.items()}
        faulthandler.cancel_dump_traceback_later()
        sys.stdout.write(json.dumps(report) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
