"""What the members of a cluster say to each other.

    client -> lead     Write            lead -> client     Written, Refused
    client -> lead     Pause, Resume    lead -> client     Paused
    client -> lead     Where            lead -> client     Here
    lead   -> shard    Apply, Ask       shard -> lead      Applied, Told, Behind
    client -> shard    Ask              shard -> client    Told, Behind

Any message may be lost, come late, come twice or overtake another. What is written in an order has
a number, `seq`: the lead numbers the writes it decides, and a shard applies each number once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from everhash.cluster.placement import Table


@dataclass(frozen=True)
class Write:
    """A call that changes something."""

    request: str
    """Names the call: sent again, it is answered again and not applied twice."""
    call: Any


@dataclass(frozen=True)
class Written:
    """A write is on the lead's storage: it is done, whatever fails from here on."""

    request: str
    seq: int
    answer: Any


@dataclass(frozen=True)
class Refused:
    """A write was refused, and has changed nothing; it stays refused if it is sent again."""

    request: str
    error: Exception


@dataclass(frozen=True)
class Pause:
    """Let no write begin for a moment: a reader never found all shards at one number."""

    request: str


@dataclass(frozen=True)
class Paused:
    """No write begins now, and every shard has applied those up to `seq`."""

    request: str
    seq: int


@dataclass(frozen=True)
class Resume:
    """Let writes begin again."""

    request: str


@dataclass(frozen=True)
class Where:
    """Which shards are there, and which of them has an entry?"""

    request: str


@dataclass(frozen=True)
class Here:
    """Where entries are since write `seq` or before."""

    request: str
    seq: int
    table: Table


@dataclass(frozen=True)
class Apply:
    """Write number `seq`, as far as it concerns a shard."""

    seq: int
    effects: Any


@dataclass(frozen=True)
class Applied:
    """Writes up to `seq` are on the shard's storage."""

    seq: int


@dataclass(frozen=True)
class Ask:
    """A question to a shard that has applied writes up to `seq` at least."""

    number: int | str
    """Comes back with the answer; the lead asks by the request of a write."""
    seq: int
    question: Any


@dataclass(frozen=True)
class Told:
    """An answer, given by what a shard has after the writes up to `seq`."""

    number: int | str
    seq: int
    table: int
    """Version of the table that the shard knows; who asked by another one asks again."""
    answer: Any


@dataclass(frozen=True)
class Behind:
    """A shard has not yet applied what a question needs, only writes up to `seq`."""

    number: int | str
    seq: int
