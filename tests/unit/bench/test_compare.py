"""Two files of results held against each other, from Python and from the command line."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from everhash import cli
from everhash.bench.compare import Comparison, compare, figures_of, names_of
from everhash.bench.rows import plain
from everhash.bench.task import Row, Task
from everhash.errors import InputError, OptionError

MACHINE = "Some CPU, 2 cores; Python 3.11.7, NumPy 2.4.6, Numba 0.68.1, everhash 0.1.0"
ENV = {"COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}


def row(seed: int = 0, method: str = "everhash", **changes: Any) -> Row:
    """Return a row as a run writes it."""
    task = Task("retrieval", "digits", method, 32, seed, 200)
    figures = {
        "seconds": 2.0,
        "encoding": 0.1,
        "flipped": 4.0,
        "recomputed": 40.0,
        "width": 32,
        "mapping": {"hamming": [0.6, 0.5, 0.7], "asymmetric": [0.65, 0.65, 0.65]},
        "codeword": {"hamming": [0.8, 0.8, 0.8]},
        "taken": 7.0,
        "jobs": 1,
        "machine": MACHINE,
    }
    return {**task.as_row(), **figures, **changes}


def with_mapping(value: float, seed: int = 0) -> Row:
    changed = row(seed)
    changed["mapping"]["hamming"][0] = value
    return changed


def write(path: Path, rows: list[Row], end: str = "") -> Path:
    path.write_text("".join(json.dumps(plain(one)) + "\n" for one in rows) + end)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(
        cli.app, ["bench", "compare", *(str(argument) for argument in arguments)], env=ENV
    )


def test_numbers_of_a_row_have_one_name_each_and_what_is_none_is_left_out() -> None:
    told = {"area": {"mapping": {"hamming": 0.5}}, "auroc": math.nan, "width": "wide", "ours": True}
    assert figures_of(told, (*told, "mapping")) == {"area mapping hamming": 0.5, "auroc": None}


def test_a_drop_is_a_regression_if_its_mean_over_the_seeds_is_beyond_the_tolerance() -> None:
    before = [row(seed) for seed in range(4)]
    after = [with_mapping(0.6 - drop, seed) for seed, drop in enumerate((0.02, 0, 0, 0))]
    (change,) = compare(before, after).changes
    assert (change.figure, change.seeds, change.better) == ("mapping hamming", 4, False)
    assert change.before == pytest.approx(0.6)
    assert change.after == pytest.approx(0.595)
    assert change.largest == pytest.approx(0.02)
    assert not change.regression  # as much as is allowed
    assert compare(before, after, tolerance=0.0049).regressions == 1
    after[1]["mapping"]["hamming"][0] -= 0.001
    assert compare(before, after).regressions == 1


def test_a_rise_is_better_and_differences_that_cancel_are_shown_as_neither() -> None:
    assert [c.better for c in compare([row()], [with_mapping(0.61)]).changes] == [True]
    after = [with_mapping(0.7, 0), with_mapping(0.5, 1)]
    (change,) = compare([row(0), row(1)], after).changes
    assert (change.better, change.regression) == (None, False)
    assert change.largest == pytest.approx(0.1)


def test_every_difference_is_shown_but_those_of_rounding() -> None:
    assert compare([row()], [with_mapping(0.6 + 1e-8)]).changes
    assert compare([row()], [with_mapping(0.6 + 1e-10)]).silent


@pytest.mark.parametrize("figure", ["flipped", "recomputed"])
def test_counted_costs_may_rise_by_a_share(figure: str) -> None:
    old = row()[figure]
    (change,) = compare([row()], [{**row(), figure: old * 1.004}]).changes
    assert (change.better, change.regression) == (False, False)
    assert compare([row()], [{**row(), figure: old * 1.006}]).regressions == 1
    assert [c.better for c in compare([row()], [{**row(), figure: 0.0}]).changes] == [True]
    assert compare([{**row(), figure: 0.0}], [row()]).regressions == 1


def test_what_is_neither_better_nor_worse_is_shown_and_no_regression() -> None:
    (change,) = compare([row()], [row(width=64)]).changes
    assert (change.figure, change.better, change.regression) == ("width", None, False)
    fewer_ties = row()
    fewer_ties["mapping"]["hamming"] = [0.6, 0.58, 0.62]
    changes = compare([row()], [fewer_ties]).changes
    assert [(c.figure, c.better) for c in changes] == [
        ("mapping hamming lowest", True),
        ("mapping hamming highest", None),
    ]


def test_a_score_that_is_gone_is_a_regression_and_a_new_one_is_not() -> None:
    less = row()
    del less["codeword"]
    gone = compare([row()], [less])
    assert [c.regression for c in gone.changes] == [True, True, False]  # the last: highest
    assert gone.changes[0].after is None
    new = compare([less], [row()])
    assert len(new.changes) == 3
    assert new.regressions == 0
    assert compare([row(auroc=0.9)], [row(auroc=None)]).regressions == 1
    assert compare([row(auroc=None)], [row(auroc=None)]).silent


def test_runs_that_differ_in_more_than_their_seed_are_not_averaged() -> None:
    low = {**with_mapping(0.5), "share": 0.5}
    high = {**with_mapping(0.7), "share": 0.25}
    before = [{**row(), "share": share} for share in (0.5, 0.25)]
    changes = compare(before, [low, high]).changes
    assert [(c.task.share, c.regression) for c in changes] == [(0.5, True), (0.25, False)]


def test_regressions_come_first_and_scores_before_costs() -> None:
    after = with_mapping(0.59) | {"flipped": 40.0, "width": 64, "recomputed": 1.0}
    found = [change.figure for change in compare([row()], [after]).changes]
    assert found == ["mapping hamming", "flipped", "recomputed", "width"]


def test_times_are_judged_by_their_geometric_mean_over_a_method() -> None:
    before = [row(seed) for seed in range(3)] + [row(method="osh")]
    slow = [row(seed, seconds=2.0 * factor) for seed, factor in enumerate((4, 1, 1))]
    after = [*slow, row(method="osh", seconds=0.5)]
    paces = {(p.method, p.time): p for p in compare(before, after).paces}
    pace = paces["everhash", "seconds"]
    assert pace.ratio == pytest.approx(4 ** (1 / 3))
    assert (pace.runs, pace.verdict, pace.regression) == (3, "slower", True)
    assert paces["everhash", "encoding"].verdict == ""
    assert paces["osh", "seconds"].verdict == "faster"
    assert compare(before, after).regressions == 1
    assert compare(before, after, slower=1.6).regressions == 0


def test_times_of_several_things_are_kept_apart() -> None:
    before = [row(0, what="search"), row(1, what="learning")]
    after = [row(0, what="search", seconds=8.0), row(1, what="learning", seconds=0.5)]
    found = {p.time: p.ratio for p in compare(before, after).paces}
    assert found["search seconds"] == pytest.approx(4)
    assert found["learning seconds"] == pytest.approx(0.25)


def test_times_that_are_none_or_nothing_are_left_out() -> None:
    after = row(seconds=None, encoding=0.0)
    assert compare([row()], [after]).paces == []
    assert compare([after], [row()]).paces == []


def test_times_of_another_machine_are_shown_but_count_for_nothing() -> None:
    after = row(seconds=20.0, machine=MACHINE.replace("2 cores", "64 cores"))
    found = compare([row()], [after])
    assert [p.verdict for p in found.paces] == ["slower", ""]
    assert found.regressions == 0
    (note,) = found.notes
    assert "machines differ (Some CPU, 2 cores / Some CPU, 64 cores)" in note


def test_another_everhash_is_no_other_machine_but_other_software_is_told() -> None:
    newer = MACHINE.replace("everhash 0.1.0", "everhash 0.2.0")
    found = compare([row()], [row(seconds=20.0, machine=newer)])
    assert (found.notes, found.regressions) == ([], 1)
    (note,) = compare([row()], [row(machine=newer.replace("NumPy 2.4.6", "NumPy 3.0"))]).notes
    assert "software differs" in note
    (note,) = compare([row()], [row(jobs=2)]).notes
    assert "runs at once differs (1 / 2)" in note
    unknown = {key: value for key, value in row().items() if key != "machine"}
    assert "/ unknown" in compare([row()], [unknown]).notes[0]


def test_runs_of_one_file_alone_are_named() -> None:
    found = compare([row(0), row(1)], [row(0), row(2)])
    assert [task.seed for task in found.only_before] == [1]
    assert [task.seed for task in found.only_after] == [2]
    assert found.regressions == 0
    assert not found.silent


def test_names_say_what_tells_runs_apart() -> None:
    task = Task("retrieval", "digits", "paper", 16, 3, 200, options=(("step", 2.0),))
    other = Task("retrieval", "digits", "cosine", 0, 0, 40, share=0.5)
    assert list(names_of([task]).values()) == ["digits, paper (step=2.0), 16 bits"]
    assert list(names_of([task, other]).values()) == [
        "digits, paper (step=2.0), 16 bits, 0.0, 200 rows a label",
        "digits, cosine, 0.5, 40 rows a label",
    ]


def test_files_without_a_common_run_are_refused() -> None:
    with pytest.raises(InputError, match="no run is in both files: the first has 2, the second 1"):
        compare([row(0), row(1)], [row(2)])


@pytest.mark.parametrize("limits", [{"tolerance": -0.1}, {"slower": 0.9}, {"slower": math.nan}])
def test_limits_that_make_no_sense_are_refused(limits: dict[str, float]) -> None:
    with pytest.raises(OptionError, match="at least 0 and 1"):
        compare([row()], [row()], **limits)


# Properties

NUMBERS = st.none() | st.floats(0, 1)
SCORES = st.dictionaries(
    st.sampled_from(["hamming", "asymmetric"]), st.lists(NUMBERS, min_size=3, max_size=3)
)
FIGURES = st.fixed_dictionaries(
    {},
    optional={
        "mapping": SCORES,
        "codeword": SCORES,
        "area": st.dictionaries(st.sampled_from(["mapping"]), SCORES),
        "auroc": NUMBERS,
        "flipped": st.floats(0, 1e4),
        "width": st.integers(1, 256),
        "seconds": st.none() | st.floats(0, 1e5),
        "ours": st.floats(1e-9, 10) | st.dictionaries(st.text(max_size=3), st.floats(0, 10)),
        "machine": st.sampled_from([MACHINE, "", "other; x"]),
        "jobs": st.integers(1, 4),
    },
)
TASKS = st.builds(
    Task,
    st.sampled_from(["retrieval", "growth"]),
    st.sampled_from(["digits", "clinc150"]),
    st.sampled_from(["everhash", "osh"]),
    st.sampled_from([0, 32]),
    st.integers(0, 2),
)


@st.composite
def runs(draw: st.DrawFn) -> list[Row]:
    tasks = draw(st.lists(TASKS, min_size=1, max_size=6, unique=True))
    return [{**task.as_row(), **draw(FIGURES)} for task in tasks]


@settings(max_examples=40, deadline=None)
@given(runs(), st.floats(0, 1), st.floats(1, 3))
def test_a_file_compared_with_itself_shows_nothing(
    rows: list[Row], tolerance: float, slower: float
) -> None:
    found = compare(rows, deepcopy(rows), tolerance=tolerance, slower=slower)
    assert found.silent
    assert found.regressions == 0
    assert len(found.common) == len(rows)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_worse_one_way_is_better_the_other_way(data: st.DataObject) -> None:
    before = data.draw(runs())
    after = [{**Task.of(old).as_row(), **data.draw(FIGURES)} for old in before]
    there, back = compare(before, after), compare(after, before)

    def told(found: Comparison, sign: int) -> dict[Any, Any]:
        both = (c for c in found.changes if c.before is not None and c.after is not None)
        return {
            (c.task, c.figure): c.better if c.better is None or sign > 0 else not c.better
            for c in both
        }

    ways = told(there, 1), told(back, -1)
    assert ways[0].keys() == ways[1].keys()
    whole = {(c.task, c.figure) for c in there.changes if c.largest < math.inf}
    partly = {key for key in whole if ways[0][key] != ways[1][key]}
    # a run that has lost a figure is worse whatever the others say; a new one is no gain
    assert all(any(None in values for values in _values(key, before, after)) for key in partly)
    ratios = ({(p.method, p.time): p.ratio for p in found.paces} for found in (there, back))
    one, other = ratios
    assert one == pytest.approx({key: 1 / ratio for key, ratio in other.items()})


def _values(
    key: tuple[Task, str], before: list[Row], after: list[Row]
) -> list[tuple[float | None, float | None]]:
    task, figure = key
    name = [figure.partition(" ")[0]]
    return [
        (figures_of(old, name).get(figure), figures_of(new, name).get(figure))
        for old, new in zip(before, after, strict=True)
        if (old["kind"], old["dataset"], old["method"], old["bits"])
        == (task.kind, task.dataset, task.method, task.bits)
    ]


# The command


def test_a_file_beside_itself_says_that_nothing_differs(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [row(0), row(1)])
    result = run(path, path)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "2 runs in both: nothing differs\n"
    (answer,) = map(json.loads, run(path, path, "--json").stdout.splitlines())
    assert (answer["common"], answer["regressions"], answer["figures"]) == (2, 0, [])


def test_a_regression_is_shown_and_is_exit_code_1(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [row(0), row(1)])
    b = write(tmp_path / "b.jsonl", [with_mapping(0.5), row(2, seconds=9.0)])
    result = run(a, b)
    assert result.exit_code == 1
    assert "digits, everhash, 32 bits" in result.stdout
    assert "-0.1000" in result.stdout
    assert "only in a: 1 run: digits, everhash, 32 bits, seed 1\n" in result.stdout
    assert "only in b: 1 run: digits, everhash, 32 bits, seed 2\n" in result.stdout
    assert result.stdout.endswith("0 faster; 1 regression\n")
    tolerant = run(a, b, "--tolerance", 0.2)
    assert tolerant.exit_code == 0
    assert "tolerated" in tolerant.stdout


def test_slow_times_are_shown_and_are_exit_code_1(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [row()])
    b = write(tmp_path / "b.jsonl", [row(seconds=8.0)])
    result = run(a, b)
    assert result.exit_code == 1
    assert "4.00" in result.stdout
    assert "1 time slower" in result.stdout
    assert run(a, b, "--slower", 5).stdout == "1 run in both: nothing differs\n"
    other = write(tmp_path / "c.jsonl", [row(seconds=8.0, machine="Other, 1 cores; Python 4")])
    result = run(a, other)
    assert result.exit_code == 0
    assert "the machines differ" in result.stdout


def test_json_has_everything_and_no_number_that_is_none(tmp_path: Path) -> None:
    less = {key: value for key, value in row().items() if key != "codeword"}
    a, b = write(tmp_path / "a.jsonl", [row()]), write(tmp_path / "b.jsonl", [less, row(1)])
    result = run(a, b, "--json", "--most", 0)
    assert result.exit_code == 1
    answer = json.loads(result.stdout, parse_constant=pytest.fail)
    assert [change["figure"] for change in answer["figures"]] == [
        "codeword hamming",
        "codeword hamming lowest",
        "codeword hamming highest",
    ]
    assert answer["figures"][0]["after"] is None
    assert answer["figures"][0]["dataset"] == "digits"
    assert [task["seed"] for task in answer["only_after"]] == [1]
    assert {pace["time"] for pace in answer["times"]} == {"seconds", "encoding"}


def test_long_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    names = [f"m{number}" for number in range(30)]
    a = write(tmp_path / "a.jsonl", [row(method=name) for name in names])
    b = write(tmp_path / "b.jsonl", [row(method=name, auroc=0.5, width=8) for name in names])
    result = run(a, b)
    assert result.exit_code == 0
    assert "and 40 more" in result.stdout
    assert result.stdout.count("digits, m") == 20
    assert run(a, b, "--most", 60).stdout.count("digits, m") == 60
    rest = write(tmp_path / "rest.jsonl", [row(method=name) for name in names[:3]])
    assert "; and 22 more\n" in run(a, rest).stdout


def test_a_torn_last_line_is_left_out(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [row(0), row(1)])
    b = write(tmp_path / "b.jsonl", [row(0), row(1)], end='{"kind": "retr')
    assert run(a, b).stdout == "2 runs in both: nothing differs\n"


@pytest.mark.parametrize("content", ["", '{"torn'])
def test_a_file_without_a_row_is_refused(tmp_path: Path, content: str) -> None:
    a, b = write(tmp_path / "a.jsonl", [row()]), tmp_path / "b.jsonl"
    b.write_text(content)
    for pair in ((a, b), (b, a)):
        error = run(*pair).exception
        assert isinstance(error, InputError)
        assert "b.jsonl: no row of results" in str(error)


def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path) -> None:
    a = write(tmp_path / "a.jsonl", [row()])
    b = tmp_path / "b.jsonl"
    b.write_text(json.dumps(row()) + '\n{"a": 1}\n')
    error = run(a, b).exception
    assert isinstance(error, InputError)
    assert "line 2" in str(error)


def test_files_of_other_experiments_are_refused(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.jsonl", [row(0)]), write(tmp_path / "b.jsonl", [row(1)])
    error = run(a, b).exception
    assert isinstance(error, InputError)
    assert "no run is in both" in str(error)


def test_help_says_what_is_compared() -> None:
    told = run("--help").stdout
    for word in ("regression", "--tolerance", "--slower", "--json", "Example"):
        assert word in told
