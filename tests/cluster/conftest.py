"""What tests of a cluster share: one Ray for all of them, since it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.on_ray import Nodes, ray_nodes


@pytest.fixture(scope="package")
def nodes() -> Iterator[Nodes]:
    """Three nodes of Ray on this machine."""
    with ray_nodes() as nodes:
        yield nodes
