"""What the power is lost in: calls of a script, copies, exports, upgrades, and the next opening."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import everhash
from everhash import Collection, OnlineHasher
from everhash.cli.export import export
from everhash.store.schema import VERSION
from tests.compat.make import HERE as OLD_FILES
from tests.compat.make import seen
from tests.crash.disk import Folder
from tests.crash.losing import ABSENT, DAMAGED
from tests.crash.recording import Recorder, write_folder
from tests.crash.script import Script, check_sound, check_state, create, observe

SETTINGS = {"commit": "commit", "interval": "interval:3600s", "none": "none"}
"""How files are written. The interval never ends by itself: the log is synced when a case says."""
REOPEN, ASK = 5, 2
"""After so many calls a file is closed and opened again, or its log is synced."""


class Calls:
    """Creates a collection, runs a script, and closes and opens it now and then.

    State n of the model is that after n calls.

    Args:
        setting: what is promised.
        durability: what the store is told; by default the same.
        start: a state, and a folder that has it, to go on from instead.
    """

    name = "a.ever"

    def __init__(
        self,
        setting: str,
        script: Script,
        *,
        durability: str = "",
        start: tuple[int, Folder] | None = None,
    ) -> None:
        self.setting, self._script = setting, script
        self._durability, self._start = durability or SETTINGS[setting], start
        self._rows: dict[str, int] = {}

    def prepare(self, folder: Path) -> None:
        write_folder(folder, {} if self._start is None else self._start[1])

    def run(self, recorder: Recorder, folder: Path) -> None:
        path, first = folder / self.name, 0
        if self._start is None:
            recorder.begin(0, "create")
            collection = create(path, self._durability)
            recorder.promise(0)
        else:
            first = self._start[0]
            recorder.begin(first, "open after a loss")
            recorder.promise(first)
            collection = everhash.open(path, durability=self._durability)
        self._know(collection, first)
        self._go_on(recorder, collection, path, first)

    def _go_on(self, recorder: Recorder, collection: Collection, path: Path, first: int) -> None:
        again = " after a loss" * (self._start is not None)
        for number, call in enumerate(self._script.calls[first:], first):
            recorder.begin(number + 1, call.method + again)
            call.run(collection)
            self._know(collection, number + 1)
            self._acknowledge(recorder, collection, number + 1)
            if (number + 1) % REOPEN == 0:
                self._close(recorder, collection, number + 1, again)
                recorder.begin(number + 1, "open" + again)
                collection = everhash.open(path, durability=self._durability)
        self._close(recorder, collection, len(self._script.calls), again)

    def _acknowledge(self, recorder: Recorder, collection: Collection, state: int) -> None:
        if self.setting == "commit":
            recorder.promise(state)
        syncer = collection._store._file.syncer
        if syncer is not None and state % ASK == 0:
            syncer._sync()
            recorder.promise(state)

    def _close(self, recorder: Recorder, collection: Collection, state: int, again: str) -> None:
        recorder.begin(state, "close" + again)
        collection.close()
        if self.setting != "none":
            recorder.promise(state)

    def _know(self, collection: Collection, state: int) -> None:
        self._rows[rows_of(collection)] = state

    def look(self, folder: Path, *, full: bool) -> int:
        path = folder / self.name
        if not path.exists():
            if full:
                create(path).close()  # nothing that was left stands in its way
            return ABSENT
        if self.setting == "none" and is_damaged(path):
            return DAMAGED
        with everhash.open(path, durability="none") as collection:
            found = self._rows.get(rows_of(collection))
            if found is None or full:
                found = self._which(collection)
        if full:
            self._go_further(path, found)
        return found

    def _which(self, collection: Collection) -> int:
        state = observe(collection)
        assert state in self._script.states, "not the state after any call"
        return self._script.states.index(state)

    def _go_further(self, path: Path, found: int) -> None:
        """Check all of the file, and that the next call works."""
        check_sound(path)
        if found < len(self._script.calls):
            with everhash.open(path, durability="none") as collection:
                self._script.calls[found].run(collection)
                check_state(observe(collection), self._script.states[found + 1], when="the next")
            check_sound(path)


def rows_of(collection: Collection) -> str:
    """Return a digest of all rows of all tables, as the collection's own connection sees them."""
    total = hashlib.sha1(usedforsecurity=False)
    for table in ("head", "part", "attached"):
        for row in collection._store.run(f"SELECT * FROM {table}"):  # noqa: S608
            total.update(repr(row).encode())
    return total.hexdigest()


def is_damaged(path: Path) -> bool:
    """Whether everhash says that a file is damaged."""
    return bool(everhash.verify(path).problems)


class Snapshot(Calls):
    """Takes a copy of a collection that is being written; the copy has state 0."""

    name = "copy.ever"

    def __init__(self, setting: str, script: Script) -> None:
        super().__init__(setting, Script(script.calls[:0], script.states[-1:]))
        self._before = script.calls

    def run(self, recorder: Recorder, folder: Path) -> None:
        with create(folder / "a.ever", self._durability) as collection:
            for call in self._before:
                call.run(collection)
            recorder.begin(0, "snapshot")
            collection.snapshot(folder / self.name)
            recorder.promise(0)


class Replaced:
    """Writes a file that programs other than SQLite read; it has one of some contents, whole.

    State n of the model is that after n files were written under the name.
    """

    setting = "commit"
    name = "out.csv"

    def __init__(self) -> None:
        self._known: list[bytes] = []

    def prepare(self, folder: Path) -> None:
        pass

    def run(self, recorder: Recorder, folder: Path) -> None:
        raise NotImplementedError

    def _write(self, recorder: Recorder, what: str, path: Path, write: Any) -> None:
        recorder.begin(len(self._known), what)
        write()
        self._known.append(path.read_bytes())
        recorder.promise(len(self._known) - 1)

    def look(self, folder: Path, *, full: bool) -> int:  # noqa: ARG002 - all of it is compared
        path = folder / self.name
        if not path.exists():
            return ABSENT
        assert path.read_bytes() in self._known, "a file that was never written"
        return self._known.index(path.read_bytes())


class Export(Replaced):
    """Exports a collection to a table."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def prepare(self, folder: Path) -> None:
        with create(folder / "a.ever") as collection:
            for call in self._script.calls:
                call.run(collection)

    def run(self, recorder: Recorder, folder: Path) -> None:
        path = folder / self.name
        self._write(recorder, "export", path, lambda: export(folder / "a.ever", path))


class Saved(Replaced):
    """Saves a hasher, and later one in its place."""

    name = "model.safetensors"

    def run(self, recorder: Recorder, folder: Path) -> None:
        path, hasher = folder / self.name, OnlineHasher(8, 2, features=3)
        for label in ("cat", "dog"):
            hasher.partial_fit([[1.0, 2.0, 3.0]], [label])
            self._write(recorder, "save a hasher", path, lambda: hasher.save(path))


class Upgrade:
    """Brings an old file to the newest version: state 0 is before, state 1 is after."""

    setting = "commit"

    def __init__(self, file: str) -> None:
        self._file, self._wanted = file, json.loads((OLD_FILES / f"{file}.json").read_text())
        self._wanted.setdefault("carried", [[None, None]] * len(self._wanted["entries"]))

    def prepare(self, folder: Path) -> None:
        shutil.copy(OLD_FILES / f"{self._file}.ever", folder / "old.ever")

    def run(self, recorder: Recorder, folder: Path) -> None:
        recorder.begin(1, "upgrade")
        recorder.promise(0)
        everhash.upgrade(folder / "old.ever")
        recorder.promise(1)

    def look(self, folder: Path, *, full: bool) -> int:
        path = folder / "old.ever"
        with everhash.open(path, readonly=True) as collection:
            version = collection._store.version
            if full:
                found = json.loads(json.dumps(seen(collection)))
                assert {name: found[name] for name in self._wanted} == self._wanted
        if full:
            check_sound(path)
            everhash.upgrade(path)
            check_sound(path)
        return int(version == VERSION)
