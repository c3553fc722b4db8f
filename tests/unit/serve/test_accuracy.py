"""How accuracy went, as a page that is opened late is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from everhash.serve.accuracy import POINTS, AccuracyHistory


def test_what_is_not_measured_or_not_new_is_not_noted() -> None:
    history = AccuracyHistory()
    history.note(None)
    history.note({"scored_rows": 0, "accuracy": None})
    history.note({"scored_rows": 0, "accuracy": None})
    assert history.points == [(0, 0)]


def test_another_record_begins_anew() -> None:
    history = AccuracyHistory()
    for scored in (10, 20, 5):
        history.note({"scored_rows": scored, "accuracy": 1.0})
    assert history.points == [(5, 5)]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=4 * POINTS))
def test_first_and_last_stay_and_there_are_never_too_many(steps: list[int]) -> None:
    history, scored = AccuracyHistory(), 0
    for step in steps:
        scored += step
        history.note({"scored_rows": scored, "accuracy": 0.5})
    rows = [rows for rows, _ in history.points]
    assert (rows[0], rows[-1]) == (steps[0], scored)
    assert rows == sorted(set(rows))
    assert len(rows) <= POINTS
