"""What a cluster promises, checked after a simulated run."""

from __future__ import annotations

import numpy as np

from everhash.cluster.messages import Refused
from everhash.cluster.placement import Table
from everhash.cluster.writes import Record, Replica
from everhash.errors import EverhashError
from tests.cluster.client import History, Read
from tests.cluster.model import Model, Snapshot, demand
from tests.cluster.toy import Entry, Sums, ToyEntries


def check_writes(history: History, records: list[Record]) -> None:
    """Acknowledged writes are there once, refused ones not at all, unknown ones at most once."""
    found: dict[str, Record] = {}
    for record in records:
        demand(record.request not in found, "a request is written once", record)
        found[record.request] = record
    for request, outcome in history.outcomes.items():
        record_of = found.get(request)
        if isinstance(outcome, Refused):
            refused = record_of is None or isinstance(record_of.answer, EverhashError)
            demand(refused, "a refused write is not there", f"{outcome} but {record_of}")
        else:
            told = (outcome.seq, outcome.answer)
            there = record_of is not None and (record_of.seq, record_of.answer) == told
            demand(there, "an acknowledged write is there", f"{outcome} but {record_of}")


def check_reads(history: History, model: Model) -> None:
    """Reads are of one moment, whole or with the missing shards named, and never go back."""
    for read in history.reads:
        demand(read.seq >= read.floor, "a client's reads never go back", read)
        demand(read.seq in model.snapshots, "what is read is written", read)
        snapshot = model.snapshots[read.seq]
        versions = {answer.mapping for answer in read.told.values()}
        demand(versions <= {snapshot.mapping}, "a read is of one mapping", read)
        _check_entries(read, snapshot)


def _check_entries(read: Read, snapshot: Snapshot) -> None:
    asked = snapshot.entries if read.ids is None else read.ids
    expected = {one: snapshot.entries[one] for one in asked if one in snapshot.entries}
    found = [entry for answer in read.told.values() for entry in answer.entries]
    if not read.missing:
        wanted = sorted(expected.values())
        demand(sorted(found) == wanted, "a read equals the model", f"{read}, not {wanted}")
        return
    known = [entry for entry in expected.values() if snapshot.where[entry.id] not in read.missing]
    demand(
        sorted(found) == sorted(known),
        "a read of a part has all but the missing shards",
        f"{read}, not {known}",
    )
    if read.ids is None:
        demand(
            sorted([*read.told, *read.missing]) == sorted(snapshot.shards),
            "a read of a part names the missing shards",
            f"{read} of shards {snapshot.shards}",
        )


def check_shards(
    replicas: dict[Replica, ToyEntries], table: Table, copies: int, model: Model
) -> None:
    """In the end every copy of every shard has exactly what it should have."""
    last = len(model.snapshots)
    found: list[Entry] = []
    sums = Sums()
    for shard in table.born:
        one, *others = (replicas[Replica(shard, copy)] for copy in range(copies))
        demand(one.seq == last, "every shard applies every write", f"{shard} is at {one.seq}")
        for other in others:
            demand(one == other, "copies of a shard are equal", f"{shard}: {one} and {other}")
        entries = list(one.entries.values())
        demand(entries == sorted(entries), "a shard has entries in order", f"{shard}: {entries}")
        homes = table.homes(np.array([entry.id for entry in entries], np.int64)).tolist()
        demand(set(homes) <= {shard}, "an entry is where the table says", f"{shard}: {entries}")
        found += entries
        sums = Sums(sums.total + one.sums.total, sums.rows + one.sums.rows)
    wanted = sorted(model.last.entries.values())
    demand(sorted(found) == wanted, "every entry is on one shard", f"{found}, not {wanted}")
    demand(
        sums == model.last.sums,
        "shards learn together what one machine learns alone",
        f"{sums}, not {model.last.sums}",
    )
