"""The plan of a simulated run, made from its seed before it begins: operations and faults.

Every item can be left out, so that a failing plan can be made smaller.
"""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from everhash.cluster.writes import Replica
from tests.cluster.toy import Add, Call, Change, Grow, Learn, Move, Publish, Remove

LEAD = "lead"
MOST_SHARDS = 5
FAULTS = ["crash", "crash of the lead", "cut", "noise", "stall", "leave"]


@dataclass(frozen=True)
class Search:
    """Read everything; or, if a reader may be told a part, what can be reached soon."""

    partial: bool = False


@dataclass(frozen=True)
class Get:
    """Read entries by their ids."""

    ids: tuple[int, ...]
    partial: bool = False


@dataclass(frozen=True)
class Operation:
    """What a client does after its operations before, and some seconds of rest."""

    client: int
    rest: float
    what: Call | Search | Get


@dataclass(frozen=True)
class Crash:
    """A process ends, and starts again some seconds later.

    Either at once, or in the middle of the next message that makes it write: after some of the
    steps that follow from it, which are to put the writes on the disk and to send the answers. A
    write that was begun and not synced is there in full or not at all, as if the process had ended
    before or after it.
    """

    time: float
    member: Hashable
    down: float
    writing: bool
    done: float
    """Share of the steps that are done."""


@dataclass(frozen=True)
class Cut:
    """No message passes between some members and all others."""

    time: float
    lasts: float
    members: tuple[Hashable, ...]


@dataclass(frozen=True)
class Noise:
    """Messages are lost, come twice and come late, each with a probability."""

    time: float
    lasts: float
    lost: float
    twice: float
    late: float


@dataclass(frozen=True)
class Stall:
    """A member gets no message for a while, and then all of them."""

    time: float
    lasts: float
    member: Hashable


@dataclass(frozen=True)
class Leave:
    """A client ends: it never knows what became of its operation. A new one goes on."""

    time: float
    client: int


Fault = Crash | Cut | Noise | Stall | Leave


@dataclass(frozen=True)
class Plan:
    seed: int
    shards: int
    copies: int
    clients: int
    items: tuple[Operation | Fault, ...]

    @property
    def faults(self) -> list[Fault]:
        return [item for item in self.items if not isinstance(item, Operation)]

    def operations(self, client: int) -> list[Operation]:
        return [
            item for item in self.items if isinstance(item, Operation) and item.client == client
        ]


def client_name(client: int) -> str:
    return f"client {client}"


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed; seeds differ in how much happens, and in what goes wrong."""
    rng = random.Random(seed)
    shards, copies, clients = rng.randint(1, 4), rng.randint(1, 2), rng.randint(2, 4)
    operations = list(_make_operations(rng, clients, shards))
    faults: list[Fault] = []
    members: list[Hashable] = [LEAD]
    used = min(shards + 1, MOST_SHARDS)
    members += [Replica(shard, copy) for shard in range(used) for copy in range(copies)]
    names: list[Hashable] = [*members, *map(client_name, range(clients))]
    weights = [rng.choice((0, 1, 4)) for _ in FAULTS]
    if any(weights):
        kinds = rng.choices(FAULTS, weights, k=rng.choice((1, 2, 4, 8, 16, 24)))
        for kind, time in zip(kinds, _make_times(rng, operations, len(kinds)), strict=True):
            faults.append(_make_fault(rng, kind, round(time, 3), members, names, clients))
    return Plan(seed, shards, copies, clients, (*operations, *faults))


def _make_times(rng: random.Random, operations: list[Operation], count: int) -> list[float]:
    """Return when faults strike: while clients are busy, here and there or several together."""
    busy = 0.5 + sum(one.rest + 0.1 for one in operations) / 2
    if rng.random() < 0.5:
        return [rng.uniform(0, min(busy, 6)) for _ in range(count)]
    moments = [rng.uniform(0, min(busy, 6)) for _ in range(rng.randint(1, 2))]
    return [rng.choice(moments) + rng.uniform(0, 0.5) for _ in range(count)]


def _make_operations(rng: random.Random, clients: int, shards: int) -> Iterator[Operation]:
    ids, hurry = range(rng.choice((3, 8, 16, 40))), rng.choice((0.02, 0.1, 0.4))
    there: set[int] = set()
    """Ids that have an entry if writes come in this order and none is refused."""
    for _ in range(clients * rng.randint(3, 16)):
        what = _make_operation(rng, ids, there, shards)
        yield Operation(rng.randrange(clients), round(rng.expovariate(1 / hurry), 3), what)
        match what:
            case Add():
                there.update(what.ids)
            case Remove():
                there.difference_update(what.ids)
            case Grow():
                shards = max(shards, what.shards)


def _make_operation(
    rng: random.Random, ids: range, there: set[int], shards: int
) -> Call | Search | Get:
    kinds = ["add", "remove", "change", "learn", "publish", "grow", "move", "search", "get"]
    kind = rng.choices(kinds, (8, 3, 4, 2, 1, 1, 2, 5, 4))[0]
    likely = [one for one in ids if (one in there) != (kind == "add")]
    among = likely if len(likely) >= 3 and rng.random() < 0.9 else ids
    chosen = tuple(rng.sample(among, rng.randint(1, 3)))
    values = tuple(rng.randint(1, 99) for _ in chosen)
    partial = rng.random() < 0.2
    operations: dict[str, Call | Search | Get] = {
        "add": Add(chosen, values),
        "remove": Remove(chosen[:1]),
        "change": Change(chosen, values),
        "learn": Learn(values),
        "publish": Publish(),
        "grow": Grow(min(MOST_SHARDS, shards + rng.randint(0, 2))),
        "move": Move(rng.randint(1, 4)),
        "search": Search(partial),
        "get": Get(chosen, partial),
    }
    return operations[kind]


def _make_fault(
    rng: random.Random,
    kind: str,
    time: float,
    members: list[Hashable],
    names: list[Hashable],
    clients: int,
) -> Fault:
    lasts = round(rng.choice((0.1, 0.5, 3)) * rng.random(), 3)
    if kind == "cut":
        return Cut(time, lasts, tuple(rng.sample(names, rng.randint(1, len(names) - 1))))
    if kind == "noise":
        return Noise(time, 3 * lasts, *(rng.choice((0, 0.1, 0.4)) for _ in range(3)))
    if kind == "stall":
        return Stall(time, lasts, rng.choice(names))
    if kind == "leave":
        return Leave(time, rng.randrange(clients))
    member = LEAD if kind == "crash of the lead" else rng.choice(members)
    return Crash(time, member, lasts, rng.random() < 0.7, round(rng.random(), 3))
