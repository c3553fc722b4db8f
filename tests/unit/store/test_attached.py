"""Blobs that are attached to entries."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from everhash.errors import StoreError
from everhash.store.attached import renumber_blobs
from everhash.store.sqlite_errors import typed_errors


class Full(sqlite3.Connection):
    """A connection that has no memory left for a function."""

    def create_function(self, *_: object, **__: object) -> None:
        raise sqlite3.OperationalError("Error creating function")  # as Python does, without a code


def test_no_memory_for_a_function_is_not_taken_for_damage() -> None:
    with (
        closing(sqlite3.connect(":memory:", factory=Full)) as connection,
        pytest.raises(StoreError, match="out of memory"),
        typed_errors("a.ever"),
    ):
        renumber_blobs(connection, np.arange(1), 2)
