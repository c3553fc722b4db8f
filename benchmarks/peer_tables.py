"""Tables of what `online_peers.py` has measured, made from its rows alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from statistics import fmean, pstdev
from typing import Any

from everhash import peers
from everhash.bench.datasets import FILES
from everhash.bench.peers_run import ASYMMETRIC_AMONG, COSINE, EVERY, KEPT_FRESH

Row = dict[str, Any]
Pick = Callable[[Row], float | None]
"""Reads a figure from a row; None where the row has no such figure."""

PUBLISHED = {
    "paper": ("codeword", {8: 0.41, 16: 0.46, 32: 0.50, 64: 0.55}),
    "okh": ("mapping", {8: 0.12, 16: 0.13, 32: 0.14, 64: 0.15}),
    "osh": ("codeword", {8: 0.39, 16: 0.44, 32: 0.48, 64: 0.53}),
    "smarthash": ("mapping", {8: 0.24, 16: 0.27, 32: 0.28, 64: 0.30}),
    "bre": ("mapping", {8: 0.16, 16: 0.17, 32: 0.16, 64: 0.17}),
    "mlh": ("mapping", {8: 0.16, 16: 0.17, 32: 0.18, 64: 0.19}),
    "shk": ("mapping", {8: 0.23, 16: 0.26, 32: 0.30, 64: 0.31}),
    "fasthash": ("mapping", {8: 0.27, 16: 0.33, 32: 0.34, 64: 0.37}),
    "shecc": ("codeword", {8: 0.41, 16: 0.50, 32: 0.57, 64: 0.58}),
}
"""Cakir, Bargal, Sclaroff 2015, Table 1: CIFAR-10 GIST, 2,000 rows, Hamming distance."""
COMPARED = ("cifar10-gist", 2000)
"""The set and the length of stream of those figures."""
TOLERATED = 0.2
"""How far, relatively, a figure may be below the published one without a mark."""
MOST_PRODUCTS = 10
"""How many times the time of its products a method may take without a mark."""
STORED = {
    "mapping": "by mapping: an entry is stored as its bits; where there are several cycles (onehot "
    "always,\neverhash with many labels) as the number of its home cycle and its bits there",
    "codeword": "by codeword: an entry is stored as the codeword of its label",
}
TIMES: dict[str, Pick] = {
    "learning": lambda row: row.get("seconds"),
    "encoding": lambda row: row.get("encoding"),
}
UPKEEP: dict[str, Pick] = {
    "bits flipped": lambda row: row.get("flipped"),
    "bits recomputed": lambda row: row.get("recomputed"),
    "homes moved": lambda row: row.get("homes_moved"),
}


def report(rows: list[Row]) -> None:
    """Print everything that rows tell."""
    for machine in sorted({row["machine"] for row in rows}):
        print(machine)
    runs = [row for row in rows if row["kind"] == "run"]
    for group in by_set(row for row in runs if not row["unseen"]):
        retrieval(group)
        costs(group)
    unseen([row for row in runs if row["unseen"]])
    for group in by_set(row for row in rows if row["kind"] == "products"):
        products(group)


def retrieval(rows: list[Row]) -> None:
    """Print how well entries are found, on one set after one length of stream."""
    first = rows[0]
    print(
        f"\n{first['dataset']}, {first['stream']:,}-row stream, {first['ranked']:,} entries, "
        f"{first['queries']:,} queries: tie-averaged mAP, mean of orderings: {orderings(rows)}"
    )
    compared = (first["dataset"], first["stream"]) == COMPARED
    for stored, how in STORED.items():
        if not any(row.get(stored) for row in rows):
            continue
        print(f"\n{how}")
        if stored == "mapping" and first["ranked"] > ASYMMETRIC_AMONG:
            print(f"(by asymmetric distance {ASYMMETRIC_AMONG:,} of the entries, a random sample)")
        picks = {
            "Hamming": score_of(stored, "hamming"),
            "asymmetric": score_of(stored, "asymmetric"),
        }
        table(rows, picks, mean, "8.3f", stored if compared else None)
        print(f"{'':<12}largest standard deviation over orderings: {spread(rows, picks):.3f}")
    if compared:
        against_published(rows)


def costs(rows: list[Row]) -> None:
    """Print how long learning takes, and what it costs to keep entries up to date."""
    times = {title: pick for title, pick in TIMES.items() if any(map(pick, rows))}
    if times:
        print("\nseconds of learning, and of encoding all entries: the best of orderings")
        table(rows, times, lambda values: min(values, default=None), "8.3f")
    upkeep = {title: pick for title, pick in UPKEEP.items() if any(map(pick, rows))}
    if upkeep:
        print(
            "\nupkeep of an unlabelled entry: the sum of all refreshes, one every "
            f"{EVERY} rows,\nmean of {KEPT_FRESH:,} entries at most"
        )
        table(rows, upkeep, mean, "8.1f")


def table(
    rows: list[Row],
    picks: dict[str, Pick],
    of_orderings: Callable[[list[float]], float | None],
    form: str,
    published: str | None = None,
) -> None:
    """Print figures, a line a method, a column a width; published ones below where there are."""
    widths = sorted({row["bits"] for row in rows} - {0}) or [0]
    room = max(8 * len(widths), max(map(len, picks)) + 2)
    print(f"{'':<12}" + "".join(f"{title:>{room}}" for title in picks))
    print(f"{'bits':<12}" + "".join(f"{bits:8}" for bits in widths).rjust(room) * len(picks))
    for method in methods(rows):
        values = [
            [of_orderings(figures(rows, method, bits, pick)) for bits in widths]
            for pick in picks.values()
        ]
        if any(value is not None for group in values for value in group):
            groups = ("".join(cell(value, form) for value in group) for group in values)
            print(f"{method:<12}" + "".join(group.rjust(room) for group in groups))
        stored, known = PUBLISHED.get(method, ("", {}))
        if stored == published:
            line = "".join(cell(known.get(bits), "8.2f") for bits in widths)
            print(f"{'  published':<12}{line.rjust(room)}")


def spread(rows: list[Row], picks: dict[str, Pick]) -> float:
    """Return the largest standard deviation over orderings of any figure."""
    widths = {row["bits"] for row in rows}
    samples = [
        figures(rows, method, bits, pick)
        for method in methods(rows)
        for bits in widths
        for pick in picks.values()
    ]
    return max(pstdev(sample) for sample in samples if sample)


def against_published(rows: list[Row]) -> None:
    """Print how far a method is from its published figure at 32 bits."""
    print("\nagainst Cakir, Bargal, Sclaroff 2015, Table 1, at 32 bits by Hamming distance")
    for method, (stored, known) in PUBLISHED.items():
        ours = mean(figures(rows, method, 32, score_of(stored, "hamming")))
        if ours is not None:
            off = ours / known[32] - 1
            mark = f"   MORE THAN {TOLERATED:.0%} BELOW" if off < -TOLERATED else ""
            told = f"published {known[32]:.2f}, here {ours:.3f}"
            print(f"{method:<12}by {stored:<10}{told}, {off:+.1%}{mark}")


def unseen(rows: list[Row]) -> None:
    """Print how well labels are found that nobody has learned."""
    groups = by_set(rows)
    if not groups:
        return
    print(
        "\nunseen labels: three quarters of the labels are learned, entries and queries are of the "
        "others;\nby mapping, 32 bits"
    )
    print(f"{'':<12}" + "".join(f"{group[0]['dataset']:>18}" for group in groups))
    print(f"{'':<12}" + "".join(f"{group[0]['stream']:>13,} rows" for group in groups))
    print(f"{'':<12}" + f"{'Hamming':>9}{'asym.':>9}" * len(groups))
    for method in methods(rows):
        cells = (
            cell(mean(figures(group, method, 32, score_of("mapping", which))), "9.3f")
            for group in groups
            for which in ("hamming", "asymmetric")
        )
        print(f"{method:<12}" + "".join(cells))


def products(rows: list[Row]) -> None:
    """Print learning time against that of the products a method cannot do without."""
    print(
        f"\nlearning against its own products alone: {rows[0]['dataset']}, {rows[0]['stream']:,} "
        "rows, 32 bits,\nbest of several in turn, milliseconds"
    )
    print(f"{'':<12}{'learning':>10}{'products':>10}{'ratio':>8}   the products")
    for method in methods(rows):
        row = next(row for row in rows if row["method"] == method)
        ratio = row["learning"] / row["products"]
        mark = f"   MORE THAN {MOST_PRODUCTS} TIMES" if ratio > MOST_PRODUCTS else ""
        times = f"{row['learning'] * 1e3:10.1f}{row['products'] * 1e3:10.1f}{ratio:8.1f}"
        print(f"{method:<12}{times}   {row['what']}{mark}")


def by_set(rows: Iterable[Row]) -> list[list[Row]]:
    """Return rows in groups of one set and one length of stream, in order."""

    def place(row: Row) -> tuple[int, ...]:
        return list(FILES).index(row["dataset"]), row["rows_a_label"], row["entries"]

    return [list(group) for _, group in groupby(sorted(rows, key=place), key=place)]


def methods(rows: Iterable[Row]) -> list[str]:
    """Return the methods that have rows, in the order of their registry."""
    there = {row["method"] for row in rows}
    return [name for name in (*peers.names(), COSINE) if name in there]


def orderings(rows: Iterable[Row]) -> int:
    """Return how many there are."""
    return len({row["seed"] for row in rows})


def score_of(stored: str, distance: str) -> Pick:
    """Return what reads mAP, averaged over the orders of ties, from a row."""

    def pick(row: Row) -> float | None:
        # without a choice of bits there is one bit a class, and nothing for Hamming to rank by
        missing = distance not in (row.get(stored) or {}) or (row["bits"], distance) == (
            0,
            "hamming",
        )
        return None if missing else row[stored][distance][0]

    return pick


def figures(rows: Iterable[Row], method: str, bits: int, pick: Pick) -> list[float]:
    """Return a figure of each ordering; a method without a choice of bits has it at all widths."""
    picked = [pick(row) for row in rows if row["method"] == method and row["bits"] in (bits, 0)]
    return [value for value in picked if value is not None]


def mean(values: Sequence[float]) -> float | None:
    """Return None for nothing."""
    return fmean(values) if values else None


def cell(value: float | None, form: str) -> str:
    """Return a figure as the table shows it, and a dash for none."""
    return f"{value:{form}}" if value is not None else f"{'-':>{form.partition('.')[0]}}"
