"""Which copies of shards do not fit the lead: their files were put back from another backup."""

from __future__ import annotations

from everhash.cluster.messages import Applied
from everhash.cluster.writes import Replica
from everhash.errors import CollectionFileError

RESTORE = (
    "put back the files of the lead and of all shards from one backup while the cluster is "
    "stopped, or import a snapshot into a new folder"
)
COPY = "stop the cluster and copy the file of another copy over it, if there is one; or "


def misfit(
    replica: Replica, told: Applied, seq: int, expected: str | None
) -> CollectionFileError | None:
    """Return why a copy of a shard does not fit the lead; None if it does.

    Args:
        replica: the copy.
        told: the last write that it has applied.
        seq: the last write of the lead.
        expected: the mark that the copy must have; None if the lead has no longer what follows.
    """
    if told.seq > seq:
        return ahead(str(replica), told.seq, seq)
    if expected is None:
        return CollectionFileError(
            f"{replica} has the writes up to {told.seq} of {seq}, and the lead no longer has the "
            "next one: the shard's file is missing, or older than the lead's",
            hint=COPY + RESTORE,
        )
    if told.mark != expected:
        return CollectionFileError(
            f"{replica} has other writes than the lead: its file is of another cluster, or of "
            "another backup",
            hint=RESTORE,
        )
    return None


def ahead(who: str, seq: int, lead: int) -> CollectionFileError:
    """Return that somebody knows of writes that the lead has never heard of."""
    return CollectionFileError(
        f"{who} has the writes up to {seq}, the lead only up to {lead}: the lead's file is older "
        "than the shards'",
        hint=RESTORE,
    )
