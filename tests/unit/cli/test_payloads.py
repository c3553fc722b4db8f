"""`everhash ingest --payload --thumbnail`: what goes in through a file is what entries carry."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from rich.cells import cell_len

import everhash
from everhash import Attachment, cli, limits
from everhash.cli.formatting import told
from tests.unit.cli.test_collection import (
    DIM,
    answers,
    output,
    process,
    rows,
    stats,
    wait_for_entries,
)

PNG, GIF = b"\x89PNG\r\n\x1a\n" + bytes(40), b"GIF89a" + bytes(9)
COLUMNS = ("--features", "v", "--label", "kind", "--id", "sku")
Columns = dict[str, list[Any]]


def write_parquet(path: Path, table: Columns) -> None:
    parquet.write_table(pa.table(table), path)


def write_arrow(path: Path, table: Columns) -> None:
    arrow = pa.table(table)
    with pa.ipc.new_stream(path, arrow.schema) as writer:
        writer.write_table(arrow, max_chunksize=3)


def write_feather(path: Path, table: Columns) -> None:
    pa.feather.write_feather(pa.table(table), str(path))


def write_csv(path: Path, table: Columns) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        names = [name for name in table if name != "v"]
        writer.writerow([*(f"v{i}" for i in range(DIM)), *names])
        for i, vector in enumerate(table["v"]):
            writer.writerow([*vector, *(table[name][i] for name in names)])


def write_npz(path: Path, table: Columns) -> None:
    arrays: dict[str, Any] = {name: np.array(values) for name, values in table.items()}
    np.savez(path, **arrays)


WRITERS: dict[str, Callable[[Path, Columns], None]] = {
    ".parquet": write_parquet,
    ".arrow": write_arrow,
    ".feather": write_feather,
    ".csv": write_csv,
    ".npz": write_npz,
}


def table_of(n: int, first: int = 0, **columns: list[Any]) -> Columns:
    X, y = rows(n, seed=first)
    ids = [f"sku-{i}" for i in range(first, first + n)]
    return {"v": X.tolist(), "kind": list(y), "sku": ids, **columns}


def ingested(path: Path, file: Path, *options: object) -> dict[Any, Attachment]:
    """Ingest a file into a new collection; return what its entries carry, by id."""
    path.unlink(missing_ok=True)
    output("create", path, "--dim", DIM)
    features = ("--features", "v*") if file.suffix == ".csv" else ()
    output("ingest", path, file, *COLUMNS, *features, *options)
    return carried(path)


def carried(path: Path) -> dict[Any, Attachment]:
    with everhash.open(path, readonly=True) as collection:
        ids = [entry.id for entry in collection.entries()]
        return dict(zip(ids, collection.attachments(ids), strict=True))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a collection of 30 entries that carry nothing."""
    path = tmp_path / "shop.ever"
    write_parquet(tmp_path / "shop.parquet", table_of(30))
    output("create", path, "--dim", DIM)
    output("ingest", path, tmp_path / "shop.parquet", *COLUMNS)
    return path


@pytest.fixture
def refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that runs what must fail with exit code 2, in one line with a hint."""

    def run(*arguments: object) -> str:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["everhash", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.run()
        printed = capsys.readouterr()
        assert (caught.value.code, printed.out) == (2, "")
        assert re.fullmatch(r"error: .+ \(.+\)\n", printed.err), printed.err
        return printed.err

    return run


# What goes in comes out

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=20)
WORDS = TEXTS.map(lambda text: f"x{text}x")  # no number, and no blank that a CSV would lose
VALUES = {
    "texts": WORDS,
    "integers": st.integers(-(2**53), 2**53),
    "numbers": st.floats(-1e9, 1e9, allow_nan=False, width=32).map(lambda x: round(x, 3) + 0.5),
    "booleans": st.booleans(),
}


@pytest.mark.parametrize("kind", WRITERS)
@given(data=st.data())
@settings(max_examples=5)
def test_what_goes_in_through_a_file_is_what_entries_carry(
    kind: str, data: st.DataObject, tmp_path: Path
) -> None:
    n, size = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 9))
    values = {
        name: data.draw(st.lists(one, min_size=n, max_size=n)) for name, one in VALUES.items()
    }
    file = tmp_path / f"rows{kind}"
    WRITERS[kind](file, table_of(n, 0, **values))

    column = data.draw(st.sampled_from(list(VALUES)))
    found = ingested(tmp_path / "one.ever", file, "--payload", column, "--rows", size)
    expected: list[Any] = values[column]
    assert [each.payload for each in found.values()] == expected
    assert [type(each.payload) for each in found.values()] == [type(value) for value in expected]

    names = [part for name in values for part in ("--payload", name)]
    found = ingested(tmp_path / "all.ever", file, *names, "--rows", size)
    expected = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    assert list(found) == [f"sku-{i}" for i in range(n)]
    assert [each.payload for each in found.values()] == expected


@pytest.mark.parametrize("kind", [".parquet", ".arrow", ".feather"])
def test_tables_give_lists_objects_gaps_and_pictures(kind: str, tmp_path: Path) -> None:
    about: list[Any] = [
        {"tags": ["a", None], "on": date(2024, 5, 1)},
        None,
        {"tags": [], "on": None},
    ]
    file = tmp_path / f"rows{kind}"
    WRITERS[kind](file, table_of(3, about=about, pic=[None, PNG, GIF]))
    found = ingested(tmp_path / "a.ever", file, "--payload", "about", "--thumbnail", "pic")
    assert list(found.values()) == [
        Attachment({"tags": ["a", None], "on": "2024-05-01"}, None),
        Attachment(None, PNG),
        Attachment({"tags": [], "on": None}, GIF),
    ]
    assert output("verify", tmp_path / "a.ever").startswith("ok: 3 entries")


def test_a_picture_may_come_alone_and_the_mapping_may_stay(tmp_path: Path, shop: Path) -> None:
    write_parquet(tmp_path / "b.parquet", table_of(3, 100, pic=[PNG] * 3, text=["a", "b", "c"]))
    options = ("--thumbnail", "pic", "--payload", "text", "--no-learn")
    output("ingest", shop, tmp_path / "b.parquet", *COLUMNS, *options)
    found = carried(shop)
    assert found["sku-101"] == Attachment("b", PNG)
    assert found["sku-1"] == Attachment()


def test_a_column_may_be_named_twice(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", table_of(2))
    twice = ("--payload", "kind", "--payload", "kind")
    found = ingested(tmp_path / "a.ever", tmp_path / "a.parquet", *twice)
    assert [each.payload for each in found.values()] == table_of(2)["kind"]


def test_a_row_that_is_carried_as_vector_can_be_searched_by(tmp_path: Path) -> None:
    """The page does that with a payload that has its row under this name."""
    X, y = rows(3)
    table = pa.table({"vector": pa.array(X.tolist(), pa.list_(pa.float32())), "kind": y})
    parquet.write_table(table, tmp_path / "a.parquet")
    output("create", tmp_path / "a.ever", "--dim", DIM)
    named = ("--label", "kind", "--payload", "vector", "--payload", "kind")
    output("ingest", tmp_path / "a.ever", tmp_path / "a.parquet", *named)
    for row, each in enumerate(carried(tmp_path / "a.ever").values()):
        assert np.array_equal(np.array(each.payload["vector"], np.float32), X[row])


def test_without_the_options_nothing_is_carried(shop: Path) -> None:
    assert set(carried(shop).values()) == {Attachment()}


# One bad row and nothing is applied


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        (
            {"about": ["a"] * 28 + ["x" * 4095, "b"]},
            ["--payload", "about"],
            r"row 28: the payload takes 4097 bytes, at most 4096 are kept "
            r"\(keep what is larger elsewhere, .*; nothing was applied\)",
        ),
        (
            {"about": ["a"] * 29 + ["x" * 4000], "more": ["é" * 50] * 30},
            ["--payload", "about", "--payload", "more"],
            r"row 29: the payload takes 4\d\d\d bytes, at most 4096",
        ),
        (
            {"about": [1.0] * 29 + [float("inf")]},
            ["--payload", "about"],
            "column 'about', row 29: .*infinity",
        ),
        (
            {"about": [b"\1"] * 30},
            ["--payload", "kind", "--payload", "about"],
            "column 'about', row 0: .*binary",
        ),
        ({}, ["--payload", "colour"], "no column 'colour' .there are 'v', 'kind', 'sku'"),
        ({}, ["--thumbnail", "colour"], "no column 'colour' .there are 'v', 'kind', 'sku'"),
        ({}, ["--thumbnail", "kind"], "column 'kind': .*got string .*no path is followed"),
        (
            {"pic": [GIF] * 28 + [GIF + bytes(limits.THUMBNAIL), None]},
            ["--thumbnail", "pic"],
            r"row 28: the thumbnail takes 32783 bytes, at most 32768 are kept "
            r"\(make the picture smaller; nothing was applied\)",
        ),
        (
            {"pic": [GIF] * 29 + [b"<svg>"]},
            ["--thumbnail", "pic"],
            "row 29: the thumbnail is no picture: it starts b'<svg>' .*nothing was applied",
        ),
    ],
)
def test_one_bad_row_and_nothing_of_any_file_is_applied(
    columns: Columns, options: list[str], says: str, shop: Path, tmp_path: Path, refused: Any
) -> None:
    before = stats(shop)
    good = {name: [values[0]] * 30 for name, values in columns.items()}
    write_parquet(tmp_path / "good.parquet", table_of(30, 1000, **good))
    write_parquet(tmp_path / "bad.parquet", table_of(30, 2000, **columns))
    files = (tmp_path / "good.parquet", tmp_path / "bad.parquet")
    said = refused("ingest", shop, *files, *COLUMNS, *options, "--rows", 4)
    assert re.search(rf"(good|bad)\.parquet: {says}", said), said
    assert stats(shop) == before


def test_a_payload_of_exactly_the_limit_is_taken(tmp_path: Path) -> None:
    longest = "é" * ((limits.PAYLOAD - 2) // 2)
    write_parquet(tmp_path / "a.parquet", table_of(1, text=[longest]))
    found = ingested(tmp_path / "a.ever", tmp_path / "a.parquet", "--payload", "text")
    assert found["sku-0"].payload == longest


def test_files_without_columns_of_bytes_say_so(shop: Path, tmp_path: Path, refused: Any) -> None:
    np.save(tmp_path / "a.npy", rows(3)[0])
    write_npz(tmp_path / "a.npz", table_of(3, 100, pic=[b"GIF89a"] * 3))
    write_csv(tmp_path / "a.csv", table_of(3, 100, pic=["a.gif"] * 3))
    for name in ("a.npy", "a.npz", "a.csv"):
        said = refused("ingest", shop, tmp_path / name, "--thumbnail", "pic", "--unlabelled")
        assert f"{name}: such a file has no column of bytes, so no thumbnails" in said
    said = refused("ingest", shop, tmp_path / "a.npy", "--payload", "text", "--unlabelled")
    assert "a.npy: a .npy is the features and no more, so no payloads (an .npz can" in said
    said = refused("ingest", shop, tmp_path / "a.npz", *COLUMNS, "--payload", "colour")
    assert "a.npz: no column 'colour' (there are 'v', 'kind', 'sku', 'pic')" in said


# Going on


def test_resume_keeps_rows_and_what_they_carry_together(tmp_path: Path) -> None:
    n = 23
    table = table_of(
        n, text=[f"row {i}" for i in range(n)], pic=[GIF + bytes([i]) for i in range(n)]
    )
    write_parquet(tmp_path / "all.parquet", table)
    some = [i for i in range(n) if i % 3]
    write_parquet(
        tmp_path / "some.parquet",
        {name: [column[i] for i in some] for name, column in table.items()},
    )
    options = ("--payload", "text", "--thumbnail", "pic", "--rows", 5)
    path = tmp_path / "a.ever"
    ingested(path, tmp_path / "some.parquet", *options)
    printed = output("ingest", path, tmp_path / "all.parquet", *COLUMNS, *options, "--resume")
    assert f"{len(some)} there already: {n} entries" in printed
    found = carried(path)
    assert {name: found[name] for name in table["sku"]} == {
        f"sku-{i}": Attachment(f"row {i}", GIF + bytes([i])) for i in range(n)
    }


def test_sigkill_in_mid_ingest_and_resume_carry_everything(tmp_path: Path) -> None:
    n = 400
    table = table_of(n, text=[None if i % 4 == 0 else f"row {i}" for i in range(n)])
    write_parquet(tmp_path / "long.parquet", table)
    path = tmp_path / "killed.ever"
    output("create", path, "--dim", DIM)
    arguments = (path, tmp_path / "long.parquet", *COLUMNS, "--payload", "text", "--rows", 2)
    with process("ingest", *arguments) as running:
        wait_for_entries(path, 20, running)
        running.kill()
    assert running.returncode == -signal.SIGKILL
    for name, each in carried(path).items():
        assert each.payload == table["text"][int(name.removeprefix("sku-"))]
    output("ingest", *arguments, "--resume")
    assert [each.payload for each in carried(path).values()] == table["text"]
    assert output("verify", path).startswith(f"ok: {n:,} entries")


# What a search shows


@pytest.fixture
def found_by(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Return a function that makes a collection with payloads, and a file of queries."""

    def make(payloads: list[Any]) -> tuple[Path, Path]:
        path, queries = tmp_path / "carrying.ever", tmp_path / "queries.npy"
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
        assert len(answer["matches"]) == 6
        for match in answer["matches"]:
            assert match.get("payload") == payloads[match["id"]]
            assert ("payload" in match) == (payloads[match["id"]] is not None)


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
            name = int(line.split()[4])
            assert line[start:] == shown[name].rstrip()


def test_a_payload_cannot_move_the_cursor(found_by: Any) -> None:
    path, queries = found_by(["\x1b[2J[bold]\n\tx", {"\x1b": "\x9b"}])
    printed = output("search", path, queries, "-k", 2)
    assert not set(printed) & {"\x1b", "\x9b", "\t"}
    assert r"\x1b[2J[bold] x" in printed
    assert r"\x1b: \x9b" in printed


def test_without_payloads_there_is_no_column_for_them(shop: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "q.npy", rows(2)[0])
    heading = output("search", shop, tmp_path / "q.npy").splitlines()[0]
    assert heading.split() == ["query", "rank", "distance", "label", "id"]
    for answer in answers("search", shop, tmp_path / "q.npy"):
        assert all("payload" not in match for match in answer["matches"])


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.integers(2, 80),
)
def test_any_payload_is_told_in_one_line_that_fits(payload: Any, room: int) -> None:
    line = told(payload, room)
    assert line.isprintable()
    assert cell_len(line) <= room
    if isinstance(payload, str) and payload.isascii() and payload.isalnum():
        assert line == payload if len(payload) <= room else line == payload[: room - 1] + "…"


def test_the_example_in_the_docs_makes_entries_that_show_their_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "page.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    for command in re.findall(r"^everhash ((?:create|ingest) footwear.*)$", page, re.MULTILINE):
        output(*command.split())
    assert "everhash serve footwear.ever" in page
    texts = [each.payload["text"] for each in carried(tmp_path / "footwear.ever").values()]
    assert texts == ["winter boots", "boots for hiking", "red running shoes", "white summer shoes"]
