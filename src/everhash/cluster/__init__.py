"""everhash on several machines: shards that learn in parallel and answer as one collection.

`create` and `open` return a `ClusterCollection`, which has the calls of a `Collection`. It runs on
Ray (the extra `cluster`). Read `lead` first: how writes are decided; then `shard` and `reading`.
"""

from __future__ import annotations

from everhash.cluster.collection import ClusterCollection
from everhash.cluster.opening import create, open, stop  # noqa: A004 - as `everhash.open`

__all__ = ["ClusterCollection", "create", "open", "stop"]
