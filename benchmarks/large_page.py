"""The page and the figure of `large.py`, from its rows alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from everhash.bench.reporting.document import Heading, ReportPart, markdown
from everhash.bench.reporting.tables import NOTHING, Table, amount, duration

Row = dict[str, Any]
MAKER = "<!-- made by: python benchmarks/large.py page -->"
HEAD = (
    "One file on one machine, filled by the public calls in batches of 20,000 rows, each call "
    "durable: by `ingest`, which learns too, up to a million rows, then by `add`, except for the "
    "last call of each size, so that learning is measured there as well. 64 features, 32 bits, a "
    'linear hasher (`features=0`), `keep_features="unlabelled"`, no refresh by itself. One row of '
    "fifty comes without a label. One thread."
)
ROWS = (
    "**Up to 180,208 entries every row is real; later ones are synthetic.** Real are all rows of "
    "CIFAR-10 and Caltech-256, each as features of a network and as GIST: 181,208, of which 1,000 "
    "are the queries. Each set is centred and brought to unit spread; a PCA fitted on 40,000 of "
    "them keeps 64 of 512 features. A synthetic row lies at a random place between two real rows "
    "of one label, with Gaussian noise of a tenth of the features' spread. The sets have 534 "
    "labels. For 1,000 and 10,000 the largest is cut in half, across the direction of the row "
    "farthest from its mean, until there are enough; for 100 they are joined by number modulo 100."
)
RIGHT = (
    "These labels are made up, so this page is about cost and not about quality: the halves of a "
    "label look alike, and a linear classifier tells them apart less well than neighbours do. "
    "Right first: of the queries whose first answer has a label, the share where it is the query's "
    "own. What is found on real labels is in [found.md](found.md)."
)
BUSY = (
    "Two figures a cell: by the clock, and in brackets the work of the processor. Other work went "
    "on beside this run (the load of the machine is in the last column), so the clock shows more "
    "than an idle machine would; the work of the processor is close to what that would take."
)
SEARCHED = (
    "k = 10; 1,000 queries in one call, 200 one by one, 20 by likeness; time a query. FAISS holds "
    "the same rows as float32 at unit length, and searches by cosine."
)
KEPT = (
    "Reopen: `open` of the closed file. Publication: all labels solved again, in a copy of the "
    "hasher. Refresh: all entries without a label, after the publications since the last size. "
    "Memory: resident when that size was reached, beyond what the process had before the "
    "collection was made, and at its highest until then."
)
COLOURS = {100: "#2980b9", 1_000: "#27ae60", 10_000: "#c0392b"}
FLAT = "#333333"
PANELS = (
    ("ingest_us", "ingest, µs a row"),
    ("batch_ms", "search, 1,000 a call, ms a query"),
    ("single_ms", "search, one by one, ms a query"),
    ("refresh_s", "refresh, s"),
    ("reopen_s", "reopen, s"),
    ("file", "file and memory, MB"),
)
"""What is drawn, and the names of the axes."""


def write(file: Path) -> None:
    """Write the page and the figure beside the file of rows."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: (row["part"], row["labels"], row["entries"]))
    draw(rows, file.with_suffix(""))
    content = markdown(parts(rows)).replace("FIGURE", f"![{file.stem}]({file.stem}.png)")
    file.with_suffix(".md").write_text(f"{MAKER}\n{content}", encoding="utf-8")


def parts(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield all parts of the page."""
    grown = [row for row in rows if row["part"] == "grow"]
    yield Heading(1, "Ten million entries on one machine")
    yield HEAD
    yield ROWS
    yield RIGHT
    yield BUSY
    yield "FIGURE"
    yield Heading(2, "Learning and keeping")
    yield KEPT
    yield keeping(grown)
    yield sizes(grown)
    yield Heading(2, "Searching")
    yield SEARCHED
    yield searching(rows)
    yield f"{grown[0]['machine']}."


def keeping(rows: Sequence[Row]) -> Table:
    """Return what it takes to learn, publish, refresh and open."""
    lines = tuple(
        (
            *_size(row),
            f"{row['learned']:,}",
            both(row["ingest_us"], 1e-6),
            both(row["add_us"], 1e-6) if row["add_us"] else NOTHING,
            both(row["publication_s"]),
            both(row["refresh_s"]),
            both(row["refresh_us"], 1e-6),
            both(row["reopen_s"]),
            f"{row['load']:.0f}",
        )
        for row in rows
    )
    head = ("labels", "entries", "rows learned", "ingest, a row", "add, a row", "publication")
    return Table((*head, "refresh", "an entry", "reopen", "load"), lines, ())


def sizes(rows: Sequence[Row]) -> Table:
    """Return bytes on disk and in memory."""
    lines = tuple(
        (
            *_size(row),
            f"{row['real']:,}",
            f"{row['known']:,}",
            f"{row['bytes'] / 1e6:,.0f}",
            amount(row["bytes"] / row["entries"]),
            megabytes(row, "resident"),
            megabytes(row, "peak"),
        )
        for row in rows
    )
    head = ("labels", "entries", "of them real", "labels met", "file, MB", "bytes an entry")
    return Table((*head, "memory, MB", "highest, MB"), lines, ())


def searching(rows: Sequence[Row]) -> Table:
    """Return the times of searches, ours and FAISS's."""
    names = {"grow": "everhash", "flat": "FAISS IndexFlatIP"}
    lines = tuple(
        (
            names[row["part"]],
            *_size(row),
            both(row["batch_ms"], 1e-3),
            both(row["single_ms"], 1e-3),
            both(row["likeness_ms"], 1e-3) if "likeness_ms" in row else NOTHING,
            f"{row['right']:.3f}",
            f"{row['load']:.0f}",
        )
        for row in sorted(rows, key=lambda row: (row["labels"], row["entries"], row["part"]))
    )
    head = ("search", "labels", "entries", "in a batch", "one by one", "by likeness")
    return Table((*head, "right first", "load"), lines)


def _size(row: Row) -> tuple[str, str]:
    return f"{row['labels']:,}", f"{row['entries']:,}"


def both(times: Sequence[float], unit: float = 1.0) -> str:
    """Return a time by the clock, and that of the processor in brackets."""
    wall, work = (duration(unit * time) for time in times)
    return f"{wall} ({work})"


def megabytes(row: Row, name: str) -> str:
    """Return memory beyond what there was before; nothing where the system does not tell."""
    if row[name] is None or row["before"] is None:
        return NOTHING
    return f"{(row[name] - row['before']) / 1e6:,.0f}"


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw how everything grows with entries."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    for axes, (name, title) in zip(figure.subplots(2, 3).flat, PANELS, strict=True):
        for labels in sorted({row["labels"] for row in rows}):
            _curve(axes, [row for row in rows if row["labels"] == labels], name)
        axes.set(xscale="log", yscale="log", title=title, xlabel="entries")
        axes.grid(visible=True, alpha=0.25)
        axes.legend(fontsize=8)
    figure.suptitle("Work of the processor, one thread; rows beyond 180,208 are synthetic")
    for suffix in (".png", ".svg"):
        figure.savefig(
            stem.with_suffix(suffix), dpi=130, metadata={"Date": None} if suffix == ".svg" else None
        )


def _curve(axes: Any, rows: Sequence[Row], name: str) -> None:
    """Draw the rows of one number of labels, and FAISS's dashed beside them."""
    grown = [row for row in rows if row["part"] == "grow"]
    labels, x = rows[0]["labels"], [row["entries"] for row in grown]
    look = {"marker": "o", "linewidth": 1.2, "color": COLOURS.get(labels, "#8e44ad")}
    if name == "file":
        axes.plot(x, [row["bytes"] / 1e6 for row in grown], label=f"{labels:,}, file", **look)
        kept = [row for row in grown if row["resident"] is not None]
        y = [(row["resident"] - row["before"]) / 1e6 for row in kept]
        look["linestyle"] = ":"
        axes.plot([row["entries"] for row in kept], y, label=f"{labels:,}, memory", **look)
        return
    axes.plot(x, [row[name][1] for row in grown], label=f"{labels:,} labels", **look)
    flat = [row for row in rows if row["part"] == "flat" and name in ("batch_ms", "single_ms")]
    if flat:
        look |= {"color": FLAT, "linestyle": "--"}
        y = [row[name][1] for row in flat]
        axes.plot([row["entries"] for row in flat], y, label="FAISS flat", **look)
