"""The page and the figure of `find_speed.py`, from its rows alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from everhash.bench.reporting.document import Heading, ReportPart, markdown
from everhash.bench.reporting.tables import Table

Row = dict[str, Any]
MAKER = "<!-- made by: python benchmarks/find_speed.py page -->"
HEAD = (
    "Searches by the public `Collection.search`, k = 10, beside FAISS, everything on one thread. "
    "1,000 labels, 384 features, 32 bits; 30 % of the entries have no label. **The rows are "
    "synthetic**: clusters around 1,000 centres in 100 groups, with noise whose spectrum falls, "
    "made by `benchmarks/find_rows.py`. They tell how fast searches are; how right they are, only "
    "real data tells: see [found.md](found.md)."
)
CHOSEN = (
    "Do not read the heights of the figure as quality. Twelve settings of group, noise and "
    "spectrum were tried, at 40,000 to 200,000 rows. Where the spectrum of the noise is flatter "
    "(1/i^.3 or 1/i^.4) meaning was worse than cosine in the first answer (for example .66 "
    "against .96, 40 rows a label learned); where it falls as here, meaning was as good or "
    "better. This one was taken because cosine is right among ten about as often as on CLINC150 "
    "(at 200,000 entries) and meaning is ahead, as on the real sets, though here by more."
)
RACE = (
    "Right among ten: mean share of the ten answers that have the query's label. FAISS indexes "
    "hold float32 rows at unit length (RaBitQ: one bit a dimension). Queries a second: the best of "
    "several rounds in which everybody takes turns, 1,000 queries a call, and one a call."
)
CALL = (
    "Microseconds of one search of one row, of its products alone (the view of the row and the "
    "classifiers of 1,000 labels), and the difference."
)
FAMILIES = {
    "relevance": ("everhash, relevance (the default)", "#d35fa5"),
    "meaning": ("everhash, meaning", "#c0392b"),
    "meaning, features=0": ("everhash, meaning, features=0", "#e67e22"),
    "likeness": ("everhash, likeness", "#8e44ad"),
    "IndexFlatIP": ("FAISS flat", "#333333"),
    "IndexIVFFlat": ("FAISS IVF", "#2980b9"),
    "IndexHNSWFlat": ("FAISS HNSW", "#16a085"),
    "IndexRaBitQ": ("FAISS RaBitQ", "#7f8c8d"),
    "IndexIVFRaBitQ": ("FAISS IVF RaBitQ", "#27ae60"),
}
"""Name and colour in the figure, by the first word of what was raced."""


def write(file: Path) -> None:
    """Write the page and the figure beside the file of rows."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    draw(rows, file.with_suffix(""))
    content = markdown(parts(rows)).replace("FIGURE", f"![{file.stem}]({file.stem}.png)")
    file.with_suffix(".md").write_text(f"{MAKER}\n{content}", encoding="utf-8")


def parts(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield all parts of the page."""
    yield Heading(1, "How fast entries are found")
    yield HEAD
    yield CHOSEN
    yield "FIGURE"
    for size in sizes(rows, "race"):
        yield Heading(2, f"{size:,} entries")
        yield RACE
        yield raced(of(rows, "race", size))
        yield CALL
        yield one_call(of(rows, "one call", size))
        yield "Microseconds a query before and after 5 % of the entries are removed."
        yield removals(of(rows, "removals", size))
        yield taken(of(rows, "race", size))
    for size in sizes(rows, "scaling")[-1:]:
        yield Heading(2, "By entries and labels")
        yield "Microseconds a query by meaning; with 10,000 labels the hasher is linear."
        yield scaling(of(rows, "scaling", size))
        yield taken(of(rows, "scaling", size))
    for size in sizes(rows, "bytes")[-1:]:
        yield Heading(2, "Bytes an entry")
        yield (
            f"{size:,} entries of 384 features, 100 labels: growth of a compact copy of the file, "
            "and what Python keeps allocated after a search. Ids are numbers in order of arrival."
        )
        yield weights(of(rows, "bytes", size))


def sizes(rows: Sequence[Row], part: str) -> list[int]:
    """Return the numbers of entries that a part has rows for."""
    return sorted({row["size"] for row in rows if row["part"] == part})


def of(rows: Sequence[Row], part: str, size: int) -> list[Row]:
    """Return the rows of a part at a number of entries."""
    return [row for row in rows if (row["part"], row["size"]) == (part, size)]


def raced(rows: Sequence[Row]) -> Table:
    """Return how right and how fast everybody is, and how much faster than FAISS flat."""
    flat = next(row for row in rows if row["what"] == "IndexFlatIP")
    lines = tuple(
        (
            row["what"],
            f"{row['ten']:.3f}",
            f"{row['batch']:,.0f}",
            f"{row['batch'] / flat['batch']:.1f}x",
            f"{row['single']:,.0f}",
            f"{row['single'] / flat['single']:.1f}x",
        )
        for row in rows
    )
    head = ("search", "right among ten", "queries/s, batch", "of flat", "one by one", "of flat")
    return Table(head, lines)


def one_call(rows: Sequence[Row]) -> Table:
    """Return what one call takes beyond its products."""
    names = ("call", "products", "beyond")
    lines = tuple((row["what"], *(f"{row[name]:.0f}" for name in names)) for row in rows)
    return Table(("search", *names), lines)


def removals(rows: Sequence[Row]) -> Table:
    """Return times before and after removals."""
    lines = tuple(
        (row["what"], f"{row['before']:,.1f}", f"{row['after']:,.1f}", f"{row['removed']:,}")
        for row in rows
    )
    return Table(("search", "before", "after", "removed"), lines)


def scaling(rows: Sequence[Row]) -> Table:
    """Return times by entries and labels."""
    lines = tuple(
        (
            f"{row['entries']:,}",
            f"{row['labels']:,}",
            f"{row['features']:,}",
            f"{row['batch']:,.1f}",
            f"{row['single']:,.1f}",
        )
        for row in sorted(rows, key=lambda row: (row["entries"], row["labels"]))
    )
    return Table(("entries", "labels", "features", "in batches", "one by one"), lines, ())


def weights(rows: Sequence[Row]) -> Table:
    """Return bytes an entry."""
    lines = tuple(
        (
            f'keep_features="{row["keep"]}", likeness={row["likeness"]}',
            row["what"],
            f"{row['disk']:,.0f}",
            f"{row['memory']:,.0f}",
        )
        for row in rows
    )
    return Table(("setting", "entries", "on disk", "in memory"), lines, (0, 1))


def taken(rows: Sequence[Row]) -> str:
    """Return where rows were measured, and beside which load."""
    loads = [row["load"] for row in rows if row["load"] is not None]
    beside = f" Load of the machine at the end: {max(loads):.1f}." if loads else ""
    return f"{rows[0]['machine']}.{beside}"


def draw(rows: Sequence[Row], stem: Path) -> None:
    """Draw right among ten against queries a second, in batches and one by one."""
    from matplotlib.figure import Figure

    raced_sizes = sizes(rows, "race")
    figure = Figure(figsize=(11, 4.2 * len(raced_sizes)), layout="constrained")
    panels = figure.subplots(len(raced_sizes), 2, squeeze=False)
    for size, pair in zip(raced_sizes, panels, strict=True):
        for axes, how, title in zip(
            pair, ("batch", "single"), ("1,000 a call", "one by one"), strict=True
        ):
            _panel(axes, of(rows, "race", size), how)
            axes.set_title(f"{size:,} entries, {title}")
    panels[0][0].legend(fontsize=8, loc="lower left")
    for suffix in (".png", ".svg"):
        figure.savefig(
            stem.with_suffix(suffix), dpi=130, metadata={"Date": None} if suffix == ".svg" else None
        )


def _panel(axes: Any, rows: Sequence[Row], how: str) -> None:
    for key, (name, colour) in FAMILIES.items():
        mine = [row for row in rows if row["what"] == key or row["what"].split(" ")[0] == key]
        if key == "meaning":
            mine = [row for row in mine if row["what"] == key]
        points = sorted((row[how], row["ten"]) for row in mine)
        if points:
            axes.plot(
                *zip(*points, strict=True), marker="o", color=colour, label=name, linewidth=1.2
            )
    axes.set_xscale("log")
    axes.set_xlabel("queries a second, one thread")
    axes.set_ylabel("right among ten")
    axes.set_ylim(0, 1.02)
    axes.grid(visible=True, alpha=0.25)
