"""Shards apply each write once and in order, and answer by what they have applied."""

from __future__ import annotations

from everhash.cluster.messages import Applied, Apply, Ask, Behind, Told, Unfit
from everhash.cluster.shard import NOTHING, Shard
from everhash.errors import CollectionFileError
from tests.cluster.toy import Effects, Question, ToyEntries

BEGIN = Effects(begin=True, table=1)


def shard_at(seq: int) -> Shard:
    return Shard(ToyEntries(seq=seq, table=1))


def test_the_next_write_is_applied_and_then_acknowledged() -> None:
    write = Apply(8, Effects(remove=(1,)))
    assert shard_at(7).handle(write, 0.0) == ([Applied(8)], [write])


def test_a_write_that_comes_again_is_acknowledged_and_not_applied() -> None:
    assert shard_at(7).handle(Apply(7, None), 0.0) == ([Applied(7)], [])
    assert shard_at(7).handle(Apply(3, None), 0.0) == ([Applied(7)], [])


def test_a_write_that_comes_too_early_waits() -> None:
    assert shard_at(7).handle(Apply(9, None), 0.0) == ([Applied(7)], [])


def test_a_new_shard_begins_with_the_write_that_adds_it() -> None:
    begin = Apply(9, BEGIN)
    assert shard_at(0).handle(begin, 0.0) == ([Applied(9)], [begin])
    assert shard_at(0).handle(Apply(9, None), 0.0) == ([Applied(0)], [])


def test_a_shard_that_has_begun_does_not_begin_again() -> None:
    assert shard_at(9).handle(Apply(9, BEGIN), 0.0) == ([Applied(9)], [])
    assert shard_at(9).handle(Apply(12, BEGIN), 0.0) == ([Applied(9)], [])


def test_a_probe_changes_nothing_and_is_told_the_number() -> None:
    assert shard_at(0).handle(NOTHING, 0.0) == ([Applied(0)], [])
    assert shard_at(4).handle(NOTHING, 0.0) == ([Applied(4)], [])


def test_questions_are_answered_with_the_number_and_the_table() -> None:
    shard = shard_at(7)
    answer = shard.entries.answer(Question())
    assert shard.handle(Ask("q", 5, Question()), 0.0) == ([Told("q", 7, 1, answer)], [])


def test_questions_about_writes_to_come_are_not_answered() -> None:
    assert shard_at(7).handle(Ask("q", 8, Question()), 0.0) == ([Behind("q", 7)], [])


def test_a_shard_that_has_not_begun_answers_nothing() -> None:
    assert shard_at(0).handle(Ask("q", 0, Question()), 0.0) == ([Behind("q", 0)], [])


def test_a_write_that_follows_another_one_is_not_applied() -> None:
    shard = Shard(ToyEntries(seq=7, table=1, mark="mine"))
    write = Apply(8, None, before="other", mark="next")
    assert shard.handle(write, 0.0) == ([Applied(7, "mine")], [])
    write = Apply(8, None, before="mine", mark="next", asked=3.0)
    assert shard.handle(write, 0.0) == ([Applied(8, "next", 3.0)], [write])


def test_a_copy_that_does_not_fit_answers_nobody_until_its_lead_writes_again() -> None:
    shard = shard_at(7)
    assert shard.handle(Unfit(CollectionFileError("other")), 0.0) == ([Applied(7)], [])
    assert shard.handle(Ask("q", 5, Question()), 0.0) == ([Behind("q", 7)], [])
    shard.handle(Apply(8, None), 0.0)
    assert isinstance(shard.handle(Ask("q", 5, Question()), 0.0).answers[0], Told)
