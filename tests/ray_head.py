"""A Ray of one node for commands and pages, as tests of the cluster have one of three."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.cluster.on_ray import ray_nodes


@contextmanager
def ray_head() -> Iterator[dict[str, str]]:
    """Run Ray while the block lasts; yield what other processes need in their environment."""
    with ray_nodes(1):
        import ray

        address = ray.get_runtime_context().gcs_address
        yield {"RAY_ADDRESS": address, "RAY_AUTH_MODE": "disabled"}
