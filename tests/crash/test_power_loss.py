"""What was acknowledged survives a machine that loses its power; planted faults are found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest

from everhash import disk as ours
from tests.crash.apart import apart
from tests.crash.disk import (
    Change,
    Contents,
    Disk,
    Enter,
    Leave,
    Operation,
    Rename,
    Sync,
    SyncFolder,
    Truncate,
    Write,
    choices,
)
from tests.crash.losing import Case, Outcome, lose
from tests.crash.power_cases import SETTINGS, Calls, Export, Saved, Snapshot
from tests.crash.power_loss import lines, run
from tests.crash.power_rounds import LOG
from tests.crash.recording import Ignores, Recorder, never
from tests.crash.script import Script, use_small_parts, write_script
from tests.crash.vfs import put_below

FEW, SOME = 2, 10
"""States that are opened of each thing that is done, in quick and in slow tests."""


@pytest.mark.parametrize("part", ["commit", "interval", "none"])
@pytest.mark.slow
def test_a_power_loss_costs_what_the_setting_says_and_no_more(part: str) -> None:
    outcome = run(part, SOME, seed=1)
    assert not outcome.violations, outcome.violations
    assert sum(outcome.opened.values()) > 5 * SOME
    done = {what for _, what in outcome.opened}
    assert done >= {"create", "add", "write the log back", "close"}
    if part != "none":
        assert done >= {"ingest", "label", "remove", "refresh", "compact", "open after a loss"}


@pytest.mark.slow
def test_copies_exports_upgrades_and_clusters_survive_a_power_loss() -> None:
    outcome = run("others", SOME, seed=1)
    assert not outcome.violations, outcome.violations
    assert {what for _, what in outcome.opened} >= {"snapshot", "export", "upgrade"}
    assert {setting for setting, what in outcome.opened if what == "snapshot"} == set(SETTINGS)


def test_a_few_losses_cost_nothing_and_every_planted_fault_is_found(tmp_path: Path) -> None:
    """In one process: most of its time goes into loading kernels."""
    sound, found = apart(lose_a_few, str(tmp_path))
    assert sound == []
    assert sorted(found) == sorted(PLANTED)
    assert all(found.values()), {name: len(violations) for name, violations in found.items()}


def lose_a_few(folder: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return violations without a fault, and with each that is planted."""
    recorder, rng, outcome = Recorder(), random.Random(3), Outcome()
    put_below(recorder)
    use_small_parts(log=LOG)
    script = write_script(5, seed=1)
    few = Script(script.calls[:2], script.states[:3])
    sound: list[Case] = [*(Calls(setting, script) for setting in SETTINGS)]
    sound += [Snapshot("commit", few), Export(few), Saved()]
    for number, case in enumerate(sound):
        outcome.add(lose(recorder, case, Path(folder, str(number)), FEW, rng).outcome)
    found = {}
    for name, (case, ignores, sync) in planted(script, few).items():
        with mock.patch.object(ours, "sync", sync), reordered(name):
            lost = lose(recorder, case, Path(folder, name), 12, rng, ignores, enough=1)
        found[name] = lost.outcome.violations
    return outcome.violations, found


PLANTED = (
    "the disk ignores syncs of the log",
    "the disk ignores syncs of the file",
    "the disk ignores syncs of the folder",
    "calls return before the sync",
    "no call syncs",
    "no sync before a link",
    "no sync before a rename",
    "no sync of the folder after a link",
    "a link before the sync",
    "a rename before the sync",
)


def planted(script: Script, few: Script) -> dict[str, tuple[Case, Ignores, object]]:
    """Return what is run with each fault, what the disk ignores, and how our code syncs."""

    def at_end(end: str) -> Ignores:
        return lambda operation, name: isinstance(operation, Sync) and name.endswith(end)

    def of_folders(operation: Operation, _: str) -> bool:
        return isinstance(operation, SyncFolder)

    sync = ours.sync
    only_folders = lambda path: sync(path) if path.is_dir() else None  # noqa: E731
    only_files = lambda path: None if path.is_dir() else sync(path)  # noqa: E731
    cases: list[tuple[Case, Ignores, object]] = [
        (Calls("commit", few), at_end("-wal"), sync),
        (Calls("commit", script), at_end(".ever"), sync),
        (Calls("commit", few), of_folders, sync),
        (Calls("commit", few, durability="interval:3600s"), never, sync),
        (Calls("commit", few, durability="none"), never, sync),
        (Export(few), never, only_folders),
        (Saved(), never, only_folders),
        (Export(few), never, only_files),
        (Export(few), never, sync),
        (Saved(), never, sync),
    ]
    return dict(zip(PLANTED, cases, strict=True))


@contextmanager
def reordered(name: str) -> Iterator[None]:
    """Have our code give a name before it syncs, if that is the fault."""

    def appear(partial: Path, path: Path) -> None:
        path.hardlink_to(partial)
        ours.sync(path.parent)
        ours.sync(partial)

    def take_place(partial: Path, path: Path) -> None:
        partial.replace(path)
        ours.sync(path.parent)
        ours.sync(path)

    if "before the sync" in name and "return" not in name:
        with (
            mock.patch("everhash.cli.export.appear", appear),
            mock.patch("everhash.learn.model_format.take_place", take_place),
        ):
            yield
    else:
        yield


def test_the_report_counts_what_was_tried_and_names_violations() -> None:
    outcome = Outcome(violations=["commit, add: state 1 was found"])
    outcome.losses["commit", "add"], outcome.opened["commit", "add"] = 7, 5
    said = "\n".join(lines(Outcome.of(outcome.as_json())))
    assert "VIOLATION commit, add: state 1 was found" in said
    assert "violations: 1" in said


# The model of the disk

OLD = Contents({1: b"old"}, {"a": 1})
NEW: list[Operation] = [Enter("b", 2), Write(2, 0, b"new"), Rename("b", "a", 2)]


def folders(disk: Disk) -> list[dict[str, bytes]]:
    found = [disk.synced.after(reached).folder for reached in choices(disk.pending, RNG)]
    return [folder for place, folder in enumerate(found) if folder not in found[:place]]


RNG = random.Random(0)


def after(*operations: Operation) -> Disk:
    disk = Disk(OLD)
    for operation in operations:
        disk.do(operation)
    return disk


def test_what_is_synced_stays_and_what_is_not_may_be_lost() -> None:
    assert folders(after(*NEW, Sync(2), SyncFolder())) == [{"a": b"new"}]
    unsynced = folders(after(*NEW))
    assert {"a": b"old"} in unsynced
    assert {"a": b""} in unsynced, "the name has come before the bytes"
    assert {"a": b"new"} in unsynced


def test_a_sync_of_a_file_does_not_keep_its_name_nor_that_of_a_folder_its_bytes() -> None:
    assert {"a": b"old"} in folders(after(*NEW, Sync(2)))
    assert {"a": b""} in folders(after(*NEW, SyncFolder()))
    assert {"a": b"old"} not in folders(after(*NEW, SyncFolder()))


def test_removals_and_truncations_may_be_lost() -> None:
    assert folders(after(Leave("a"))) == [{"a": b"old"}, {}]
    assert folders(after(Truncate(1, 1))) == [{"a": b"old"}, {"a": b"o"}]


def test_of_a_few_changes_all_subsets_are_tried_of_many_each_alone_and_all_but_each() -> None:
    few: list[Change] = [Truncate(1, length) for length in range(5)]
    assert len({tuple(reached) for reached in choices(few, RNG)}) == 2**5
    many: list[Change] = [Truncate(1, length) for length in range(40)]
    tried = {tuple(reached) for reached in choices(many, RNG)}
    assert {(), tuple(many)} <= tried
    assert {(change,) for change in many} <= tried
    assert {tuple(many[:place] + many[place + 1 :]) for place in range(40)} <= tried


def test_a_write_is_torn_between_sectors() -> None:
    start = Contents({1: b"-" * 2048}, {"a": 1})
    write = Write(1, 100, b"x" * 900)
    seen = {start.after(reached).folder["a"] for reached in choices([write], RNG)}
    assert b"-" * 100 + b"x" * 412 + b"-" * 1536 in seen
    assert b"-" * 512 + b"x" * 488 + b"-" * 1048 in seen
    assert len(seen) > 4
