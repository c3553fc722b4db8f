"""A collection's file, damaged: it is noticed, or nothing that can be read has changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everhash
from everhash import Collection, OnlineHasher
from everhash.errors import StoreError
from everhash.store.schema import PAGE_BYTES
from tests.fuzz.flipping import judge, read_all
from tests.fuzz.samples import KINDS, begin, kinds, write_large, write_small

ROOT = Path(__file__).resolve().parents[2]
MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
WORKERS = max(2, min(8, os.cpu_count() or 2))
Verdicts = Counter[str]


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder in memory, where there is one."""
    name = tempfile.mkdtemp(prefix="everhash-", dir=MEMORY if MEMORY.is_dir() else None)
    yield Path(name)
    shutil.rmtree(name)


@pytest.fixture(scope="module")
def small(folder: Path) -> Path:
    """A file of a few kilobytes that holds everything."""
    write_small(folder / "small")
    return folder / "small"


@pytest.fixture(scope="module")
def large(folder: Path) -> Path:
    """A file of thousands of entries, its model and mapping in several pieces."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("everhash.collection.pieces.PIECE_BYTES", 1000)
        write_large(folder / "large")
    return folder / "large"


def damaged(original: Path, content: bytes, name: str = "damaged") -> Path:
    """Write a damaged copy, with nothing beside it."""
    path = original.with_name(name)
    for left in path.parent.glob(f"{name}*"):
        left.unlink()
    path.write_bytes(content)
    return path


def flip(original: Path, numbers: Iterable[int], word: int) -> Verdicts:
    """Flip bits of copies of a file in processes of their own; see `flipping`."""
    listed = list(numbers)

    def work(number: int) -> dict[str, Any]:
        path = damaged(original, original.read_bytes(), f"flipped{number}-")
        run = subprocess.run(
            [sys.executable, "-m", "tests.fuzz.flipping", str(path), str(word)],
            input=" ".join(map(str, listed[number::WORKERS])),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        report: dict[str, Any] = json.loads(run.stdout)
        return report

    with ThreadPoolExecutor(WORKERS) as pool:
        reports = list(pool.map(work, range(WORKERS)))
    assert [failure for report in reports for failure in report["failures"]] == []
    assert max(report["slowest"] for report in reports) < 5
    counts = sum((Counter(report["counts"]) for report in reports), Counter())
    assert counts.total() == len(listed)
    return counts


def test_the_files_to_damage_hold_everything_and_leave_no_log(small: Path, large: Path) -> None:
    for path in (small, large):
        assert not list(path.parent.glob(f"{path.name}-*"))
        copy = damaged(path, path.read_bytes())
        assert everhash.verify(copy).problems == ()
        assert kinds(copy) == KINDS


def test_every_single_bit_flip_of_a_small_file_is_noticed_or_harmless(
    small: Path, thorough: bool, drawn_seed: int
) -> None:
    step = 1 if thorough else 197
    counts = flip(small, range(drawn_seed % step, 8 * small.stat().st_size, step), word=8)
    assert counts["open"] > counts["harmless"] > counts["verify"] > 0


def test_bit_flips_of_a_large_file_are_noticed_or_harmless(
    large: Path, thorough: bool, drawn_seed: int
) -> None:
    flips = 10_000 if thorough else 100
    bits = np.random.default_rng(drawn_seed).choice(8 * large.stat().st_size, flips, replace=False)
    counts = flip(large, sorted(bits.tolist()), word=32)
    assert min(counts["open"], counts["verify"], counts["harmless"]) > flips / 50


def verdicts(original: Path, contents: Iterable[bytes]) -> list[str]:
    """Judge damaged copies of a file."""
    before = read_all(damaged(original, original.read_bytes()))
    found = [judge(damaged(original, content), before) for content in contents]
    assert set(found) <= {"open", "verify", "harmless"}, Counter(found)
    return found


def test_every_truncation_is_noticed_unless_it_takes_nothing_but_zeros(
    small: Path, large: Path
) -> None:
    for path, step in ((small, 16), (large, 3001)):
        content = path.read_bytes()
        lengths = [*range(0, len(content), step), *range(511, len(content), 512 * step)]
        lengths.append(len(content) - 1)
        found = verdicts(path, (content[:length] for length in lengths))
        for length, verdict in zip(lengths, found, strict=True):
            assert verdict != "harmless" or not any(content[length:])


def test_rubbish_behind_the_end_is_harmless(small: Path, large: Path) -> None:
    for path in (small, large):
        content = path.read_bytes()
        rubbish = [b"\0", b"x" * 511, bytes(512), bytes(100_000), content, b"SQLite format 3\0"]
        assert set(verdicts(path, (content + more for more in rubbish))) == {"harmless"}


def pages(path: Path) -> tuple[bytes, int]:
    content = path.read_bytes()
    size = int.from_bytes(content[16:18], "big")
    return content, size if size > 1 else 65_536


def test_pages_that_are_lost_or_misplaced_are_noticed_or_harmless(
    small: Path, large: Path, drawn_seed: int
) -> None:
    for path in (small, large):
        content, size = pages(path)
        found = verdicts(path, misplaced(content, size, drawn_seed))
        assert found.count("open") > found.count("harmless")


def misplaced(content: bytes, size: int, seed: int) -> Iterator[bytes]:
    """Return a file with each page zeroed, filled, or in the place of another."""
    rng = np.random.default_rng(seed)
    for start in range(0, len(content), size):
        other = size * int(rng.integers(len(content) // size))
        for page in (bytes(size), b"\xff" * size, content[other : other + size]):
            yield content[:start] + page + content[start + size :]
        half = start + size // 2
        yield content[:half] + bytes(size // 2) + content[start + size :]


# What lies beside the file


def log_of(path: Path, page_size: int = PAGE_BYTES) -> bytes:
    """Make a collection, and return its log as it was before it was closed."""
    with begin(path, OnlineHasher(2, 1, random_state=1), 2, page_size) as other:
        other.ingest([[1.0, 2.0], [2.0, 1.0]], y=["c", None])
        return log_beside(path).read_bytes()


def log_beside(path: Path, suffix: str = "-wal") -> Path:
    return path.with_name(path.name + suffix)


def beside(suffix: str, folder: Path) -> Iterator[bytes]:
    """Return what might lie beside a file by mistake."""
    random = np.random.default_rng(0).bytes(5000)
    magic = bytes.fromhex("d9d505f920a163d7" if suffix == "-journal" else "377f0682002de218")
    yield from (b"", b"x", bytes(32), bytes(100_000), random, magic + random)
    for number, page_size in enumerate((512, 1024, PAGE_BYTES)):
        log = log_of(folder / f"other{suffix}{number}", page_size)
        yield from (log, log[:-5], log[:32] + log[56:], log[:100] + b"\0" + log[101:])


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", "-lock"])
def test_a_log_that_is_rubbish_or_another_file_s_is_noticed_or_harmless(
    suffix: str, small: Path, folder: Path
) -> None:
    content = small.read_bytes()
    original = read_all(damaged(small, content))
    found = Verdicts()
    for rubbish in beside(suffix, folder):
        path = damaged(small, content)
        log_beside(path, suffix).write_bytes(rubbish)
        found[judge(path, original)] += 1
    assert set(found) <= {"open", "verify", "harmless"}, found
    assert found["harmless"] > 0


def test_a_log_that_holds_all_of_another_collection_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "mine"
    with everhash.create(path, dim=2, bits=2) as mine:
        mine.ingest([[3.0, 1.0]], y=["a"])
    before = read_all(path)
    log_beside(path).write_bytes(log_of(tmp_path / "other"))
    assert judge(path, before) in ("open", "verify")


MAKERS: dict[str, Callable[[Collection, Path, Path], object]] = {
    "create": lambda _, source, path: everhash.create(path, dim=2, bits=2),
    "restore": lambda _, source, path: everhash.restore(source, path),
    "snapshot": lambda collection, _, path: collection.snapshot(path),
}


@pytest.mark.parametrize("how", MAKERS)
def test_a_new_file_beside_the_log_of_an_old_one_is_refused(how: str, tmp_path: Path) -> None:
    path, source = tmp_path / "new", tmp_path / "source"
    log_beside(path).write_bytes(log_of(tmp_path / "old"))
    with everhash.create(source, dim=2, bits=2) as mine, pytest.raises(StoreError, match="-wal"):
        MAKERS[how](mine, source, path)
    assert not path.exists()
