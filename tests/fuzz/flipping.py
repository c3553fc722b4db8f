"""Flip bits of a collection's file, one at a time, and see who notices.

    python -m tests.fuzz.flipping FILE WORD < numbers of bits

Prints one JSON object: how many flips `open` noticed, how many `verify` noticed, how many changed
nothing, and what went wrong. It is a process of its own so that several can run at once, and so
that a crash is a result and not the end of the test.

That a flip changed nothing is proved in one of two ways. Of one bit in WORD, everything that the
public interface can read is held against what it was. Of the others, what the store hands out may
be instead, which takes a tenth of the time: head, list of parts, all their bytes, and what entries
carry; of these alone a collection is made.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import everhash
from everhash.errors import CollectionFileError, StoreError
from everhash.store.store import Store
from tests.fuzz.samples import reading

HANGS = 600.0
"""Seconds after which a hundred flips have hung the process, however busy the machine is."""


def handed_out(path: Path) -> Any:
    """Return everything a collection is made of, or None if the store refuses to hand it out."""
    try:
        store = Store.open(path, readonly=True)
    except (CollectionFileError, StoreError):
        return None
    try:
        found = {key: store.read_bytes(key) for key in store.parts}
        carried = [(blob.number, blob.checked(path)) for blob in store.all_attached()]
        sound = store.run("PRAGMA integrity_check").fetchall() == [("ok",)]
        listed = store.about, store.commit, store.parts, store.attached
        return (*listed, found, carried) if sound else None
    except CollectionFileError:
        return None
    finally:
        store.close()


def read_all(path: Path) -> Any:
    """Return everything that can be read, after `open` has let the file through."""
    with everhash.open(path, readonly=True) as collection:
        try:
            return reading(collection)
        except CollectionFileError:  # of features, which are read only when they are needed
            return None


def judge(path: Path, original: Any, *, patient: bool = True) -> str:
    """Return who noticed that a file is not what it was, or that it reads as before.

    `patient` reads all of it even if `verify` has something to say.
    """
    try:
        if patient:
            found = read_all(path)
        else:
            everhash.open(path, readonly=True).close()
    except (CollectionFileError, StoreError):
        return "open"
    if everhash.verify(path).problems:
        return "verify"
    found = found if patient else read_all(path)
    return "harmless" if found == original else "not noticed by anybody"


class Flipper:
    """Flips bits of a file and puts them back."""

    def __init__(self, path: Path, word: int) -> None:
        self.path, self.word, self.data = path, word, path.read_bytes()
        self.original, self.handed_out = read_all(path), handed_out(path)
        self.last = ""
        # one descriptor for all flips: closing another one would drop SQLite's locks
        self.file = os.open(path, os.O_RDWR)

    def flip(self, number: int) -> str:
        """Flip one bit, and return who noticed."""
        position, bit = divmod(number, 8)
        os.pwrite(self.file, bytes([self.data[position] ^ 1 << bit]), position)
        try:
            self.last = self._judge(patient=(position + bit) % self.word == 0)
        except Exception as error:  # what is not typed is what we look for
            self.last = f"{type(error).__name__}: {error}"
        os.pwrite(self.file, self.data[position : position + 1], position)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return self.last

    def _judge(self, *, patient: bool) -> str:
        # harmless bits lie together: the cheap proof is worth trying after one of them
        if not patient and self.last == "harmless" and handed_out(self.path) == self.handed_out:
            return "harmless"
        return judge(self.path, self.original, patient=patient)


def main(name: str, word: str) -> None:
    flipper = Flipper(Path(name), int(word))
    warnings.simplefilter("error")
    counts: Counter[str] = Counter()
    failures, slowest = [], 0.0
    for i, number in enumerate(map(int, sys.stdin.read().split())):
        if i % 100 == 0:
            faulthandler.dump_traceback_later(HANGS, exit=True)
        start = time.process_time()
        verdict = flipper.flip(number)
        slowest = max(slowest, time.process_time() - start)
        counts[verdict] += 1
        if verdict not in ("open", "verify", "harmless"):
            failures.append(f"byte {number // 8}, bit {number % 8}: {verdict}")
    if flipper.path.read_bytes() != flipper.data:
        failures.append("reading has written to the file")
    json.dump({"counts": counts, "failures": failures, "slowest": slowest}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
