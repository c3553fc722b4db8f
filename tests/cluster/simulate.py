"""Simulate a cluster: run a plan on one thread and in virtual time, and check what is promised.

python -m tests.cluster.simulate --seeds 1000
python -m tests.cluster.simulate --seed 123 --trace
python -m tests.cluster.simulate --seed 123 --shrink
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

from everhash.cluster.placement import Table
from everhash.cluster.writes import Replica
from tests.cluster.checkers import check_reads, check_shards, check_writes
from tests.cluster.client import Client, History
from tests.cluster.model import Model, ViolationError, demand
from tests.cluster.plan import (
    MOST_SHARDS,
    Crash,
    Cut,
    Fault,
    Leave,
    Noise,
    Plan,
    Stall,
    client_name,
    make_plan,
)
from tests.cluster.planted import PLANTED, Rules
from tests.cluster.shrink import shrink
from tests.cluster.toy import Move, Publish
from tests.cluster.world import LeadProcess, ReplicaProcess, World

FAULTS_END = 8.0
"""From here on everything works."""
LONGEST = 60.0
"""Seconds by which everything must be done."""


class Simulation:
    """One run of a plan."""

    def __init__(self, plan: Plan, rules: Rules, *, traced: bool = False) -> None:
        self.plan = plan
        self.world = world = World(plan.seed, traced=traced)
        self.history = History()
        decider = rules.decider(Table.of(plan.shards))
        self.lead = LeadProcess(world, rules, decider, plan.copies)
        names = [Replica(one, copy) for one in range(MOST_SHARDS) for copy in range(plan.copies)]
        self.replicas = {name: ReplicaProcess(world, name, rules) for name in names}
        self.processes: list[Any] = [self.lead, *self.replicas.values()]
        self.clients = [
            Client(world, client_name(n), plan.operations(n), rules, self.history, plan.copies)
            for n in range(plan.clients + 1)
        ]
        self.last_client = self.clients[-1]
        """Has nothing to do before all is healed."""
        for process in self.processes:
            world.members[process.name] = process
            process.start()
        world.members.update((client.name, client) for client in self.clients)
        for fault in plan.faults:
            world.after(fault.time, partial(self._strike, fault))

    def run(self) -> None:
        """Play the plan, heal everything, and wait until all is done; raise if a promise breaks."""
        self.world.run(FAULTS_END, lambda: False)
        self._heal()
        self._wait_for_clients()
        while self.lead.lead.decider.table.target is not None:
            self.last_client.add(Move(100))
            self._wait_for_clients()
        self.last_client.add(Publish())
        self._wait_for_clients()
        self.world.run(LONGEST, lambda: not self.lead.lead.lagging)
        self._check()

    def _strike(self, fault: Fault) -> None:
        """Let a fault begin."""
        world = self.world
        world.say(f"{fault}")
        match fault:
            case Crash(member=Replica() as name):
                self.replicas[name].crash(fault)
            case Crash():
                self.lead.crash(fault)
            case Cut(lasts=lasts):
                world.cuts.append(fault)
                world.after(lasts, partial(_end, world.cuts, fault))
            case Noise(lasts=lasts):
                world.noises.append(fault)
                world.after(lasts, partial(_end, world.noises, fault))
            case Stall(lasts=lasts):
                world.stalls.append(fault)
                world.after(lasts, partial(_end, world.stalls, fault))
            case Leave(client=client):
                self.clients[client].leave()

    def _heal(self) -> None:
        self.world.say("all is healed")
        self.world.cuts.clear()
        self.world.noises.clear()
        self.world.stalls.clear()
        for process in self.processes:
            process.heal()

    def _wait_for_clients(self) -> None:
        self.world.run(LONGEST, self._are_clients_done)
        waiting = [client.request for client in self.clients if not client.done]
        demand(not waiting, "every request is answered", waiting)

    def _are_clients_done(self) -> bool:
        return all(client.done for client in self.clients)

    def _check(self) -> None:
        records, lead = self.lead.history, self.lead.lead
        check_writes(self.history, records)
        model = Model(records, self.history.calls)
        check_reads(self.history, model)
        entries = {name: replica.entries for name, replica in self.replicas.items()}
        check_shards(entries, lead.decider.table, self.plan.copies, model)


def _end(faults: list[Any], fault: Any) -> None:
    if fault in faults:
        faults.remove(fault)


def violation(plan: Plan, rules: Rules) -> ViolationError | None:
    """Return the promise that a run of a plan breaks, if it does."""
    try:
        Simulation(plan, rules).run()
    except ViolationError as broken:
        return broken
    return None


def first_failure(seeds: range, rules: Rules) -> tuple[int, ViolationError] | None:
    """Return the first seed that breaks a promise, and which."""
    for seed in seeds:
        broken = violation(make_plan(seed), rules)
        if broken is not None:
            return seed, broken
    return None


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.simulate")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="run this one only")
    parser.add_argument("--trace", action="store_true", help="print what happens")
    parser.add_argument("--shrink", action="store_true", help="print a smaller plan that fails")
    parser.add_argument("--planted", choices=PLANTED, help="plant this bug")
    given = parser.parse_args()
    rules = PLANTED[given.planted] if given.planted else Rules()
    if given.seed is None:
        run_seeds(range(given.first, given.first + given.seeds), rules)
    else:
        run_seed(make_plan(given.seed), rules, traced=given.trace, shrinks=given.shrink)


def run_seeds(seeds: range, rules: Rules) -> None:
    """Run many seeds, and say how to run those again that fail."""
    began, failed = time.monotonic(), 0
    for seed in seeds:
        broken = violation(make_plan(seed), rules)
        if broken is not None:
            failed += 1
            print(broken)  # noqa: T201
            print(f"    python -m tests.cluster.simulate --seed {seed} --trace")  # noqa: T201
    seconds = time.monotonic() - began
    print(f"{len(seeds)} seeds, {failed} failed, {seconds:.1f} s")  # noqa: T201


def run_seed(plan: Plan, rules: Rules, *, traced: bool, shrinks: bool) -> None:
    """Run one plan, or the smallest part of it that breaks the same promise."""
    broken = violation(plan, rules)
    if shrinks and broken is not None:
        promise = broken.promise
        plan = shrink(plan, lambda one: _breaks(one, rules, promise))
        print(*plan.items, sep="\n")  # noqa: T201
    simulation = Simulation(plan, rules, traced=traced)
    try:
        simulation.run()
    except ViolationError as again:
        print(*simulation.world.trace, again, sep="\n")  # noqa: T201
    else:
        print(*simulation.world.trace, "no promise is broken", sep="\n")  # noqa: T201


def _breaks(plan: Plan, rules: Rules, promise: str) -> bool:
    broken = violation(plan, rules)
    return broken is not None and broken.promise == promise


if __name__ == "__main__":
    main()
