"""`everhash demo`: what it prints, draws and leaves behind."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import everhash
from everhash import cli
from everhash.cli.demo import BITS, DIM, remove_earlier
from everhash.errors import OptionError
from tests.unit.cli.commands import WIDE, cells, output


class Ran(NamedTuple):
    """A demo that has run: its files, and what it printed."""

    picture: Path
    file: Path
    printed: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run the demo once, in a folder of its own."""
    folder = tmp_path_factory.mktemp("demo")
    picture = folder / "a [bold] name that is long enough to be wrapped by a narrow terminal.png"
    file = folder / "demo.ever"
    return Ran(picture, file, output("demo", "--picture", picture, "--file", file))


def test_demo_learns_the_digits_and_draws_them(demo: Ran) -> None:
    drawn = demo.picture.read_bytes()
    assert drawn.startswith(b"\x89PNG\r\n\x1a\n")
    assert drawn.endswith(b"IEND\xaeB`\x82")
    assert len(drawn) > 10_000
    assert demo.printed.endswith(f"picture: {demo.picture}\n")

    checkpoints = cells(demo.printed)
    assert [row[1] for row in checkpoints] == [str(labels) for labels in range(1, 11)]
    rows, _, cycles, width, by_codeword, by_mapping, changed, rate = checkpoints[-1]
    assert (rows, cycles, width) == ("1500", "2", "64")
    assert float(by_codeword) > 0.8
    assert float(by_mapping) > 0.5
    assert re.fullmatch(r"\d+ of 64", changed)
    assert re.fullmatch(r"[\d,]+", rate)


def test_demo_leaves_a_collection_that_answers(demo: Ran) -> None:
    refreshed = r"refresh: rewrote [\d,]+ of [\d,]+ bits \(\d+\.\d %\) of \d+ entries"
    assert re.search(refreshed, demo.printed)
    searched = demo.printed.partition("best entries")[2]
    found = re.findall(r"^ +(\d) +((?:\(?\d\)? *){5}) +((?:\d\.\d\d *){5})$", searched, re.M)
    assert [query for query, _, _ in found] == ["0", "2", "4", "6", "8"]
    for _, _, scores in found:
        likely = [float(score) for score in scores.split()]
        assert likely == sorted(likely, reverse=True)

    with everhash.open(demo.file, readonly=True) as collection:
        stats = collection.stats()
    assert (stats["entries"], stats["labels"], stats["stale_bits"]) == (1500, 10, 0)
    assert stats["unlabelled"] > 300
    assert everhash.verify(demo.file).problems == ()


def test_demo_shows_right_answers_beside_plain_cosine(demo: Ran) -> None:
    lines = re.findall(r"--by (\w+)(?:: plain cosine)? +(\d+\.\d) % +(\d+\.\d) %", demo.printed)
    figures = {by: (float(first), float(ten)) for by, first, ten in lines}
    assert list(figures) == ["relevance", "meaning", "likeness"]
    for by in ("relevance", "meaning"):
        assert figures[by][0] > 95
        assert figures[by][1] > figures["likeness"][1]


def test_a_demo_is_repeated_in_its_own_file_and_goes_on_without_matplotlib(
    demo: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_rates(printed: str) -> list[list[str]]:
        return [row[:-1] for row in cells(printed)]

    picture = tmp_path / "none.png"
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    again = CliRunner().invoke(
        cli.app, ["demo", "--picture", str(picture), "--file", str(demo.file)], env=WIDE
    )
    assert again.exit_code == 0
    assert without_rates(again.stdout) == without_rates(demo.printed)
    assert again.stderr == ("no picture was drawn: a picture needs: pip install 'everhash[plot]'\n")
    assert "picture:" not in again.stdout
    assert not picture.exists()


def test_demo_replaces_no_file_but_its_own(demo: Ran, tmp_path: Path, refused: Any) -> None:
    text, shop = tmp_path / "notes.txt", tmp_path / "shop.ever"
    text.write_text("precious" * 1000)
    everhash.create(shop, dim=64, bits=16).close()
    with everhash.open(demo.file):
        for file, code, says in (
            (text, 5, "is no everhash collection (it was not changed; choose another --file)"),
            (shop, 2, "is a collection, but not from an earlier demo (choose another --file)"),
            (tmp_path, 7, "is a folder"),
            (demo.file, 8, "is being written"),
        ):
            assert refused(code, "demo", "--file", file, says=says).out == ""
    assert text.read_text() == "precious" * 1000
    assert shop.exists()
    assert demo.file.exists()


@pytest.mark.parametrize(
    ("payload", "replaced"), [({"digit": 3, "vector": [0] * DIM}, True), ({"digit": 3}, False)]
)
def test_a_file_with_labels_of_users_is_replaced_if_all_its_entries_are_scans(
    payload: dict[str, Any], replaced: bool, tmp_path: Path
) -> None:
    file = tmp_path / "demo.ever"
    with everhash.create(file, dim=DIM, bits=BITS) as collection:
        collection.ingest(np.zeros((1, DIM)), ["a label from the page"], payloads=[payload])
    with nullcontext() if replaced else pytest.raises(OptionError, match="not from an earlier"):
        remove_earlier(file)
    assert file.exists() != replaced


@pytest.mark.parametrize("pace", ["0", "-3", "nan", "inf"])
def test_a_pace_that_is_none_is_refused(tmp_path: Path, pace: str) -> None:
    file = tmp_path / "demo.ever"
    with pytest.raises(OptionError, match=f"--pace must be above 0, got {float(pace)}"):
        output("demo", "--serve", "--pace", pace, "--file", file)
    assert not file.exists()


@pytest.mark.parametrize("option", ["--pace", "--port"])
def test_options_of_serving_need_serve(tmp_path: Path, option: str) -> None:
    file = tmp_path / "demo.ever"
    with pytest.raises(OptionError, match="add --serve"):
        output("demo", option, "3", "--file", file)
    assert not file.exists()
