"""What many kills came to: rows, and the page that shows them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from everhash.bench.machine import describe_machine
from everhash.bench.reporting.document import Bullets, Heading, ReportPart, markdown
from everhash.bench.reporting.tables import Table

Counts = Counter[tuple[str, ...]]
COUNTED = ("kills", "faults", "struck")
FAULTS = ("write", "sync", "truncate", "read", "memory")
"""What can fail."""
MAKER = "<!-- made by: python -m tests.crash.kills -->"
HEAD = (
    "A process writes to a collection and gets SIGKILL at a random instant. After every kill the "
    "file is read by `verify`, opened, and compared with a collection in memory that made the same "
    "calls undisturbed: entries, labels, attachments, codewords, margins, the answers to searches "
    "and the counts must equal those after the last call that had returned, or those after the "
    "call in flight. Anything else is a violation. The next process goes on from there. Dropped: "
    "the file is as it was before the call. Kept: it is as after the call, although that had not "
    "returned."
)
SCRIPT = (
    "Scripts have 90 calls on entries of 16 features, and each piece of 250 kills has a script of "
    "its own. Sizes inside the store are set small, so that the parts of a file are merged, folded "
    "and compacted, and its log written back, within a few calls. A call that publishes solves all "
    'labels again. Of four files two are written with durability "commit", one with '
    '"interval:50ms", one with "none": a process that dies loses nothing in any of them.'
)
FAILED = (
    "Every write, sync, truncation and read that SQLite makes of its files and every allocation "
    "it asks for is failed, one after the other, in every call of a script: once alone, and once "
    "with all that follow. A call that raises must leave the collection, what another connection "
    "reads, and what a crash right then would leave as they were. A call that goes on, because the "
    "fault hit work that can wait, must be there in full."
)
STRUCK = (
    "The same script, and the process dies by SIGKILL at its first, second, third ... write, sync "
    "or truncation; of a write, half reaches the file."
)


@dataclass
class Record:
    """Kills and faults, counted by what they hit and what came of it."""

    part: str = ""
    kills: Counts = field(default_factory=Counter)
    """By call, where, and outcome; the call and the outcome are empty outside calls."""
    faults: Counts = field(default_factory=Counter)
    """By kind, "once" or "lasting", and outcome."""
    struck: Counts = field(default_factory=Counter)
    """Kills at operations, by kind and outcome."""
    returned: int = 0
    """Calls that had returned."""
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0
    ended: float = 0.0
    """Seconds since 1970."""

    def as_json(self) -> dict[str, Any]:
        """Return what travels between processes."""
        counts = {name: [[*k, n] for k, n in getattr(self, name).items()] for name in COUNTED}
        named = ("part", "returned", "violations", "seconds", "ended")
        return {**counts, **{name: getattr(self, name) for name in named}}

    @classmethod
    def of(cls, value: dict[str, Any]) -> Record:
        """Return what has travelled."""
        kills, faults, struck = (
            Counter({tuple(row[:-1]): int(row[-1]) for row in value[name]}) for name in COUNTED
        )
        rest = (value[name] for name in ("returned", "violations", "seconds", "ended"))
        return cls(value["part"], kills, faults, struck, *rest)

    def add(self, other: Record) -> None:
        """Count what another piece of work has counted."""
        for name in COUNTED:
            getattr(self, name).update(getattr(other, name))
        self.returned += other.returned
        self.violations += other.violations

    def summary(self) -> str:
        """Return one line for a log."""
        shown = (
            f"{counts.total():,} {name}" for name in COUNTED if (counts := getattr(self, name))
        )
        return f"{', '.join(shown)}, {len(self.violations)} violations"


def keep(file: Path, record: Record, options: dict[str, int], why: str = "") -> None:
    """Write what a part came to, in place of what it came to before."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = [row for row in map(json.loads, lines) if row["part"] != record.part]
    about = {"options": options, "why": why, "machine": describe_machine()}
    rows.append({**record.as_json(), **about})
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def write_page(file: Path) -> None:
    """Write the page beside the file of rows."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    text = f"{MAKER}\n{markdown(_parts(rows))}"
    file.with_suffix(".md").write_text(text, encoding="utf-8")


def _parts(rows: list[dict[str, Any]]) -> Iterator[ReportPart]:
    records, options = [Record.of(row) for row in rows], rows[-1]["options"]
    total = Record()
    for record in records:
        total.add(record)
    yield Heading(1, "Kills and faults")
    yield HEAD
    yield Bullets(tuple(_facts(total, options, rows[-1]["machine"])))
    for violation in total.violations:
        yield f"Violation: {violation}"
    yield _when(records)
    for row in rows:
        if row["why"]:
            yield f"Made again, {row['part']}: {row['why']}"
    if total.kills:
        yield Heading(2, f"{total.kills.total():,} kills at random instants")
        yield SCRIPT
        yield _places(total.kills)
        yield "Of the kills in calls, by call:"
        yield _calls(total.kills)
    if total.faults:
        yield Heading(2, f"{total.faults.total():,} faults, {options['calls']} calls")
        yield FAILED
        yield _fault_table(total.faults)
    if total.struck:
        yield Heading(2, f"{total.struck.total():,} kills at every operation")
        yield STRUCK
        yield _struck_table(total.struck)


def _facts(total: Record, options: dict[str, int], machine: str) -> Iterator[str]:
    yield f"**Violations: {len(total.violations)}**"
    faults = f" --faults --calls {options['calls']}" if total.faults else ""
    kills = f"--kills {options['kills']} --seed {options['seed']}"
    yield f"`python -m tests.crash.kills {kills}{faults}`"
    yield f"{total.returned:,} calls of the scripts had returned before a kill, and all were there"
    yield machine


def _when(records: list[Record]) -> Table:
    """Return when each part was made."""
    lines = []
    for record in records:
        made = sum(getattr(record, name).total() for name in COUNTED)
        ended = f"{datetime.fromtimestamp(record.ended, UTC):%Y-%m-%d %H:%M} UTC"
        minutes, wrong = f"{record.seconds / 60:.0f}", f"{len(record.violations)}"
        lines.append((record.part, f"{made:,}", minutes, ended, wrong))
    head = ("part", "kills or faults", "minutes", "ended", "violations")
    return Table(head, tuple(lines), (0, 3))


def _places(kills: Counts) -> Table:
    """Return how many kills came where."""
    where = Counter[str]()
    for (_, place, _), n in kills.items():
        where[place] += n
    lines = tuple((place, f"{n:,}", f"{n / kills.total():.1%}") for place, n in where.most_common())
    return Table(("the kill came", "kills", "share"), lines)


def _calls(kills: Counts) -> Table:
    """Return how many kills hit each call, and what came of it."""
    lines = []
    for call in sorted({call for call, _, _ in kills if call}):
        dropped, kept = (kills[call, "in a call", outcome] for outcome in ("dropped", "kept"))
        lines.append((call, f"{dropped + kept:,}", f"{dropped:,}", f"{kept:,}"))
    return Table(("call", "kills", "dropped", "kept"), tuple(lines))


def _fault_table(faults: Counts) -> Table:
    lines = []
    for kind, lasting in dict.fromkeys(key[:2] for key in faults):
        raised, went_on = (faults[kind, lasting, outcome] for outcome in ("raised", "went on"))
        lines.append((kind, lasting, f"{raised + went_on:,}", f"{raised:,}", f"{went_on:,}"))
    head = ("what fails", "how long", "faults", "the call raised", "it went on")
    return Table(head, tuple(lines), (0, 1))


def _struck_table(struck: Counts) -> Table:
    outcomes = ("dropped", "kept", "outside calls")
    lines = tuple(
        (kind, *(f"{struck[kind, outcome]:,}" for outcome in outcomes))
        for kind in dict.fromkeys(kind for kind, _ in struck)
    )
    return Table(("the process died in its n-th", *outcomes), lines)
