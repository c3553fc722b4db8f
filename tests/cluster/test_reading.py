"""Readers take answers of one number and one table only."""

from __future__ import annotations

from everhash.cluster.messages import Told
from everhash.cluster.reading import OVERTAKEN, Reading


def told(seq: int, table: int = 1) -> Told:
    return Told(1, seq, table, f"at {seq}")


def test_answers_of_one_number_are_complete() -> None:
    reading = Reading([0, 1], 1, 5)
    reading.take(0, told(5))
    assert not reading.complete
    assert reading.missing == [1]
    reading.take(1, told(5))
    assert reading.complete


def test_a_later_answer_makes_earlier_ones_useless() -> None:
    reading = Reading([0, 1, 2], 1, 5)
    reading.take(0, told(5))
    reading.take(1, told(6))
    assert reading.seq == 6
    assert reading.ask() == [0, 2]


def test_answers_older_than_what_the_reader_knows_do_not_count() -> None:
    reading = Reading([0, 1], 1, 5)
    reading.take(0, told(4))
    assert reading.missing == [0, 1]


def test_an_answer_by_a_newer_table_ends_the_reading() -> None:
    reading = Reading([0, 1], 1, 5)
    reading.take(0, told(5))
    reading.take(1, told(6, table=2))
    assert reading.outdated
    assert reading.missing == [0, 1]


def test_a_shard_that_does_not_know_the_table_yet_does_not_count() -> None:
    reading = Reading([0], 2, 5)
    reading.take(0, told(5, table=1))
    assert not reading.outdated
    assert not reading.complete


def test_answers_of_shards_that_were_not_asked_do_not_count() -> None:
    reading = Reading([3], 1, 5)
    reading.take(0, told(5))
    assert not reading.complete
    assert reading.told == {}


def test_a_reader_asks_for_a_pause_if_writes_come_in_between_too_often() -> None:
    reading = Reading([0, 1], 1, 0)
    for seq in range(OVERTAKEN):
        reading.take(seq % 2, told(seq))
        assert not reading.wants_pause
    reading.take(OVERTAKEN % 2, told(OVERTAKEN))
    assert reading.wants_pause


def test_a_reader_asks_for_no_pause_because_a_shard_is_silent() -> None:
    reading = Reading([0, 1], 1, 0)
    reading.take(0, told(5))
    for _ in range(100):
        assert reading.ask() == [1]
    assert not reading.wants_pause


def test_a_question_to_no_shard_is_answered() -> None:
    assert Reading([], 1, 0).complete
