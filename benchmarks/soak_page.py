"""The page and the figure of `soak.py`, from its rows alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from everhash.bench.reporting.document import Bullets, Heading, ReportPart, markdown
from everhash.bench.reporting.tables import NOTHING, Table

Row = dict[str, Any]
MAKER = "<!-- made by: python benchmarks/soak.py --page -->"
SETTINGS = ("minutes", "kill_every", "entries", "calls", "data", "seed")
"""The options that a row keeps."""
ROWS = {
    "sets": "the 181,208 rows of `large.py`, 64 features, 534 labels, 100 of them at first",
    "digits": "scikit-learn's digits, 64 features, their labels split into 30",
}
HEAD = (
    "One process writes to one file, others search it, and the writer gets SIGKILL again and "
    "again. It notes every call in a log of its own before the call and when it has returned, and "
    "each line reaches the disk before it goes on. After a kill `verify` reads the whole file, and "
    "every entry and its label is compared with the calls that had returned, and with the one in "
    "flight, which may be there in full or not at all. Anything else is a violation, and so is a "
    "reader or a writer that raises."
)
BUSY = (
    "Milliseconds by the clock, on a machine that did other work beside this: its load is in the "
    "last column. A search is one row, k = 10, by a reader that catches up twice a second."
)
GROWTH = (
    "Entries come and go, so that their number stays about the same; labels come, are renamed, "
    "merged and dropped. Memory is resident memory in MB, at the median of the quarter's looks, "
    "one every five seconds; the writer lives from one kill to the next only. The log beside the "
    "file keeps its greatest length and is written from its start again."
)


def write(file: Path) -> None:
    """Write the page and the figure beside the file of rows."""
    about, *rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    draw(rows, file.with_suffix(""))
    content = markdown(parts(about, rows)).replace("FIGURE", f"![{file.stem}]({file.stem}.png)")
    file.with_suffix(".md").write_text(f"{MAKER}\n{content}", encoding="utf-8")


def parts(about: Row, rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield all parts of the page."""
    quarters = by_quarter(rows)
    yield Heading(1, "An hour of mixed work, and a kill every minute")
    yield HEAD
    yield Bullets(tuple(facts(about, rows)))
    for violation in about["violations"]:
        yield f"Violation: {violation}"
    yield "FIGURE"
    yield Heading(2, "Latencies by quarter of the time")
    yield BUSY
    yield latencies(quarters)
    yield Heading(2, "Memory and file by quarter of the time")
    yield GROWTH
    yield growth(quarters)
    yield verdict(about, quarters)
    yield Heading(2, "Calls")
    yield calls(rows)


def facts(about: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Yield what came of it, and how it was done."""
    left = Counter(row["left"] for row in rows)
    reopened = [row["reopen"] for row in rows if row["reopen"] is not None]
    made = sum(len(times) for row in rows for times in row["calls"].values())
    yield f"**Violations: {len(about['violations'])}**"
    yield f"{rows[-1]['minute']:.0f} minutes, {len(rows)} kills, {made:,} calls that returned"
    yield "where kills came: " + ", ".join(f"{name} {n}" for name, n in left.most_common())
    searched, pace = sum(row["searches"] for row in rows), f"{about['searches']:g} a second each"
    yield f"{searched:,} searches by {about['readers']} readers, {pace} at most"
    if reopened:
        middle, most = np.median(reopened), max(reopened)
        yield f"reopened after a kill in {middle:.2f} s at the median, {most:.2f} s at most"
    options = (f"--{name.replace('_', '-')} {about[name]}" for name in SETTINGS)
    yield f"`python benchmarks/soak.py {' '.join(options)}`"
    yield f"rows: {ROWS[about['data']]}; default hasher, 32 bits"
    yield about["machine"]


def by_quarter(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rounds of each quarter of the time."""
    end = rows[-1]["minute"]
    quarters: list[list[Row]] = [[], [], [], []]
    for row in rows:
        quarters[min(3, int(4 * row["minute"] / end))].append(row)
    return [quarter for quarter in quarters if quarter]


def until(quarter: Sequence[Row]) -> str:
    """Return the name of a quarter."""
    return f"to minute {quarter[-1]['minute']:.0f}"


def latencies(quarters: Sequence[Sequence[Row]]) -> Table:
    """Return latencies of searches and of ingests."""
    lines = []
    for quarter in quarters:
        searches = [row["search"] for row in quarter if row["search"]]
        catching = [row["catch_up"] for row in quarter if row["catch_up"]]
        ingests = [ms for row in quarter for ms in row["calls"].get("ingest", ())]
        reopened = [row["reopen"] for row in quarter if row["reopen"] is not None]
        lines.append(
            (
                until(quarter),
                *(middle([each[place] for each in searches], 2) for place in range(3)),
                middle([each[0] for each in catching], 1),
                *(percentile(ingests, share) for share in (50, 95, 99)),
                middle([1000 * each for each in reopened], 0),
                f"{np.mean([row['load'] for row in quarter]):.0f}",
            )
        )
    head = ("quarter", "search p50", "p95", "p99", "catch up p50")
    return Table((*head, "ingest p50", "p95", "p99", "reopen p50", "load"), tuple(lines))


def middle(values: Sequence[float], decimals: int) -> str:
    """Return the median of values of rounds."""
    return f"{np.median(values):,.{decimals}f}" if len(values) else NOTHING


def percentile(values: Sequence[float], share: float) -> str:
    """Return a percentile of single calls."""
    return f"{np.percentile(values, share):,.0f}" if len(values) else NOTHING


def growth(quarters: Sequence[Sequence[Row]]) -> Table:
    """Return memory, file size and what is in the file."""
    lines = []
    for quarter in quarters:
        writer, reader, file = (watched(quarter, name) for name in ("writer", "readers", "file"))
        known = [row["labels"] for row in quarter if row["labels"] is not None]
        entries = quarter[-1]["entries"]
        lines.append(
            (
                until(quarter),
                f"{entries:,}",
                f"{quarter[-1]['unlabelled']:,}",
                f"{known[-1]:,}" if known else NOTHING,
                middle(writer, 0),
                middle(reader, 0),
                f"{max(reader):,.0f}" if reader else NOTHING,
                middle(file, 1),
                f"{max(file):,.1f}" if file else NOTHING,
            )
        )
    head = ("quarter", "entries", "unlabelled", "labels", "writer, MB", "reader, MB", "highest")
    return Table((*head, "file and log, MB", "highest"), tuple(lines))


def watched(rows: Sequence[Row], name: str) -> list[float]:
    """Return what the looks of some rounds have seen, in MB."""
    seen = [sample[name] for row in rows for sample in row["samples"]]
    flat = [each for value in seen for each in (value if isinstance(value, list) else [value])]
    return [each / 1e6 for each in flat if each is not None]


def verdict(about: Row, quarters: Sequence[Sequence[Row]]) -> str:
    """Return by how much memory and file have grown, and what entries explain."""
    second, last = quarters[min(1, len(quarters) - 1)], quarters[-1]
    grown = {
        name: float(np.median(watched(last, name)) - np.median(watched(second, name)))
        for name in ("writer", "readers", "file")
    }
    more = last[-1]["entries"] - second[-1]["entries"]
    left, size = about["entries_left"], about["compacted"]
    return (
        f"From the second quarter to the last the number of entries changed by {more:+,}, the "
        f"writer's memory by {grown['writer']:+,.0f} MB, a reader's by {grown['readers']:+,.0f} "
        f"MB, file and log by {grown['file']:+,.1f} MB. At the end the file had "
        f"{about['bytes'] / 1e6:,.1f} MB, and {size / 1e6:,.1f} MB after `compact` had dropped "
        f"the places of removed entries: {size / left:,.0f} bytes for each of {left:,} entries, "
        "the model included."
    )


def calls(rows: Sequence[Row]) -> Table:
    """Return how often each call was made, and how long it took."""
    times: dict[str, list[float]] = {}
    for row in rows:
        for name, taken in row["calls"].items():
            times.setdefault(name, []).extend(taken)
    lines = tuple(
        (name, f"{len(taken):,}", *(percentile(taken, share) for share in (50, 95, 99, 100)))
        for name, taken in sorted(times.items(), key=lambda item: -len(item[1]))
    )
    return Table(("call", "calls", "p50, ms", "p95", "p99", "longest"), lines)


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw memory, file size and latencies over time; kills are grey lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8), layout="constrained")
    memory, file, latency = figure.subplots(3, 1, sharex=True)
    samples = [sample for row in rows for sample in row["samples"]]
    minutes = [sample["minute"] for sample in samples]
    memory.plot(
        minutes, _megabytes([s["writer"] for s in samples]), color="#c0392b", label="writer"
    )
    for number, colour in enumerate(("#2980b9", "#16a085")):
        seen = _megabytes([sample["readers"][number] for sample in samples])
        memory.plot(minutes, seen, color=colour, label=f"reader {number + 1}")
    file.plot(minutes, _megabytes([sample["file"] for sample in samples]), color="#333333")
    ends = [row["minute"] for row in rows]
    for place, name in enumerate(("p50", "p95", "p99")):
        y = [row["search"][place] if row["search"] else np.nan for row in rows]
        latency.plot(ends, y, marker=".", label=f"search {name}")
    y = [np.median(row["calls"].get("ingest", [np.nan])) for row in rows]
    latency.plot(ends, y, marker=".", color="#333333", label="ingest p50")
    for axes, name in ((memory, "memory, MB"), (file, "file and log, MB"), (latency, "ms")):
        axes.vlines(ends, 0, 1, transform=axes.get_xaxis_transform(), color="#ddd", linewidth=0.6)
        axes.set_ylabel(name)
    memory.set_ylim(bottom=0)
    file.set_ylim(bottom=0)
    latency.set(yscale="log", xlabel="minutes; grey lines are kills")
    memory.legend(fontsize=8)
    latency.legend(fontsize=8)
    for suffix in (".png", ".svg"):
        figure.savefig(
            stem.with_suffix(suffix), dpi=130, metadata={"Date": None} if suffix == ".svg" else None
        )


def _megabytes(values: Sequence[int | None]) -> list[float]:
    return [np.nan if value is None else value / 1e6 for value in values]
