"""The lead decides each request once, and delivers it until every copy has applied it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from everhash.cluster.lead import AGAIN, HEARD, PAUSE, RESEND, Lead
from everhash.cluster.messages import (
    Applied,
    Apply,
    Ask,
    Behind,
    Here,
    Pause,
    Paused,
    Refused,
    Resume,
    Told,
    Unfit,
    Where,
    Write,
    Written,
)
from everhash.cluster.placement import Table
from everhash.cluster.writes import Handled, Replica
from everhash.errors import CollectionFileError, OptionError
from tests.cluster.toy import (
    NO_MAPPING,
    NO_SUMS,
    Add,
    Answer,
    Change,
    Entry,
    Grow,
    Learn,
    Move,
    Publish,
    ToyDecider,
)

LEARN = Write("learn", Learn((5,)))
NOTHING = Answer([], NO_SUMS, NO_MAPPING)
ONLY = Replica(0, 0)


def lead_of(shards: int = 1, copies: int = 1, *, known: bool = True) -> Lead:
    """Return a lead after write 1, which all copies have applied if that is known."""
    lead = Lead(ToyDecider(Table.of(shards)), 1, [], {}, copies)
    if known:
        for replica in lead.replicas:
            lead.handle(replica, Applied(1), 0.0)
    return lead


def applied(lead: Lead) -> Applied:
    """Return that a copy has applied all writes."""
    return Applied(lead.seq, lead.mark)


def probe(now: float) -> Apply:
    """Return what asks a copy for its number."""
    return Apply(0, None, asked=now)


def sent_to(handled: Handled, receiver: Hashable) -> list[Any]:
    return [message for to, message in handled.answers if to == receiver]


def restarted(lead: Lead, handled: Handled) -> Lead:
    """Return the lead that starts from what was stored."""
    answers = {record.request: (record.seq, record.answer) for record in handled.writes}
    seq = max((record.seq for record in handled.writes), default=1)
    mark = handled.writes[-1].mark if handled.writes else ""
    return Lead(lead.decider, seq, handled.writes, answers, lead.copies, mark)


def test_a_write_is_stored_answered_and_sent_to_every_copy() -> None:
    handled = lead_of(2, copies=2).handle("client", LEARN, 0.0)
    assert [record.seq for record in handled.writes] == [2]
    assert sent_to(handled, "client") == [Written("learn", 2, None)]
    for shard in (0, 1):
        for copy in (0, 1):
            (message,) = sent_to(handled, Replica(shard, copy))
            (write,) = handled.writes
            assert message == Apply(2, write.effects.get(shard), write.before, write.mark)


def test_a_request_that_comes_again_is_answered_again_and_not_applied_twice() -> None:
    lead = lead_of()
    first = lead.handle("client", LEARN, 0.0)
    assert lead.handle("client", LEARN, 1.0) == Handled([("client", Written("learn", 2, None))], [])
    again = restarted(lead, first).handle("client", LEARN, 2.0)
    assert again == Handled([("client", Written("learn", 2, None))], [])


def test_a_refused_request_stays_refused_though_it_were_possible_now() -> None:
    lead = lead_of()
    move = Write("move", Move(1))
    first = lead.handle("client", move, 0.0)
    (refused,) = sent_to(first, "client")
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, OptionError)
    assert first.writes[0].effects == {}
    lead.handle(ONLY, applied(lead), 0.0)
    lead.handle("other", Write("grow", Grow(2)), 0.0)
    assert lead.handle("client", move, 1.0) == Handled([("client", refused)], [])
    assert restarted(lead, first).handle("client", move, 2.0).answers == [("client", refused)]


def test_a_write_waits_until_every_shard_has_applied_the_one_before() -> None:
    lead = lead_of(2)
    lead.handle("client", LEARN, 0.0)
    publish = Write("publish", Publish())
    assert lead.handle("other", publish, 0.0) == Handled([], [])
    assert lead.handle(Replica(0, 0), applied(lead), 0.0) == Handled([], [])
    asked = lead.handle(Replica(1, 0), applied(lead), 0.0)
    assert [to for to, message in asked.answers if isinstance(message, Ask)] == [
        Replica(0, 0),
        Replica(1, 0),
    ]


def test_one_copy_of_each_shard_is_enough_to_go_on() -> None:
    lead = lead_of(1, copies=2)
    lead.handle("client", LEARN, 0.0)
    lead.handle(Replica(0, 1), applied(lead), 0.0)
    handled = lead.handle("client", Write("again", Learn((1,))), 0.0)
    assert sent_to(handled, "client") == [Written("again", 3, None)]
    assert sent_to(handled, Replica(0, 0)) == []  # it has to apply write 2 before
    assert lead.lagging == [Replica(0, 0), Replica(0, 1)]


def test_answers_decide_a_write() -> None:
    lead = lead_of()
    (asked,) = sent_to(lead.handle("client", Write("c", Change((7,), (1,))), 0.0), ONLY)
    there = Answer([Entry(0, 7, 10)], NO_SUMS, NO_MAPPING)
    handled = lead.handle(ONLY, Told(asked.number, 1, 1, there), 0.0)
    assert sent_to(handled, "client") == [Written("c", 2, 1)]


def test_answers_to_a_question_of_the_lead_before_are_not_taken() -> None:
    before = lead_of()
    (old,) = sent_to(before.handle("client", Write("a", Add((7,), (1,))), 0.0), ONLY)
    lead = restarted(before, Handled([], []))
    lead.handle(ONLY, Applied(1), 0.0)
    (new,) = sent_to(lead.handle("other", Write("b", Add((8,), (1,))), 0.0), ONLY)
    assert lead.handle(ONLY, Told(old.number, 1, 1, NOTHING), 0.0).writes == []
    assert len(lead.handle(ONLY, Told(new.number, 1, 1, NOTHING), 0.0).writes) == 1


def test_a_silent_shard_is_asked_again_in_all_its_copies() -> None:
    lead = lead_of(1, copies=2)
    asked = lead.handle("client", Write("publish", Publish()), 0.0)
    assert len(asked.answers) == 1
    assert lead.tick(RESEND / 2).answers == []
    assert [to for to, _ in lead.tick(RESEND).answers] == [Replica(0, 0), Replica(0, 1)]
    assert lead.handle(Replica(0, 0), Behind("publish", 0), RESEND).writes == []


def test_what_was_not_applied_is_sent_again() -> None:
    lead = lead_of()
    first = lead.handle("client", LEARN, 0.0)
    assert lead.tick(RESEND / 2).answers == []
    assert sent_to(lead.tick(RESEND), ONLY) == sent_to(first, ONLY)


def test_a_lead_that_starts_asks_how_far_each_copy_is() -> None:
    lead = lead_of(2, known=False)
    assert [message for _, message in lead.tick(0.0).answers] == [probe(0.0), probe(0.0)]
    assert lead.trimmable == 0


def test_a_lead_that_starts_delivers_what_copies_have_not_applied() -> None:
    lead = lead_of()
    lead = restarted(lead, lead.handle("client", LEARN, 0.0))
    (message,) = sent_to(lead.handle(ONLY, Applied(1), 0.0), ONLY)
    assert message.seq == 2


def test_records_are_kept_until_every_copy_has_applied_them() -> None:
    lead = lead_of(1, copies=2)
    lead.handle("client", LEARN, 0.0)
    lead.handle(Replica(0, 0), applied(lead), 0.0)
    assert lead.trimmable == 1
    lead.forget_trimmed()
    assert [one.seq for one in sent_to(lead.tick(RESEND), Replica(0, 1))] == [2]
    lead.handle(Replica(0, 1), applied(lead), 1.0)
    assert lead.trimmable == 2
    assert lead.lagging == []


def test_a_late_acknowledgement_does_no_harm() -> None:
    lead = lead_of()
    lead.handle("client", LEARN, 0.0)
    lead.handle(ONLY, applied(lead), 0.0)
    lead.forget_trimmed()
    lead.handle(ONLY, Applied(1), 5.0)
    assert lead.lagging == [ONLY]
    assert sent_to(lead.tick(6.0), ONLY) == [probe(6.0)]
    lead.handle(ONLY, applied(lead), 6.0)
    assert lead.lagging == []


def test_new_shards_are_delivered_the_write_that_adds_them_first() -> None:
    lead = lead_of()
    grown = lead.handle("client", Write("grow", Grow(2)), 0.0)
    new = Replica(1, 0)
    assert sent_to(lead.tick(0.0), new) == [probe(0.0)]
    (write,) = grown.writes
    begin = Apply(2, write.effects[1], write.before, write.mark)
    assert sent_to(lead.handle(new, Applied(0), 0.0), new) == [begin]
    assert lead.trimmable == 0


def test_requests_that_come_again_keep_their_place_in_the_queue() -> None:
    lead = lead_of()
    lead.handle("client", LEARN, 0.0)
    for request in ("second", "third", "second"):
        lead.handle("client", Write(request, Learn((1,))), 0.0)
    handled = lead.handle(ONLY, applied(lead), 0.0)
    assert sent_to(handled, "client") == [Written("second", 3, None)]


def test_no_write_begins_during_a_pause() -> None:
    lead = lead_of()
    assert lead.handle("reader", Pause("p"), 0.0).answers == [("reader", Paused("p", 1))]
    assert lead.handle("client", LEARN, 0.1) == Handled([], [])
    assert len(lead.handle("reader", Resume("p"), 0.2).writes) == 1


def test_a_pause_that_is_asked_for_again_is_confirmed_again() -> None:
    lead = lead_of()
    lead.handle("reader", Pause("p"), 0.0)
    assert lead.handle("reader", Pause("p"), 0.1).answers == [("reader", Paused("p", 1))]
    lead.handle("reader", Resume("p"), 0.2)
    assert len(lead.handle("client", LEARN, 0.3).writes) == 1


def test_a_pause_that_nobody_ends_ends_by_itself() -> None:
    lead = lead_of()
    lead.handle("reader", Pause("p"), 0.0)
    lead.handle("client", LEARN, 0.1)
    assert lead.tick(PAUSE / 2).writes == []
    assert len(lead.tick(PAUSE + 0.1).writes) == 1


def test_a_pause_that_is_no_more_wanted_does_not_begin() -> None:
    lead = lead_of()
    lead.handle("client", LEARN, 0.0)
    lead.handle("reader", Pause("p"), 0.0)
    lead.handle("reader", Resume("p"), 0.0)
    assert lead.handle(ONLY, applied(lead), 0.0).answers == []
    assert len(lead.handle("client", Write("next", Learn((1,))), 0.0).writes) == 1


def test_a_pause_begins_when_every_shard_has_applied_everything() -> None:
    lead = lead_of(2)
    lead.handle("client", LEARN, 0.0)
    assert lead.handle("reader", Pause("p"), 0.0).answers == []
    lead.handle(Replica(0, 0), applied(lead), 0.0)
    paused = lead.handle(Replica(1, 0), applied(lead), 0.0)
    assert paused.answers == [("reader", Paused("p", 2))]


def test_where_entries_are_is_told_at_once() -> None:
    lead = lead_of(3)
    table = lead.decider.table
    assert lead.handle("reader", Where("w"), 0.0).answers == [("reader", Here("w", 1, table))]


def test_a_lead_that_starts_hears_every_shard_before_it_tells_where_entries_are() -> None:
    lead = lead_of(2, known=False)
    here = ("reader", Here("w", 1, lead.decider.table))
    lead.handle("reader", Where("w"), 0.0)
    assert lead.handle(Replica(0, 0), Applied(1), 0.1).answers == []
    assert lead.handle(Replica(1, 0), Applied(1), 0.2).answers == [here]


def test_a_lead_does_not_wait_for_a_silent_shard_for_ever() -> None:
    lead = lead_of(1, known=False)
    here = ("reader", Here("w", 1, lead.decider.table))
    assert here not in lead.handle("reader", Where("w"), 0.0).answers
    assert here in lead.tick(HEARD).answers


# Files that were put back


def told(lead: Lead, message: Any) -> CollectionFileError:
    """Return the error that everybody gets after a message of the only copy."""
    lead.handle("reader", Where("w"), 0.0)
    lead.handle("writer", LEARN, 0.0)
    handled = lead.handle(ONLY, message, 0.0)
    error = lead.problem
    assert isinstance(error, CollectionFileError)
    for client in ("reader", "writer"):
        assert sent_to(handled, client) == [error]
    assert sent_to(handled, ONLY) == [Unfit(error)]
    assert sent_to(lead.handle("later", LEARN, 1.0), "later") == [error]
    assert sent_to(lead.handle("later", Pause("p"), 1.0), "later") == [error]
    assert "backup" in str(error)
    return error


def test_a_shard_ahead_of_the_lead_ends_all_work() -> None:
    error = told(lead_of(known=False), Applied(7, "whatever"))
    assert "copy 0 of shard 0 has the writes up to 7, the lead only up to 1" in str(error)


def test_a_shard_with_other_writes_ends_all_work() -> None:
    assert "of another cluster" in str(told(lead_of(known=False), Applied(1, "other")))


def test_a_shard_with_another_history_of_the_same_length_is_found() -> None:
    lead = lead_of()
    lead = restarted(lead, lead.handle("client", LEARN, 0.0))
    other = lead_of()
    other.handle("client", Write("other", Learn((6,))), 0.0)
    handled = lead.handle(ONLY, applied(other), 0.0)
    assert [message for _, message in handled.answers] == [Unfit(lead.problem)]  # type: ignore[arg-type]


def test_a_shard_behind_what_the_lead_still_has_ends_all_work() -> None:
    lead = lead_of()
    lead.handle("client", LEARN, 0.0)
    lead.handle(ONLY, applied(lead), 0.0)
    lead.forget_trimmed()
    lead.handle(ONLY, Applied(1), 5.0)
    assert lead.problem is None  # it may have come late
    assert sent_to(lead.tick(6.0), ONLY) == [probe(6.0)]
    lead.handle(ONLY, Applied(1, asked=6.0), 6.0)
    assert "the lead no longer has the next one" in str(lead.problem)


def test_a_shard_that_was_put_back_not_too_far_is_brought_up_again() -> None:
    lead = lead_of()
    first = lead.handle("client", LEARN, 0.0)
    lead.handle(ONLY, applied(lead), 0.0)
    assert sent_to(lead.handle(ONLY, Applied(1), 5.0), ONLY) == sent_to(first, ONLY)


def test_a_copy_that_does_not_fit_is_left_out_while_another_one_does() -> None:
    lead = lead_of(1, copies=2, known=False)
    lead.handle(Replica(0, 0), Applied(7, "other"), 0.0)
    lead.handle(Replica(0, 1), Applied(1), 0.0)
    assert lead.problem is None
    assert len(lead.handle("client", LEARN, 0.0).writes) == 1
    assert sent_to(lead.tick(AGAIN - 0.1), Replica(0, 0)) == []
    (message,) = sent_to(lead.tick(AGAIN), Replica(0, 0))
    assert isinstance(message, Unfit)


def test_a_damaged_file_is_told_to_everybody() -> None:
    lead = lead_of(known=False)
    damaged = CollectionFileError("shard 0: damaged")
    lead.handle(ONLY, Unfit(damaged), 0.0)
    assert sent_to(lead.handle("client", LEARN, 0.0), "client") == [damaged]
    lead.handle(ONLY, Applied(1), 9.0)  # somebody has mended it
    assert len(lead.handle("client", LEARN, 9.0).writes) == 1


def test_a_write_that_a_copy_refuses_is_sent_again_only_after_a_while() -> None:
    lead = lead_of()
    handled = lead.handle("client", LEARN, 0.0)
    assert [type(message) for message in sent_to(handled, ONLY)] == [Apply]
    damaged = CollectionFileError("it does not fit")
    assert sent_to(lead.handle(ONLY, Unfit(damaged), 0.0), ONLY) == [Unfit(damaged)]
    assert sent_to(lead.handle(ONLY, Applied(1), 0.0), ONLY) == []
    assert lead.problem is damaged
    assert sent_to(lead.tick(AGAIN), ONLY) == [Unfit(damaged)]
    handled = lead.handle(ONLY, Applied(1), AGAIN)
    assert [type(message) for message in sent_to(handled, ONLY)] == [Apply]
