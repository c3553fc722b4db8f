"""One service for the tests that only read, one for each test that writes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everhash.collection.collection import Collection
from tests.unit.serve.serving import Served, filled, serving


@pytest.fixture(scope="package")
def stored() -> Iterator[Collection]:
    """The collection that `reading` serves; not to be changed."""
    with filled() as collection:
        yield collection


@pytest.fixture(scope="package")
def reading(stored: Collection) -> Iterator[Served]:
    """A service of entries 0 to 59; not to be changed."""
    with serving(stored) as served:
        yield served


@pytest.fixture
def collection() -> Iterator[Collection]:
    """A collection of the test's own."""
    with filled() as made:
        yield made


@pytest.fixture
def writing(collection: Collection) -> Iterator[Served]:
    """A service of `collection`."""
    with serving(collection) as served:
        yield served
