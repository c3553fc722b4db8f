"""What must be in the file: a dictionary, and the log of calls that brings it up to date.

The writer notes each call before it is made and again when it has returned; both lines reach the
disk at once. After a kill the file must equal the dictionary after all calls that returned, or
that with the call in flight.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everhash import Collection

Labels = dict[str, str | None]
"""The label of each id; None for none."""

LEFT = ("between calls", "in a call that changes nothing", "call dropped", "call kept")
"""What a kill may leave."""


@dataclass(frozen=True)
class Effect:
    """What a call changes."""

    put: Labels = field(default_factory=dict)
    """Entries that are there afterwards, with these labels."""
    gone: list[str] = field(default_factory=list)
    label: tuple[str, str | None] | None = None
    """A label and what becomes of it: another one, or none."""

    def on(self, entries: Labels) -> Labels:
        """Return entries as they are afterwards."""
        after = {**entries, **self.put}
        for name in self.gone:
            del after[name]
        if self.label is not None:
            old, new = self.label
            after = {name: new if label == old else label for name, label in after.items()}
        return after


class Log:
    """The lines that a writer leaves; each is on the disk when `note` returns."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def note(self, **line: Any) -> None:
        """Write a line."""
        self._file.write(f"{json.dumps({'at': time.time(), **line})}\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class Follower:
    """Reads the lines that are new since it last looked; half a line waits for its end."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def lines(self) -> list[dict[str, Any]]:
        """Return what is new."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self._read += len(text)
        return [json.loads(line) for line in text.splitlines()]

    def drop_rest(self) -> None:
        """Cut off half a line that a killed writer left."""
        if self._path.exists():
            os.truncate(self._path, self._read)


class Model:
    """The entries that must be there, and the call in flight."""

    def __init__(self) -> None:
        self.entries: Labels = {}
        self.flying: Effect | None = None
        self.returned = 0

    def take(self, line: dict[str, Any]) -> None:
        """Follow a line of the log."""
        if "begin" in line:
            effect = line["begin"]
            label = effect["label"] and tuple(effect["label"])
            self.flying = Effect(effect["put"], effect["gone"], label)
        elif "end" in line and self.flying is not None:
            self.entries, self.flying = self.flying.on(self.entries), None
            self.returned += 1

    def settle(self, found: Labels) -> str:
        """Go on from what a file holds after a kill, and say what that is.

        Returns:
            one of `LEFT`, or what is wrong.
        """
        flying, self.flying = self.flying, None
        if found == self.entries:
            return LEFT[0] if flying is None else LEFT[1] if flying == Effect() else LEFT[2]
        if flying is not None and found == flying.on(self.entries):
            self.entries = found
            return LEFT[3]
        lost, more = self.entries.keys() - found.keys(), found.keys() - self.entries.keys()
        other = [name for name in self.entries.keys() & found if self.entries[name] != found[name]]
        self.entries = found
        return f"{len(lost)} lost, {len(more)} more, {len(other)} with other labels"


def entries_of(collection: Collection) -> Labels:
    """Return the label of each entry."""
    found: Labels = {}
    for entry in collection.entries():
        labels = [str(label) for label in entry.labels]
        found[str(entry.id)] = labels[0] if labels else None
    return found
