"""Reports say what rows say, and nothing else."""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from everhash.bench import report
from everhash.bench.experiment import Experiment, Runs, load
from everhash.bench.reporting.beaten import wins
from everhash.bench.reporting.document import Plot
from everhash.bench.reporting.labels import apart
from everhash.bench.reporting.layouts.costs import fitted
from everhash.bench.reporting.layouts.robustness import unseen
from everhash.bench.reporting.published import LINES
from everhash.bench.reporting.samples import Column, at_bits, lines_of, mean_average_precision
from everhash.bench.task import Row, Task
from everhash.cli import app
from everhash.errors import InputError, UnknownNameError

BARE = Experiment("mine", "Mine", "One sentence. And another.", ())
METHODS = ("everhash", "everhash-sgd", "paper", "osh", "shecc", "okh")
WIDTHS = (8, 32)
scores = st.floats(0.01, 0.99)


def row(method: str = "everhash", bits: int = 32, seed: int = 0, **more: Any) -> Row:
    """Return a row of retrieval; figures that have names of a task's change the task."""
    task = Task("retrieval", "digits", method, bits, seed, 200)
    told = {name: more.pop(name) for name in list(more) if hasattr(task, name)}
    figures = {"stream": 700, "ranked": 1457, "seconds": 0.5, "width": bits, "versions": 40}
    where = {"machine": "a machine", "jobs": 1, "version": "0"}
    return {**replace(task, **told).as_row(), **figures, **where, **more}


def score(
    hamming: float, asymmetric: float | None = None, right: tuple[float, ...] = ()
) -> dict[str, list[float]]:
    """Return both distances with their bounds, and how right the first answers are."""
    both = {"hamming": hamming, "asymmetric": hamming if asymmetric is None else asymmetric}
    return {name: [value, value / 2, (1 + value) / 2, *right] for name, value in both.items()}


def tables(text: str) -> list[list[list[str]]]:
    """Return the cells of every table of a report, the head first, without what makes them bold."""
    found = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    lines = ([line.strip("| \n").split("|") for line in table.splitlines()] for table in found)
    return [
        [[cell.strip(" *") for cell in line] for line in table if "---" not in line[0]]
        for table in lines
    ]


def line(table: list[list[str]], name: str) -> list[str]:
    """Return the cells of a line."""
    return next(cells[1:] for cells in table if cells[0] == name)


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from(METHODS), st.sampled_from(WIDTHS), st.integers(0, 3)),
        st.tuples(scores, scores, scores),
        min_size=1,
    ),
    st.randoms(use_true_random=False),
)
def test_cells_are_means_over_seeds_and_dashes_where_nothing_was_run(
    values: dict[tuple[str, int, int], tuple[float, float, float]], order: random.Random
) -> None:
    rows = [
        row(method, bits, seed, mapping=score(h, a), seconds=s)
        for (method, bits, seed), (h, a, s) in values.items()
    ]
    text = report.text(BARE, rows)
    order.shuffle(rows)
    assert report.text(BARE, rows) == text
    table = tables(text)[0]
    there = sorted({bits for _, bits, _ in values})
    for method in {method for method, _, _ in values}:
        cells = line(table, method)
        for place, (figure, bits) in enumerate((f, b) for f in (0, 1) for b in there):
            mine = [v[figure] for (m, b, _), v in values.items() if (m, b) == (method, bits)]
            assert cells[place] == (f"{fmean(mine):.3f}" if mine else "-")
        timed = [v[2] for (m, b, _), v in values.items() if (m, b) == (method, there[-1])]
        assert cells[-1] == (f"{min(timed):.3f}" if timed else "-")


def test_right_answers_stand_with_their_confidence_interval_and_bytes() -> None:
    rows = [
        row(method, seed=seed, mapping=score(0.5, right=(first, 0.4)), bytes={"mapping": 4.375})
        for method, firsts in (("everhash", (0.5, 0.6, 0.7)), ("okh", (0.7,)))
        for seed, first in enumerate(firsts)
    ]
    table = next(table for table in tables(report.text(BARE, rows)) if "first" in table[0])
    half = 4.3027 * stdev((0.5, 0.6, 0.7)) / 3**0.5  # Student's t with two degrees of freedom
    assert line(table, "everhash")[1] == f"0.600 ± {half:.3f}"
    assert line(table, "okh")[1].strip("*") == "0.700"
    assert line(table, "okh")[2:4] == ["0.400", "4.4"]
    assert "first" not in str(tables(report.text(BARE, [row(mapping=score(0.5))])))


def test_a_page_names_the_command_of_its_rows() -> None:
    tasks = [task for task in load("table1").tasks() if task.method == "paper" and task.bits == 8]
    rows = [row(**vars(task), mapping=score(0.5), jobs=2) for task in tasks]
    assert "Run by `everhash bench run table1 --jobs 2`." in report.text(load("table1"), rows)
    assert "Run by" not in report.text(BARE, rows)


def test_the_best_of_each_column_is_bold() -> None:
    rows = [row("everhash", mapping=score(0.5, 0.9)), row("osh", mapping=score(0.6, 0.8))]
    found = re.findall(r"^\| (\w+) +\| +(\S+) \| +(\S+) \|", report.text(BARE, rows), re.MULTILINE)
    assert ("osh", "**0.600**", "0.800") in found
    assert ("everhash", "0.500", "**0.900**") in found


def test_methods_are_grouped_and_in_the_order_of_the_paper() -> None:
    batch, online = ("shecc", "itq", "smarthash"), ("onehot", "osh", "okh")
    names = ("everhash", "cosine", "everhash-sgd", *online, "paper", *batch)
    rows = [row(name, 0 if name == "cosine" else 32, mapping=score(0.5)) for name in names]
    first = [cells[0] for cells in tables(report.text(BARE, rows))[0][1:]]
    assert first == [
        *("batch", "smarthash", "shecc", "itq", "online", "okh", "osh", "onehot"),
        *("ours", "paper", "everhash-sgd", "everhash", "no code", "cosine"),
    ]


def test_a_method_without_bits_has_no_hamming_distance_and_stands_at_each_width() -> None:
    rows = [row("everhash", bits, mapping=score(0.4)) for bits in WIDTHS]
    rows.append(row("onehot", 0, mapping=score(0.3, 0.7)))
    assert line(tables(report.text(BARE, rows))[0], "onehot")[:4] == ["-", "-", "0.700", "0.700"]


def test_every_table_says_what_it_was_measured_on() -> None:
    rows = [row("everhash", seed=seed, mapping=score(0.5)) for seed in range(3)]
    rows += [row("shecc", mapping=score(0.5), jobs=2, machine="another machine")]
    text = report.text(BARE, rows)
    told = re.sub(r"\s+", " ", text)
    assert told.count("700 stream rows, 1,457 entries, at most 1,000 queries") == len(tables(text))
    assert "Seeds: batch 1, ours 3. a machine; one run at a time." in told
    assert "another machine; 2 runs at a time." in told


def test_the_widest_gap_of_tied_entries_is_shown() -> None:
    rows = [
        row(seed=0, mapping={"hamming": [0.5, 0.4, 0.6], "asymmetric": [0.5, 0.5, 0.5]}),
        row(seed=1, mapping={"hamming": [0.5, 0.1, 0.9], "asymmetric": [0.5, 0.5, 0.5]}),
    ]
    assert line(tables(report.text(BARE, rows))[-1], "everhash") == ["0.800", "0.000"]


def test_numbers_that_are_none_count_as_missing() -> None:
    bad = {"hamming": [None, None, None], "asymmetric": [float("nan")] * 3}
    rows = [row(mapping=score(0.5)), row("osh", mapping=bad), row("osh", seed=1, mapping=None)]
    assert "osh" not in [cells[0] for cells in tables(report.text(BARE, rows))[0]]


def test_published_figures_stand_under_ours_where_they_can_be_compared() -> None:
    def told(dataset: str, stream: int) -> list[tuple[str, str]]:
        rows = [
            row(name, bits, dataset=dataset, stream=stream, codeword=score(0.3), mapping=score(0.3))
            for name in ("paper", "osh", "bre")
            for bits in (8, 16, 32, 64)
        ]
        text = report.text(BARE, rows)
        assert ("VGG16 fc7" in text) == (dataset == "cifar10-cnn")
        assert ("more than 20% below" in text) == (stream == 2000)
        return re.findall(r"^\| \*published: (.*?)\* *\| (.*) \|$", text, re.MULTILINE)

    def cells(dataset: str, name: str, seconds: str) -> str:
        found = next(each for each in LINES if (each.dataset, each.name) == (dataset, name))
        return "|".join([*(f"{value:.2f}" for value in found.scores), *["-"] * 4, seconds])

    gist = {name: re.sub(r"\s", "", line) for name, line in told("cifar10-gist", 2000)}
    assert gist["Ours"] == cells("cifar10-gist", "Ours", "2.30")
    assert gist["BRE"] == cells("cifar10-gist", "BRE", "263")
    assert set(gist) == {"Ours", "OSH", "BRE"}
    cnn = {name: re.sub(r"\s", "", line) for name, line in told("cifar10-cnn", 2000)}
    assert cnn["Ours (Φ)"] == cells("cifar10-cnn", "Ours (Φ)", "5.20")
    assert set(cnn) == {"Ours", "Ours (Φ)", "OSH"}
    assert not told("cifar10-gist", 1000)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(METHODS), st.integers(0, 3)), st.tuples(scores, scores)
    )
)
def test_wins_are_all_figures_that_are_more_than_ours_over_the_seeds_both_have(
    values: dict[tuple[str, int], tuple[float, float]],
) -> None:
    rows = [row(m, seed=seed, mapping=score(*both)) for (m, seed), both in values.items()]
    columns = [
        Column(name, "32", "32 bits", mean_average_precision("mapping", name), at_bits(32))
        for name in ("hamming", "asymmetric")
    ]
    found = {(win.line, win.column.group) for win in wins(lines_of(rows), columns)}

    def mean(method: str, place: int, seeds: set[int]) -> float:
        return fmean(values[method, seed][place] for seed in seeds)

    there = {method for method, _ in values}
    seeds_of = {m: {seed for method, seed in values if method == m} for m in {*there, "everhash"}}
    expected = {
        (method, name)
        for method in there - {"everhash"}
        for place, name in enumerate(("hamming", "asymmetric"))
        if (seeds := seeds_of[method] & seeds_of["everhash"])
        and float(f"{mean(method, place, seeds):.3f}")
        > float(f"{mean('everhash', place, seeds):.3f}")
    }
    assert found == expected


def test_who_beats_everhash_is_said_with_deviations_and_time() -> None:
    ours, theirs = (0.50, 0.52), (0.60, 0.63)
    rows = [row(seed=i, mapping=score(value, 0.9)) for i, value in enumerate(ours)]
    rows += [
        row("shk", seed=i, mapping=score(value, 0.8), seconds=20.0 + i)
        for i, value in enumerate(theirs)
    ]
    text = re.sub(r"\s+", " ", report.text(BARE, rows))
    pooled = ((stdev(ours) ** 2 + stdev(theirs) ** 2) / 2) ** 0.5
    apart = (fmean(theirs) - fmean(ours)) / pooled
    sentence = f"32 bits 0.615 against 0.510 (+0.105, {apart:.1f} sd, 40 x the time)"
    assert f"**Where a method beats everhash:** - `shk`, Hamming: {sentence} (Over" in text
    assert "`shk`, asymmetric" not in text


def test_one_seed_has_no_deviation_and_the_best_is_not_beaten() -> None:
    beaten = report.text(BARE, [row(mapping=score(0.5)), row("osh", mapping=score(0.6))])
    assert "one seed" in beaten
    unbeaten = report.text(BARE, [row(mapping=score(0.6)), row("osh", mapping=score(0.5))])
    assert "The only other method, `osh`, never beats everhash in this table." in unbeaten
    alone = report.text(BARE, [row(mapping=score(0.6))])
    assert "Only everhash was run: there is nothing to compare it with." in alone
    assert "There is no row of everhash" in report.text(BARE, [row("osh", mapping=score(0.6))])


def test_an_unfinished_experiment_says_how_many_runs_are_missing() -> None:
    runs = Runs("digits", methods=("everhash", "osh"), bits=(8, 16), seeds=3)
    plan = Experiment("mine", "Mine", "", (runs,))
    done = [{**row(mapping=score(0.5)), **task.as_row()} for task in plan.tasks()]
    assert "missing" not in report.text(plan, done)
    assert "**Unfinished: 2 of 12 runs are missing** (osh 2)." in report.text(plan, done[:-2])
    other = report.text(plan, [*done, row(bits=64, mapping=score(0.5))])
    assert "1 of 13 rows are of runs that the experiment does not ask for" in other
    assert "**Unfinished: 12 of 12 runs are missing**." in report.text(plan, [])


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"kind": "weather"}, UnknownNameError),
        ({"protocol": "guessing"}, UnknownNameError),
        ({"method": "nobody"}, UnknownNameError),
        ({"kind": "growth"}, InputError),
        ({"kind": "speed"}, InputError),
    ],
)
def test_rows_nobody_can_report_on_are_refused(changed: Row, error: type[Exception]) -> None:
    with pytest.raises(error):
        report.text(BARE, [{**row(mapping=score(0.5)), **changed}])


def robust() -> list[Row]:
    """Return rows of all protocols that vary something."""
    shared: Row = {"mapping": score(0.5, 0.6), "codeword": score(0.7, 0.8)}
    return [
        row(method, seed=seed, **figures)
        for method, lift in (("everhash", 0.0), ("osh", 0.1))
        for seed in (0, 1)
        for figures in (
            {"protocol": "unlabelled", "share": 0.0, "mixed": score(0.8 - lift)},
            {"protocol": "unlabelled", "share": 0.5, "mixed": score(0.6 + lift)},
            {"protocol": "noise", "share": 0.0, **shared},
            {"protocol": "noise", "share": 0.4, **shared},
            {"protocol": "unseen", "mapping": score(0.3 + lift, 0.4)},
            {"protocol": "out-of-scope", "auroc": 0.9 - lift},
        )
    ]


def grown(seed: int, order: str, area: float) -> Row:
    """Return a row of labels that arrive."""
    curve = [{"rows": 10 * n, "labels": n, "mapping": score(area + n / 100)} for n in range(1, 11)]
    areas = {"mapping": {"hamming": area, "asymmetric": area}}
    more: Row = {"kind": "growth", "protocol": order, "area": areas, "curve": curve}
    return row(seed=seed, **more)


def timed() -> list[Row]:
    """Return rows of growing costs, and of times against others."""
    sizes = [
        row(kind="scale", options=(("size", n),), axis="rows", size=n, what=what, seconds=n**p)
        for what, p in (("learning", 0.0), ("search", 1.5))
        for n in (10, 100, 1000)
    ]
    races = []
    for what, ours, peer, wanted in (
        ("fast", 2.0, 8.0, 3.0),
        ("slow", 2.0, 1.0, None),
        ("short", 2.0, 4.0, 3.0),
        ("alone", 2.0, None, None),
    ):
        figures: Row = {"what": what, "ours": ours, "peer": peer, "peer_name": "FAISS"}
        figures |= {"ratio": 0.0, "wanted": wanted, "unit": "us a query", "note": ""}
        races.append(row(kind="speed", options=(("what", what),), **figures))
    return [*sizes, *races]


def test_each_kind_of_rows_has_its_own_tables() -> None:
    text = report.text(BARE, robust())
    (unseen_, ties, unlabelled, _, by_codeword, by_mapping, *_, scope) = tables(text)
    assert line(unseen_, "osh")[:2] == ["0.400", "0.400"]
    assert unseen_[0] == ["method", "digits Hamming", "asymmetric", "s"]
    assert unlabelled[0] == ["method", "Hamming 0%", "50%", "asymmetric 0%", "50%"]
    assert line(unlabelled, "everhash") == ["0.800", "0.600", "0.800", "0.600"]
    assert line(unlabelled, "osh") == ["0.700", "0.700", "0.700", "0.700"]
    assert line(by_codeword, "osh") == ["0.700", "0.700", "0.800", "0.800"]
    assert line(by_mapping, "osh") == ["0.500", "0.500", "0.600", "0.600"]
    assert line(scope, "everhash")[0] == "0.900"
    assert len(ties) == 3
    rows = [grown(seed, o, 0.4 + seed / 10) for seed in (0, 1) for o in ("sorted", "joining")]
    areas = tables(report.text(BARE, rows))[0]
    assert areas[0][1] == "joining Hamming"
    assert line(areas, "everhash") == ["0.450", "0.450", "0.500", "0.450", "0.450", "0.500"]


def test_growing_costs_have_their_power_and_slow_races_are_named() -> None:
    text = report.text(BARE, timed())
    scale, races = tables(text)
    assert line(scale, "learning")[-1] == "0.00"
    assert line(scale, "search")[-1] == "1.50"
    assert line(races, "fast")[-2:] == ["4", "3"]
    assert line(races, "alone")[-3:] == ["-", "-", "-"]
    assert "- slow against FAISS (digits): 1 against 2 us a query" in text
    assert "- short against FAISS (digits): ratio 2, wanted 3" in text
    assert text.count("\n- ") == 2


@given(st.floats(-2, 3), st.floats(1e-6, 10), st.lists(st.integers(1, 10**6), unique=True))
def test_a_power_law_is_found(power: float, scale: float, sizes: list[int]) -> None:
    law = fitted(tuple((float(size), scale * size**power) for size in sizes))
    if len(sizes) < 2:
        assert law is None
    else:
        assert law is not None
        assert law.power == pytest.approx(power, abs=1e-6)


def test_sizes_that_differ_are_told_apart_and_others_are_not_named() -> None:
    rows = [
        {**each, "options": {"what": each["what"], "size": size}}
        for each in timed()
        if each["kind"] == "speed"
        for size in ((10, 2000) if each["what"] == "fast" else (10,))
    ]
    (races,) = tables(report.text(BARE, rows))
    assert [cells[0] for cells in races[1:]] == [
        *("alone", "fast, size 10", "fast, size 2,000", "short", "slow"),
    ]


@pytest.mark.parametrize("options", [(), (("step", 0.5),)])
def test_orders_of_the_stream_have_sections_of_their_own(options: Any) -> None:
    rows = [
        row(protocol=order, options=options, mapping=score(value))
        for order, value in (("strict", 0.6), ("sorted", 0.4), ("joining", 0.5))
    ]
    text = report.text(BARE, rows)
    orders = re.findall(r"^## digits, .*?(?: \((\w+):.*)?$", text, re.MULTILINE)
    assert orders == ["", "joining", "sorted"]
    assert "(sorted: the stream is sorted by label)" in text
    assert len({part.slug for part in report.parts(BARE, rows) if isinstance(part, Plot)}) == (
        1 if options else 3
    )


def test_variants_are_told_apart_by_their_options_in_order() -> None:
    rows = [
        row("paper", options=options, mapping=score(0.5), flipped=value, recomputed=9.0)
        for value, options in (
            (3.25, (("labels_per_cycle", 10),)),
            (2.25, (("labels_per_cycle", 2),)),
            (1.25, ()),
        )
    ]
    _, upkeep, *_ = tables(report.text(BARE, rows))
    assert [cells[0] for cells in upkeep[2:]] == [
        *("paper", "paper (labels_per_cycle=2)", "paper (labels_per_cycle=10)"),
    ]
    assert [cells[3] for cells in upkeep[2:]] == ["1.2", "2.2", "3.2"]
    picture = next(part for part in report.parts(BARE, rows) if isinstance(part, Plot))
    assert {label for each in picture.panels[-1].series for label in each.labels} == {
        *("paper", "paper 2", "paper 10")
    }


@given(st.lists(st.floats(-1e3, 1e3), max_size=12), st.floats(0.1, 50))
def test_names_are_moved_apart_and_keep_their_order(places: list[float], gap: float) -> None:
    moved = apart(places, gap)
    order = sorted(range(len(places)), key=lambda i: places[i])
    for below, above in pairwise(order):
        assert moved[above] - moved[below] >= gap - 1e-6


def test_the_same_rows_give_the_same_bytes_and_links_lead_to_files(tmp_path: Path) -> None:
    rows = [
        row(method, seed=seed, mapping=score(0.4 + seed / 9 + len(method) / 99))
        for method in ("everhash", "osh")
        for seed in (0, 1)
    ]
    first = report.write(BARE, rows, tmp_path / "a")
    second = report.write(BARE, rows[::-1], tmp_path / "b")
    assert [path.name for path in first] == [path.name for path in second]
    assert {path.suffix for path in first} == {".md", ".png", ".svg"}
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    assert not any(b"<dc:date>" in path.read_bytes() for path in first)
    linked = re.findall(r"\]\(([^)]+)\)", first[0].read_text())
    assert {tmp_path / "a" / name for name in linked} == set(first[1:])


def test_figures_without_matplotlib_name_the_extra_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # as if it were not installed
    rows = [row(mapping=score(0.4))]
    assert "everhash" in report.text(BARE, rows)
    with pytest.raises(InputError, match=r"a picture needs: pip install 'everhash\[plot\]'"):
        report.write(BARE, rows, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_all_other_figures_can_be_drawn(tmp_path: Path) -> None:
    from everhash.bench.reporting import figures

    drawn = unseen([each for each in robust() if each["protocol"] == "unseen"])
    sets = (drawn, report.parts(BARE, timed()), report.parts(BARE, [grown(0, "sorted", 0.4)]))
    pictures = [part for parts in sets for part in parts if isinstance(part, Plot)]
    assert [picture.slug for picture in pictures] == ["unseen", "scale", "digits-200-32-growth"]
    for picture in pictures:
        figure = figures.draw(picture)
        assert len(figure.axes) == len(picture.panels)


def test_the_command_writes_pages_and_an_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(each) + "\n" for each in timed() if each["kind"] == "speed"]
    (tmp_path / "speed.jsonl").write_text("".join(lines))
    (tmp_path / "everhash-results").mkdir()
    (tmp_path / "everhash-results" / "own.jsonl").write_text(lines[0])
    run = CliRunner().invoke(app, ["bench", "report", "speed.jsonl", "own", "--out", "pages"])
    assert run.exit_code == 0, run.output
    assert load("speed").title in (tmp_path / "pages" / "speed.md").read_text()
    index = (tmp_path / "pages" / "README.md").read_text()
    assert "- [speed: digits](speed.md): " in index
    assert "- [own](own.md): " in index
    again = CliRunner().invoke(app, ["bench", "report", "--out", "pages", "--overwrite"])
    assert again.exit_code == 0
    assert (tmp_path / "pages" / "README.md").read_text() == index


def test_rows_of_scripts_beside_those_of_experiments_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    published = tmp_path / "docs" / "results"
    published.mkdir(parents=True)
    lines = [json.dumps(each) + "\n" for each in timed() if each["kind"] == "speed"]
    (published / "speed.jsonl").write_text("".join(lines))
    (published / "kills.jsonl").write_text('{"part": "kills"}\n')
    (published / "kills.md").write_text("# Kills\n")
    command = ["bench", "report", "--out", "docs/results", "--overwrite"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    assert (published / "speed.md").is_file()
    assert (published / "kills.md").read_text() == "# Kills\n"


def test_the_command_refuses_names_without_rows_and_pages_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for names in (["table1"], []):
        run = CliRunner().invoke(app, ["bench", "report", *names, "--out", "pages"])
        assert isinstance(run.exception, UnknownNameError | InputError)
    (tmp_path / "README.md").write_text("# Mine\n")
    (tmp_path / "own.jsonl").write_text(json.dumps(timed()[-1]) + "\n")
    run = CliRunner().invoke(app, ["bench", "report", "own.jsonl", "--out", "."])
    assert isinstance(run.exception, InputError)
    assert (tmp_path / "README.md").read_text() == "# Mine\n"
