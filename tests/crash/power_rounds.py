"""Pieces of work of `power_loss`, each for a process of its own: bodies for `apart`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.crash.losing import Case, Lost, Outcome, lose
from tests.crash.power_cases import SETTINGS, Calls, Export, Saved, Snapshot, Upgrade
from tests.crash.power_cluster import Cluster
from tests.crash.recording import Recorder
from tests.crash.script import Script, use_small_parts, write_script
from tests.crash.vfs import put_below

SCRIPT, LOG = 0, 200_000
"""Seed of a script whose first 26 calls are of all kinds; bytes at which its log goes back."""
AGAIN, FURTHER = 4, 2
"""Of what is left, so many folders of a setting are opened, and so many calls made, to be lost."""


def others(script: Script) -> Iterator[Case]:
    """Yield what promises the same in every setting, and what has none."""
    few = Script(script.calls[:6], script.states[:7])
    for setting in SETTINGS:
        yield Snapshot(setting, few)
    yield Export(few)
    yield Saved()
    for file in ("v1-full", "v2-full"):
        yield Upgrade(file)
    yield Cluster()


def lose_all(folder: str, part: str, states: int, seed: int, calls: int) -> dict[str, Any]:
    """Lose the power in one setting, or in what has none: a body for `apart`."""
    recorder, rng, outcome = Recorder(), random.Random(f"{seed} {part}"), Outcome()
    put_below(recorder)
    use_small_parts(log=LOG)
    script = write_script(calls, seed=SCRIPT)
    if part == "others":
        for number, case in enumerate(others(script)):
            outcome.add(lose(recorder, case, Path(folder, str(number)), states, rng).outcome)
        return outcome.as_json()
    lost = lose(recorder, Calls(part, script), Path(folder, "first"), states, rng)
    outcome.add(lost.outcome)
    for number, start in enumerate(chosen(lost, rng) if part != "none" else ()):
        end = start[0] + FURTHER
        few = Script(script.calls[:end], script.states[: end + 1])
        again = Calls(part, few, start=start)
        where = Path(folder, f"again {number}")
        outcome.add(lose(recorder, again, where, -(-states // AGAIN), rng).outcome)
    return outcome.as_json()


def chosen(lost: Lost, rng: random.Random) -> list[tuple[int, dict[str, bytes]]]:
    """Return some of what was left, of different states of the model as far as there are any."""
    one_of_each = dict(rng.sample(lost.left, len(lost.left)))
    return rng.sample(sorted(one_of_each.items()), min(AGAIN, len(one_of_each)))
