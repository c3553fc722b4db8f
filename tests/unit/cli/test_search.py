"""`everhash search`: the matches of the library, as a table and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash.cli.formatting import printable
from everhash.wire.options import WAYS
from tests.unit.cli.commands import COLUMNS, DIM, Write, answers, on_terminal, output, rows

HEADING = ["query", "rank", "score", "likeness", "label", "id"]


def shown_label(match: dict[str, Any]) -> str:
    return str(match["label"]) if match["label"] is not None else f"~{match['guess']}"


def test_search_prints_one_line_a_match(shop: Path, queries: Path) -> None:
    heading, *lines = output("search", shop, queries, "-k", 3, "--explain").splitlines()
    assert heading.split() == [*HEADING, "explanation"]
    expected = [
        [
            *(str(answer["query"]), str(rank), f"{match['score']:.2f}"),
            *(f"{match['likeness']:.2f}", shown_label(match), str(match["id"])),
        ]
        for answer in answers("search", shop, queries, "-k", 3)
        for rank, match in enumerate(answer["found"], start=1)
    ]
    for line, cells in zip(lines, expected, strict=True):
        assert line.split()[:6] == cells
        assert re.search(r"(codeword|own bits), cycle 0: \d+ of 32 bits agree$", line)


@pytest.mark.parametrize("by", WAYS)
@pytest.mark.parametrize("exact", [False, True])
def test_every_way_of_searching_is_that_of_the_library(
    shop: Path, queries: Path, by: str, exact: bool
) -> None:
    options = ("--by", by, *(("--exact",) if exact else ()))
    found = answers("search", shop, queries, "-k", 4, *options)
    with everhash.open(shop, readonly=True) as library:
        expected = library.search(np.load(queries), 4, by, exact=exact)
    assert [answer["by"] for answer in found] == expected.by
    for name, wanted in (("id", expected.ids), ("guess", expected.guesses)):
        assert [[m[name] for m in a["found"]] for a in found] == wanted.tolist()
    scores = [[match["score"] for match in answer["found"]] for answer in found]
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-6)
    heading, *_ = output("search", shop, queries, "-k", 4, *options).splitlines()
    assert heading.split() == HEADING


def test_a_recall_is_that_of_the_library(
    shop: Path, queries: Path, refused: Callable[..., str]
) -> None:
    options = ("-k", 4, "--by", "likeness", "--recall")
    found = answers("search", shop, queries, *options, 0.5)
    with everhash.open(shop, readonly=True) as library:
        expected = library.search(np.load(queries), 4, "likeness", recall=0.5)
    assert [[match["id"] for match in one["found"]] for one in found] == expected.ids.tolist()
    assert len(answers("search", shop, "--like", "sku-3", *options, 1)) == 1
    for share in (0, -0.5, 1.01, "nan"):
        refused(2, "search", shop, queries, "--recall", share, says="recall must be a number above")
    refused(2, "search", shop, "--like", "sku-3", "--recall", 2, says="at most 1, got 2.0")
    refused(2, "search", shop, queries, "-r", 2, "--recall", 1, says="-r or --recall, got both")


def test_search_is_by_relevance_unless_told(shop: Path, queries: Path) -> None:
    told = answers("search", shop, queries, "--by", "relevance")
    assert answers("search", shop, queries) == told
    for answer in answers("search", shop, queries):
        assert all(0 <= match["score"] <= 1 for match in answer["found"])


def test_search_takes_its_options(shop: Path, queries: Path) -> None:
    first, *more = answers("search", shop, queries, "--limit", 1, "--by", "hamming", "-k", 4)
    assert more == []
    assert [match["score"] % 1 for match in first["found"]] == [0] * 4
    only = answers("search", shop, queries, "--labels", "label-1", "--labels", "label-2")
    assert {match["label"] for answer in only for match in answer["found"]} <= {
        "label-1",
        "label-2",
    }
    for answer in answers("search", shop, queries, "--unlabelled"):
        assert [match["label"] for match in answer["found"]] == [None] * 10
        assert {match["guess"] for match in answer["found"]} <= {f"label-{i}" for i in range(3)}
    for answer in answers("search", shop, queries, "--explain"):
        for match in answer["found"]:
            explanation = match["explanation"]
            assert explanation["label"] == match["label"]
            assert (explanation["cycle"], len(explanation["bits"])) == (0, 32)


def test_without_likeness_codes_there_is_no_likeness(
    tmp_path: Path, queries: Path, write: Write
) -> None:
    path = tmp_path / "bare.ever"
    output("create", path, "--dim", DIM, "--no-likeness", "--keep-features", "none")
    output("ingest", path, write(), *COLUMNS)
    (answer,) = answers("search", path, queries, "--limit", 1, "-k", 1)
    assert answer["found"][0]["likeness"] is None
    assert output("search", path, queries, "--limit", 1, "-k", 1).split()[9] == "-"


def test_search_by_entries_is_that_of_the_library(
    shop: Path, queries: Path, refused: Callable[..., str]
) -> None:
    found = answers("search", shop, "--like", "sku-3", "--like", 7, "-k", 4)
    with everhash.open(shop, readonly=True) as library:
        expected = library.search_like(["sku-3", 7], 4)
    assert [[match["id"] for match in answer["found"]] for answer in found] == (
        expected.ids.tolist()
    )
    assert (
        output("search", shop, "--like", "sku-3", "--labels", "label-1", "-k", 1).count("\n") == 2
    )
    refused(2, "search", shop, says="a file of queries or --like")
    refused(2, "search", shop, queries, "--like", "sku-3", says="a file of queries or --like")
    refused(3, "search", shop, "--like", "sku-99", says="sku-99")


def test_search_of_nothing_finds_nothing(tmp_path: Path, queries: Path) -> None:
    path = tmp_path / "empty.ever"
    output("create", path, "--dim", DIM)
    found = answers("search", path, queries)
    assert [answer["found"] for answer in found] == [[]] * 4
    assert found[0]["novelty"] == 1, "nothing was learned that a query could resemble"
    assert output("search", path, queries) == "nothing was found\n"


def test_queries_of_another_width_are_refused(shop: Path, tmp_path: Path, refused: Any) -> None:
    np.save(tmp_path / "wide.npy", np.ones((2, DIM + 1)))
    says = "9 features a row, but the collection has 8 a row"
    refused(2, "search", shop, tmp_path / "wide.npy", says=says)
    np.save(tmp_path / "nan.npy", np.full((2, DIM), np.nan))
    refused(2, "search", shop, tmp_path / "nan.npy", says="nan.npy: row 0 holds NaN")


@pytest.fixture
def found_by(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Return a function that makes a collection with payloads, and a file of queries."""

    def make(payloads: list[Any]) -> tuple[Path, Path]:
        path, queries = tmp_path / "payloads.ever", tmp_path / "queries.npy"
        X, _ = rows(len(payloads))
        with everhash.create(path, dim=DIM) as collection:
            collection.ingest(X, list(range(len(X))), payloads=payloads)
        np.save(queries, X)
        return path, queries

    return make


def test_search_gives_payloads_in_full_as_json(found_by: Any) -> None:
    payloads = [{"text": "boots\nin winter", "n": [1, None]}, None, "x" * 4000, 0, False, ""]
    path, queries = found_by(payloads)
    for answer in answers("search", path, queries, "-k", 6):
        assert len(answer["found"]) == 6
        for match in answer["found"]:
            assert match["payload"] == payloads[match["id"]]


def test_search_shows_payloads_briefly_in_the_last_column(found_by: Any) -> None:
    payloads = [{"text": "winter boots", "n": 1}, None, "long " * 100, {"b": True, "vector": [1]}]
    path, queries = found_by(payloads)
    shown = ["winter boots", "", ("long " * 12)[:59] + "…", "b: true"]
    for options in ((), ("--explain",)):
        heading, *lines = output("search", path, queries, "-k", 4, *options).splitlines()
        assert heading.split()[-1] == "payload"
        assert len(lines) == 16
        start = heading.index("payload")
        for line in lines:
            name = int(line.split()[5])
            assert line[start:] == shown[name].rstrip()


def test_a_payload_cannot_move_the_cursor(found_by: Any) -> None:
    path, queries = found_by(["\x1b[2J[bold]\n\tx", {"\x1b": "\x9b"}])
    printed = output("search", path, queries, "-k", 2)
    assert not set(printed) & {"\x1b", "\x9b", "\t"}
    assert r"\x1b[2J[bold] x" in printed
    assert r"\x1b: \x9b" in printed


def test_without_payloads_there_is_no_column_for_them(shop: Path, queries: Path) -> None:
    heading = output("search", shop, queries).splitlines()[0]
    assert heading.split() == HEADING
    for answer in answers("search", shop, queries):
        assert all(match["payload"] is None for match in answer["found"])


def test_hostile_names_cannot_move_the_cursor(shop: Path, queries: Path) -> None:
    label = "\x1b[2J[bold]\n"
    output("label", shop, "--new", label, *(f"sku-{i}" for i in range(30)), *range(10))
    printed = output("search", shop, queries, "-k", 3)
    assert "\x1b" not in printed
    assert printable(label) == r"\x1b[2J[bold]\n"
    assert printable(label) in printed


def test_queries_are_known_by_their_ids(shop: Path, write: Write) -> None:
    table = write("new.parquet", 3, 100)
    options = ("--features", "embedding", "--id", "sku", "-k", 2)
    found = answers("search", shop, table, *options)
    assert [(one["query"], one["query_id"]) for one in found] == [
        (row, f"sku-{100 + row}") for row in range(3)
    ]
    lines = output("search", shop, table, *options).splitlines()
    names = [name for one in found for name in [one["query_id"]] * 2]
    assert [line.split()[0] for line in lines[1:]] == names
    (found,) = answers("search", shop, "--like", "sku-3", "-k", 1)
    assert (found["query"], found["query_id"]) == (0, "sku-3")


@pytest.mark.parametrize("by", [None, *WAYS])
def test_a_radius_finds_all_that_the_library_finds(
    shop: Path, queries: Path, by: str | None
) -> None:
    way = [] if by is None else ["--by", by]
    r = 20 if by in (None, "hamming", "asymmetric") else 0.5
    found = answers("search", shop, queries, "-r", r, *way)
    with everhash.open(shop, readonly=True) as library:
        expected = library.search_radius(np.load(queries), r, by or "hamming")
    assert [one["by"] for one in found] == expected.by
    ids = [row[:n].tolist() for row, n in zip(expected.ids, expected.counts, strict=True)]
    assert [[match["id"] for match in one["found"]] for one in found] == ids
    assert any(len(each) > 10 for each in ids)


def test_a_radius_is_instead_of_a_number_of_entries(
    shop: Path, queries: Path, refused: Callable[..., str]
) -> None:
    refused(2, "search", shop, queries, "-k", 3, "-r", 3, says="expected -k or -r, got both")
    refused(2, "search", shop, "--like", "sku-1", "-r", 3, says="-r needs a file of queries")
    refused(2, "search", shop, queries, "-r", "nan", says="r must be a number")
    assert output("search", shop, queries, "-r", -1) == "nothing was found\n"


def test_many_queries_are_numbered_through(shop: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "many.npy", rows(2100)[0])
    found = answers("search", shop, tmp_path / "many.npy", "-k", 1)
    assert [one["query"] for one in found] == list(range(2100))
    found = answers("search", shop, tmp_path / "many.npy", "-k", 1, "--limit", 1001)
    assert len(found) == 1001


@pytest.mark.slow
def test_progress_of_many_queries_goes_to_a_terminal_and_answers_do_not(
    shop: Path, tmp_path: Path
) -> None:
    np.save(tmp_path / "many.npy", rows(2100)[0])
    for command in ("search", "predict"):
        printed, seen = on_terminal(command, shop, tmp_path / "many.npy", "--json")
        assert len(printed.splitlines()) == 2100
        assert "2,100 of 2,100" in seen
