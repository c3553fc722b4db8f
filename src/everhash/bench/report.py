"""Reports from rows: Markdown with tables, and figures beside it.

Nothing is run here. The same rows give the same bytes in any order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from everhash.bench.experiment import Experiment, names
from everhash.bench.reporting.document import Heading, Plot, ReportPart, markdown, wrapped
from everhash.bench.reporting.layouts import (
    costs,
    deep,
    few_labels,
    found,
    growth,
    likeness,
    retrieval,
    robustness,
    updates,
)
from everhash.bench.reporting.samples import blocks, group_of, in_order, lines_of, reduced
from everhash.bench.task import Row, Task
from everhash.errors import InputError, UnknownNameError

Layout = Callable[[Sequence[Row]], Iterator[ReportPart]]
MARK = "<!-- made by: everhash bench report -->"
"""First line of every report; pages without it are never overwritten."""
INDEX = "README.md"
GROUPS_EXPLAINED = {
    "batch": "Batch methods need all their rows at once, or keep them all.",
    "online": "Online methods learn each row as it comes.",
}
METHODS_EXPLAINED = {
    "everhash": "`everhash` is our method with its defaults.",
    "everhash-sgd": "`everhash-sgd` is our method with averaged gradient steps.",
    "paper": "`paper` is the paper's method.",
    "cosine": "`cosine` ranks by all features, without a code.",
    "logistic": "`logistic` is batch logistic regression on all rows of the stream at once.",
}


def by_variant(rows: Sequence[Row]) -> Iterator[ReportPart]:
    """Yield mAP by bits; where methods have several variants, mAP and upkeep of each variant."""
    for block in blocks(rows, "protocol"):
        varied = any(row["options"] for row in block)
        yield from (updates if varied else retrieval).layout(block)


LAYOUTS: dict[tuple[str, str | None], Layout] = {
    ("retrieval", "strict"): by_variant,
    ("retrieval", "paper"): by_variant,
    ("retrieval", "joining"): by_variant,
    ("retrieval", "sorted"): by_variant,
    ("retrieval", "unseen"): robustness.unseen,
    ("retrieval", "unlabelled"): robustness.unlabelled,
    ("retrieval", "noise"): robustness.noise,
    ("retrieval", "out-of-scope"): robustness.out_of_scope,
    ("growth", None): growth.layout,
    ("found", None): found.every,
    ("few", "few"): few_labels.few,
    ("few", "half"): few_labels.half,
    ("deep", None): deep.layout,
    ("scale", None): costs.scale,
    ("speed", None): costs.speed,
    ("likeness", None): likeness.layout,
}
"""By kind of rows and protocol; None for all protocols."""
FIGURES = {
    "retrieval": ("stream", "ranked"),
    "growth": ("stream", "ranked", "area", "curve", "width"),
    "found": ("stream", "ranked", "ways"),
    "few": ("stream", "ranked", "ways", "guessed", "told", "stated"),
    "deep": ("stream", "ranked", "mapping"),
    "scale": ("axis", "size", "seconds", "what"),
    "likeness": ("part", "size", "packages"),
    "speed": ("what", "ours", "peer", "peer_name", "ratio", "wanted", "unit", "note"),
}
"""Figures that the rows of a kind must have."""


def text(experiment: Experiment, rows: list[Row]) -> str:
    """Return the report without figures."""
    return markdown(parts(experiment, rows))


def write(
    experiment: Experiment, rows: list[Row], folder: Path, *, overwrite: bool = False
) -> list[Path]:
    """Write the report and its figures into a folder; return the paths.

    A page that is there already is replaced only with `overwrite`, and never if it is no report.
    """
    from everhash.bench.reporting import figures

    page = folder / f"{experiment.name}.md"
    refuse_to_replace(page, overwrite=overwrite)
    document, written = list(parts(experiment, rows)), list[Path]()

    def shown(picture: Plot) -> str:
        png, svg = figures.save(picture, folder / f"{experiment.name}-{picture.slug}")
        written.extend((png, svg))
        caption = wrapped(f"{picture.caption} ([SVG]({svg.name}))")
        return f"![{picture.title}]({png.name})\n\n{caption}"

    folder.mkdir(parents=True, exist_ok=True)
    content = markdown(document, shown)
    page.write_text(f"{MARK}\n{content}", encoding="utf-8")
    return [page, *written]


def write_index(folder: Path) -> Path:
    """Write the page that lists the reports of a folder, each with its first sentence."""
    page = folder / INDEX
    _refuse_foreign(page)
    lines = [MARK, "# Results", ""]
    for report in sorted(folder.glob("*.md")):
        content = report.read_text(encoding="utf-8")
        if report != page and content.startswith(MARK):
            title, _, rest = content.removeprefix(MARK).strip().partition("\n")
            lines.append(f"- [{title.removeprefix('# ')}]({report.name}): {_sentence(rest)}")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return page


def _sentence(content: str) -> str:
    """Return the first sentence of a page."""
    paragraph = " ".join(content.strip().partition("\n\n")[0].split())
    end = paragraph.find(". ")
    return paragraph if end < 0 else paragraph[: end + 1]


def refuse_to_replace(page: Path, *, overwrite: bool) -> None:
    """Raise if a page is there and must stay."""
    _refuse_foreign(page)
    if page.exists() and not overwrite:
        raise InputError(
            f"{page} is there already",
            hint="pass --overwrite to replace it and its figures, or --out with another folder",
        )


def _refuse_foreign(page: Path) -> None:
    if page.exists() and not page.read_text(encoding="utf-8", errors="replace").startswith(MARK):
        raise InputError(
            f"{page} is not a report and is not overwritten", hint="choose another folder"
        )


def parts(experiment: Experiment, rows: list[Row]) -> Iterator[ReportPart]:
    """Yield all parts of a report."""
    known = [(_layout(row), row) for row in in_order(rows)]
    yield from _opening(experiment, rows)
    yield from _missing(experiment, rows)
    of_methods = [row for row in rows if row["kind"] in ("retrieval", "growth")]
    if of_methods:
        yield _methods(of_methods)
    yield from filter(None, map(reduced, blocks(of_methods)))
    for layout in dict.fromkeys(LAYOUTS.values()):
        of_layout = [row for its, row in known if its is layout]
        if of_layout:
            yield from layout(of_layout)


def _opening(experiment: Experiment, rows: list[Row]) -> Iterator[ReportPart]:
    """Yield title and text: the experiment's own, unless rows are of data they do not speak of."""
    there = list(dict.fromkeys(row["dataset"] for block in blocks(rows) for row in block))
    if not experiment.about or set(there) <= experiment.about:
        yield Heading(1, experiment.title)
        yield from filter(None, (part.strip() for part in experiment.text.split("\n\n")))
        yield from _command(experiment, rows)
        return
    yield Heading(1, f"{experiment.name}: {', '.join(there)}")
    kinds = any(row["kind"] == "retrieval" for row in rows)
    yield (
        f"The runs of `{experiment.name}` (*{experiment.title}*) on data that it does not name: "
        f"{', '.join(name for name in there if name not in experiment.about)}."
        + (" Rows that are not queries are entries, also those of the stream." if kinds else "")
    )


def _command(experiment: Experiment, rows: list[Row]) -> Iterator[ReportPart]:
    """Yield the command that gives such rows, if the experiment is one of ours."""
    if experiment.name in names() and rows:
        jobs = max(row["jobs"] for row in rows)
        several = f" --jobs {jobs}" if jobs > 1 else ""
        yield f"Run by `everhash bench run {experiment.name}{several}`."


def _methods(rows: list[Row]) -> str:
    """Return what the groups of methods are, and which are ours, of those that were run."""
    there = list(lines_of(rows).values())
    groups = {group_of(lines[0]["method"]) for lines in there}
    methods = {lines[0]["method"] for lines in there}
    return (
        " ".join(
            [words for group, words in GROUPS_EXPLAINED.items() if group in groups]
            + [words for method, words in METHODS_EXPLAINED.items() if method in methods]
        )
        or "No method that learns was run."
    )


def _layout(row: Row) -> Layout:
    kind, protocol = row["kind"], row["protocol"]
    layout = LAYOUTS.get((kind, protocol)) or LAYOUTS.get((kind, None))
    if layout is None:
        kinds = dict.fromkeys(kind for kind, _ in LAYOUTS)
        raise UnknownNameError(
            f"no report for rows of kind {kind!r} and protocol {protocol!r}",
            hint=f"expected one of: {', '.join(kinds)}",
        )
    lacking = [name for name in FIGURES[kind] if name not in row]
    if lacking:
        raise InputError(
            f"a row of kind {kind!r} has no {lacking[0]!r}",
            hint="was it written by another version of everhash? run the experiment again",
        )
    return layout


def _missing(experiment: Experiment, rows: list[Row]) -> Iterator[ReportPart]:
    """Yield how many runs have no row yet, and how many rows are not of the experiment."""
    wanted, there = set(experiment.tasks()), {Task.of(row) for row in rows}
    missing = Counter(task.method for task in wanted - there)
    if missing and (wanted & there or not there):
        listed = ", ".join(f"{method} {n}" for method, n in sorted(missing.items()))
        which = f" ({listed})" if missing.total() < len(wanted) else ""
        yield f"**Unfinished: {missing.total():,} of {len(wanted):,} runs are missing**{which}."
    other = there - wanted
    if wanted & there and other:
        yield (
            f"{len(other):,} of {len(there):,} rows are of runs that the experiment does not ask "
            "for: other data, seeds, widths or options."
        )
