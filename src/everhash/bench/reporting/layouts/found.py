"""What people find, by each way of searching, beside cosine and a batch classifier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from everhash.bench.reporting.document import Bullets, Heading, ReportPart
from everhash.bench.reporting.layouts.common import block_name
from everhash.bench.reporting.samples import blocks, interval, is_number, setting
from everhash.bench.reporting.tables import NOTHING, Table
from everhash.bench.task import Row

FIGURES = {"first": "first right", "ten": "right among ten", "map": "mAP"}
MEASURED = (
    "First right: share of queries whose first answer has their label. Right among ten: mean "
    "share of the first ten answers that have it. mAP: of the whole ranking, averaged over all "
    "orders of tied entries. Each is the mean over seeds, ± its 95 % confidence interval "
    "(Student's t). `cosine` is FAISS IndexFlatIP on the same float32 rows at unit length; "
    "`logistic` is batch logistic regression on all labelled rows at once, its C chosen in its "
    "favour. The trees that judge relevance have learned from these sets; "
    "[relevance](relevance.md) shows how they fare on a set that they have not seen."
)
BARE = (
    "Labels are learned by `learn`, from rows that are not kept; entries are other rows, added "
    "without a label."
)
MIXED = (
    "A quarter of the labels is never learned; their entries have no label, and 30% of the others "
    "have none either. Half of the queries have such labels, half have learned ones. The second "
    "three columns are the queries of labels never learned alone."
)
SAME = (
    "Answers by likeness, with features kept, that are not those of FAISS IndexFlatIP (ties "
    "within 1e-6 aside), of ten for each query, all seeds together. Stored: FAISS has the rows as "
    "they are stored, in half precision. Original: as they came."
)
CODES = (
    "mAP of labels never learned by likeness codes alone, without features: one bit a dimension. "
    "Among: only entries without labels are ranked. All: every entry is."
)
Values = Callable[[Row], float | None]


def unlabelled(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield what is found where a share of the entries has no label."""
    share = ", ".join(sorted({f"{row['share']:.0%}" for row in rows}))
    yield Heading(2, "Labels learned")
    yield f"{share} of the entries have no label, and are not learned. {MEASURED}"
    yield from _compared(rows)


def strict(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield what is found where no entry has a label."""
    yield Heading(2, "No entry has a label")
    yield BARE
    yield from _compared(rows)


def _compared(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield every way of searching, beside cosine and the classifier."""
    yield _summary(rows)
    yield from _beaten(rows)
    for block in blocks(rows):
        yield Heading(3, block_name(block))
        yield _ways(block, ("ways",))
        yield setting(block)


def unseen(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield what is found of labels that were never learned."""
    yield Heading(2, "Labels never learned")
    yield MIXED
    for block in blocks(rows):
        yield Heading(3, block_name(block))
        yield _ways(block, ("ways", "novel"))
        yield setting(block)
    yield Heading(3, "Likeness is exact where features are kept")
    yield SAME
    yield _same(rows)
    yield Heading(3, "Codes alone")
    yield CODES
    yield _codes(rows)


def every(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield all of it."""
    layouts = {"unlabelled": unlabelled, "strict": strict, "unseen": unseen}
    parts = {name: [row for row in rows if row["protocol"] == name] for name in layouts}
    for name, layout in layouts.items():
        yield from layout(parts[name]) if parts[name] else ()


def _summary(rows: Sequence[Row]) -> Table:
    """Return one line a data set: relevance beside meaning, cosine and the classifier."""
    lines = []
    for block in blocks(rows):
        cells = [
            " / ".join(_mean(block, "ways", way, figure) for figure in FIGURES)
            for way in ("relevance", "meaning", "cosine")
        ]
        classifier = _mean(block, "ways", "logistic", "first")
        share = _average(block, _pick("ways", "relevance", "first")) / _average(
            block, _pick("ways", "logistic", "first")
        )
        lines.append((block[0]["dataset"], *cells, classifier, f"{share:.3f}"))
    head = (
        "first / among ten / mAP",
        "relevance",
        "meaning",
        "cosine",
        "logistic, first",
        "relevance's share of it",
    )
    return Table(head, tuple(lines))


def _beaten(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield where cosine or the classifier is better than a search by relevance, the default."""
    found = []
    for block in blocks(rows):
        for way in ("cosine", "logistic"):
            for figure, title in FIGURES.items():
                theirs, ours = (_mean(block, "ways", name, figure) for name in (way, "relevance"))
                if theirs != NOTHING and theirs > ours:
                    found.append(
                        f"`{way}`, {block[0]['dataset']}, {title}: {theirs} against {ours}"
                    )
    if not found:
        yield "Neither `cosine` nor `logistic` is better than `relevance` anywhere in this table."
        return
    yield "**Where what people use instead is better:**"
    yield Bullets(tuple(found))


def _ways(rows: Sequence[Row], parts: Iterable[str]) -> Table:
    """Return a line for each way of searching."""
    parts = tuple(parts)
    names = list(dict.fromkeys(way for row in rows for way in row[parts[0]]))
    head = [
        f"{title}{', never learned' if part == 'novel' else ''}"
        for part in parts
        for title in FIGURES.values()
    ]
    lines = tuple(
        (way, *(_cell(rows, _pick(part, way, figure)) for part in parts for figure in FIGURES))
        for way in names
    )
    return Table(("search", *head), lines)


def _same(rows: Sequence[Row]) -> Table:
    lines = []
    for block in blocks(rows):
        counts = [
            sum(row["differing"][name] for row in block)
            for name in ("answers", "stored", "original")
        ]
        lines.append((block[0]["dataset"], *(f"{count:,}" for count in counts)))
    return Table(("data", "answers", "stored", "original"), tuple(lines))


def _codes(rows: Sequence[Row]) -> Table:
    lines = []
    for block in blocks(rows):
        cells = []
        for where in ("among", "all"):
            codes, cosine = (
                _average(block, _pick("codes", f"{where}_{name}")) for name in ("codes", "cosine")
            )
            cells += [f"{codes:.3f}", f"{cosine:.3f}", f"{codes / cosine:.3f}"]
        lines.append((block[0]["dataset"], *cells))
    head = ("data", "among: codes", "cosine", "share", "all: codes", "cosine", "share")
    return Table(head, tuple(lines))


def _pick(*keys: str) -> Values:
    """Return a function that reads a figure from a row, by its keys; None where there is none."""

    def pick(row: Row) -> float | None:
        value: Any = row
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return float(value) if is_number(value) else None

    return pick


def _values(rows: Iterable[Row], pick: Values) -> list[float]:
    return [value for value in map(pick, rows) if value is not None]


def _average(rows: Iterable[Row], pick: Values) -> float:
    return fmean(_values(rows, pick))


def _mean(rows: Sequence[Row], *keys: str) -> str:
    values = _values(rows, _pick(*keys))
    return f"{fmean(values):.3f}" if values else NOTHING


def _cell(rows: Sequence[Row], pick: Values) -> str:
    """Return the mean over seeds, and its confidence interval."""
    values = _values(rows, pick)
    if not values:
        return NOTHING
    half = interval(values)
    return f"{fmean(values):.3f}" + ("" if half is None else f" ± {half:.3f}")
