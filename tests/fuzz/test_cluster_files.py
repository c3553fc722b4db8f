"""A cluster's files made to do harm: typed errors, soon, at no great expense; or it works."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everhash.errors import CollectionFileError, EverhashError
from tests.fuzz.forging import Forgery, drop
from tests.fuzz.hostile_cluster import CASES, LEAD, SHARD, lose_effects
from tests.fuzz.judging_cluster import CALLS, write_cluster
from tests.fuzz.test_collection_forgeries import some_edit

ROOT = Path(__file__).resolve().parents[2]
Ask = Callable[[Path], dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a good cluster."""
    folder = tmp_path_factory.mktemp("victim") / "good"
    folder.mkdir()
    write_cluster(folder)
    return folder


@pytest.fixture(scope="module")
def ask(victim: Path) -> Iterator[Ask]:
    """Have a process of its own start clusters, under a limit of memory."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.judging_cluster", str(victim)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "MALLOC_ARENA_MAX": "1"},
    )

    def question(folder: Path) -> dict[str, dict[str, Any]]:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(f"{folder}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        assert answer, f"crashed or hung: {process.stderr.read()}"
        report: dict[str, dict[str, Any]] = json.loads(answer)
        return report

    yield question
    process.communicate()


def forged(victim: Path, folder: Path, name: str, edit: Callable[[Forgery], object]) -> Path:
    """Return a copy of the good files with one of them forged."""
    shutil.copytree(victim, folder)
    forgery = Forgery(victim / name)
    edit(forgery)
    forgery.write(folder / name)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_a_forged_file_of_a_cluster_is_refused(
    name: str, victim: Path, ask: Ask, tmp_path: Path
) -> None:
    file, edit, says = CASES[name]
    report = ask(forged(victim, tmp_path / "forged", file, edit))
    assert report["work"].get("error") == "CollectionFileError", report
    assert re.search(says, report["work"]["says"][0]), report
    assert report["read"].get("error") in (None, "CollectionFileError"), report
    for found in report.values():
        assert found["seconds"] < 1, report


def test_effects_that_are_none_are_refused_by_the_shard(victim: Path, tmp_path: Path) -> None:
    folder = forged(victim, tmp_path / "forged", LEAD, lose_effects)
    (folder / SHARD).unlink()
    with pytest.raises(CollectionFileError):
        CALLS["work"](folder)


@pytest.mark.parametrize("name", [LEAD, SHARD])
def test_a_truncated_file_of_a_cluster_is_refused(name: str, victim: Path, tmp_path: Path) -> None:
    whole, refused = (victim / name).read_bytes(), 0
    for part in range(16):
        folder = tmp_path / str(part)
        shutil.copytree(victim, folder)
        (folder / name).write_bytes(whole[: len(whole) * part // 16])
        try:
            CALLS["work"](folder)  # the last pages are free: nothing is lost with them
        except EverhashError:
            refused += 1
    assert refused > 10


def test_a_lead_without_records_works_where_no_shard_needs_them(
    victim: Path, tmp_path: Path
) -> None:
    CALLS["work"](forged(victim, tmp_path / "forged", LEAD, drop("record")))


def check_any(data: st.DataObject, victim: Path, tmp_path: Path) -> None:
    """Change anything in a file; the cluster refuses it with a typed error, or works."""
    shutil.rmtree(tmp_path / "forged", ignore_errors=True)

    def edit(forgery: Forgery) -> None:
        for _ in range(data.draw(st.integers(1, 2))):
            some_edit(data, forgery)

    name = data.draw(st.sampled_from([LEAD, SHARD]))
    folder = forged(victim, tmp_path / "forged", name, edit)
    with contextlib.suppress(EverhashError):
        CALLS["work"](folder)


@given(data=st.data())
@settings(max_examples=25)
def test_any_forged_file_of_a_cluster_is_refused_or_works(
    data: st.DataObject, victim: Path, tmp_path: Path
) -> None:
    check_any(data, victim, tmp_path)


@pytest.mark.slow
@given(data=st.data())
@settings(max_examples=300)
def test_many_forged_files_of_a_cluster_are_refused_or_work(
    data: st.DataObject, victim: Path, tmp_path: Path
) -> None:
    check_any(data, victim, tmp_path)
