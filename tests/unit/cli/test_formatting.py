"""Values on one line that fits."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from everhash.cli.formatting import payload_line


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    ),
    st.integers(2, 80),
)
def test_any_payload_becomes_one_line_that_fits(payload: Any, room: int) -> None:
    line = payload_line(payload, room)
    assert line.isprintable()
    assert cell_len(line) <= room
    if isinstance(payload, str) and payload.isascii() and payload.isalnum():
        assert line == payload if len(payload) <= room else line == payload[: room - 1] + "…"
