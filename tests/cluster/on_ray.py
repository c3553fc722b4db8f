"""Ray on this machine: several nodes, each a raylet of its own, reached over loopback only."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from everhash.cluster.connecting import LOOPBACK, NO_CLUSTER
from everhash.cluster.writes import Replica
from tests.conftest import missing

WATCHFUL = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
"""Settings by which Ray notices within some seconds that a node is lost; by its own, within 20."""
NODES = 3
os.environ.setdefault(NO_CLUSTER, "0")  # Ray reads it when it is imported, not before this


def need_ray() -> Any:
    """Return Ray, or end the test that needs it."""
    try:
        import ray
    except ImportError:
        missing("a cluster runs on Ray", "pip install 'everhash[cluster]'")
    return ray


class Nodes:
    """A Ray cluster of some nodes, which can be lost one by one; the first has the driver.

    Args:
        n: how many nodes.
        settings: of Ray; a busy machine may take `WATCHFUL` ones for a lost node.
    """

    def __init__(self, n: int = NODES, settings: dict[str, int] | None = None) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray = need_ray()
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        head: dict[str, Any] = {"node_ip_address": LOOPBACK, "include_dashboard": False}
        head["_system_config"] = settings or {}
        self._options: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 100 << 20}
        self._cluster.add_node(**head, **self._options)
        ray.init(
            self._cluster.address,
            namespace="everhash",
            log_to_driver=False,
            logging_level="error",
        )
        self.others = [self.add() for _ in range(n - 1)]

    def add(self) -> Any:
        """Add a node."""
        return self._cluster.add_node(node_ip_address=LOOPBACK, **self._options)

    def lose(self, which: int) -> None:
        """Lose a node at once, with all that runs on it."""
        node = self.others.pop(which % len(self.others))
        self._cluster.remove_node(node, allow_graceful=False)

    def complete(self, n: int = NODES) -> None:
        """Add nodes until there are so many."""
        while len(self.others) < n - 1:
            self.others.append(self.add())

    def close(self) -> None:
        """End all nodes."""
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@contextmanager
def ray_nodes(n: int = NODES, settings: dict[str, int] | None = None) -> Iterator[Nodes]:
    """Run a Ray cluster for as long as the block lasts."""
    nodes = Nodes(n, settings)
    try:
        yield nodes
    finally:
        nodes.close()


def pid_of(storage: Path, replica: Replica | None) -> int:
    """Return the process of a copy of a shard, or of the lead."""
    import ray

    from everhash.cluster.actors import NAMESPACE, lead_name, shard_name

    name = lead_name(storage) if replica is None else shard_name(storage, replica)
    return int(ray.get(ray.get_actor(name, NAMESPACE).pid.remote(), timeout=60))


def kill(pid: int) -> None:
    """End a process that Ray has started for us, without a word."""
    os.kill(pid, signal.SIGKILL)
