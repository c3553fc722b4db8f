"""The power is lost at every point of what everhash writes, in many ways; what is left is opened.

    python -m tests.crash.power_loss [--states 200] [--seed 0]

A history of writes, truncations, syncs, new names, renames and removals is recorded below SQLite
and below Python. At each point of it states of the disk are rebuilt that a loss of power may leave
(`disk` says which), opened by everhash, and compared with the model: what was acknowledged before
the loss is there, the state is one after a call, `verify` finds nothing, the next write works. Some
of what is left is opened and written on, and the power is lost again.

`--states` is how many different states of each thing that is done, in each setting, are opened.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator

from tests.crash.apart import apart
from tests.crash.losing import Outcome
from tests.crash.power_cases import SETTINGS
from tests.crash.power_rounds import lose_all

CALLS = 26
"""Of the script, which has all kinds of them."""
PARTS = (*SETTINGS, "others")
HOURS = 4 * 3600


def run(part: str, states: int, seed: int, calls: int = CALLS) -> Outcome:
    """Lose the power in a part of the work, in a fresh process."""
    folder = tempfile.mkdtemp()
    try:
        return Outcome.of(apart(lose_all, folder, part, states, seed, calls, seconds=HOURS))
    finally:
        shutil.rmtree(folder)


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield a table: what was done in which setting, and what came of it."""
    yield f"{'setting':10}{'lost in':32}{'losses':>8}{'states':>8}{'in full':>8}{'damaged':>8}"
    kinds = (outcome.losses, outcome.opened, outcome.in_full, outcome.damaged)
    for key in outcome.losses:
        yield f"{key[0]:10}{key[1]:32}" + "".join(f"{counts[key]:8,}" for counts in kinds)
    yield f"{'all':42}" + "".join(f"{sum(counts.values()):8,}" for counts in kinds)
    yield from (f"VIOLATION {violation}" for violation in outcome.violations)
    yield f"violations: {len(outcome.violations)}"


def main(arguments: list[str] | None = None) -> int:
    """Lose the power as often as the command line says; return how many violations there were."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=200, help="of each thing that is done")
    parser.add_argument("--seed", type=int, default=0, help="draws states")
    parser.add_argument("--calls", type=int, default=CALLS, help="of the script")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="these parts only")
    options = parser.parse_args(arguments)
    outcome, start = Outcome(), time.perf_counter()
    for part in options.only:
        outcome.add(run(part, options.states, options.seed, options.calls))
    for line in lines(outcome):
        print(line)  # noqa: T201
    print(f"{time.perf_counter() - start:.0f} s")  # noqa: T201
    return len(outcome.violations)


if __name__ == "__main__":
    raise SystemExit(min(1, main()))
