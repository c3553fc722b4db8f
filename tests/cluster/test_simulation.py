"""Simulated clusters keep what a cluster promises, and the simulator would see if they did not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cluster.model import ViolationError
from tests.cluster.plan import Plan, make_plan
from tests.cluster.planted import PLANTED, Rules
from tests.cluster.shrink import shrink
from tests.cluster.simulate import Simulation, first_failure, violation

FIXED_SEEDS = {
    9: "a refused write that came again was decided anew",
    11229: "the answer to a question of a lead before was taken",
}
"""Seeds that broke a promise until the rules were mended."""


def check(seeds: range) -> None:
    failure = first_failure(seeds, Rules())
    if failure is not None:
        seed, broken = failure
        pytest.fail(f"{broken}\n    python -m tests.cluster.simulate --seed {seed} --trace")


def test_promises_hold_whatever_fails(drawn_seed: int) -> None:
    check(range(drawn_seed, drawn_seed + 60))


@pytest.mark.slow
def test_promises_hold_whatever_fails_many_times() -> None:
    check(range(60, 1060))


@pytest.mark.parametrize("seed", FIXED_SEEDS, ids=FIXED_SEEDS.__getitem__)
def test_seeds_that_once_failed_hold(seed: int) -> None:
    check(range(seed, seed + 1))


@pytest.mark.slow
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found_within_a_thousand_seeds(
    bug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = first_failure(range(1000), PLANTED[bug])
    assert failure is not None, bug
    with capsys.disabled():
        print(f"\n{bug}: found by seed {failure[0]}, {failure[1].promise}")  # noqa: T201


def trace(plan: Plan) -> list[str]:
    simulation = Simulation(plan, Rules(), traced=True)
    simulation.run()
    return simulation.world.trace


def test_a_seed_gives_the_same_run_every_time() -> None:
    assert make_plan(7) == make_plan(7)
    assert trace(make_plan(7)) == trace(make_plan(7))
    assert trace(make_plan(7)) != trace(make_plan(8))


def test_shrinking_keeps_only_what_fails() -> None:
    plan = make_plan(3)
    first, last = plan.items[1], plan.items[-1]
    small = shrink(plan, lambda one: first in one.items and last in one.items)
    assert small == replace(plan, items=(first, last))


def test_a_shrunk_plan_breaks_the_same_promise() -> None:
    rules = PLANTED["new entries go to the new shard while slots move"]
    failure = first_failure(range(1000), rules)
    assert failure is not None
    seed, broken = failure

    def breaks(plan: Plan) -> bool:
        found = violation(plan, rules)
        return found is not None and found.promise == broken.promise

    small = shrink(make_plan(seed), breaks)
    assert breaks(small)
    assert len(small.items) < 10


def test_a_request_that_nobody_answers_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.cluster.world.LeadProcess.receive", lambda *_: None)
    with pytest.raises(ViolationError, match="every request is answered"):
        Simulation(make_plan(1), Rules()).run()
