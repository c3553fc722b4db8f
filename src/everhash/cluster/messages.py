"""What the members of a cluster say to each other.

    client -> lead     Write            lead -> client     Written, Refused
    client -> lead     Pause, Resume    lead -> client     Paused
    client -> lead     Where            lead -> client     Here
    lead   -> shard    Apply, Ask       shard -> lead      Applied, Told, Behind, Unfit
    client -> shard    Ask              shard -> client    Told, Behind, Unfit
    lead   -> shard    Unfit

Any message may be lost, come late, come twice or overtake another. What is written in an order has
a number, `seq`: the lead numbers the writes it decides, and a shard applies each number once. It
has a mark, too, made of its request and of the mark before it: members that have the same mark have
the same writes of the same cluster. So a file that was put back from another backup is noticed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from everhash.cluster.placement import Table
from everhash.errors import EverhashError


def next_mark(mark: str, request: str) -> str:
    """Return the mark of a write, given the mark of the one before it."""
    return hashlib.blake2b(f"{mark} {request}".encode(), digest_size=16).hexdigest()


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
    before: str = ""
    """The mark of the write before, which the shard must have."""
    mark: str = ""
    asked: float = 0.0
    """Comes back with the answer; see `Applied`."""


@dataclass(frozen=True)
class Applied:
    """Writes up to `seq` are on the shard's storage."""

    seq: int
    mark: str = ""
    """Of the last of them."""
    asked: float = 0.0
    """When the message was sent that this answers: the shard had no more than that since."""


@dataclass(frozen=True)
class Unfit:
    """A copy of a shard cannot take part: its file is damaged, or does not fit the lead's."""

    error: EverhashError


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
