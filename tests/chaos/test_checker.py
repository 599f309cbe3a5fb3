"""The checker: no findings in correct histories, and a finding for each planted error."""

import random
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.chaos.checker import check
from tests.chaos.findings import Kind
from tests.chaos.history import (
    Accept,
    Commit,
    Committed,
    Delivery,
    Drained,
    Final,
    Op,
    Outcome,
    Poll,
    Put,
    Recorder,
    Send,
    from_line,
    load,
    to_line,
)
from tests.chaos.job import DELIVERIES_MAX
from tests.chaos.random_histories import PLANTED, a_history

SEEDS = st.integers(min_value=0, max_value=2**32)


@given(SEEDS)
def test_a_correct_history_has_no_findings(seed: int) -> None:
    verdict = check(a_history(seed))
    assert verdict.is_clean, verdict.report()
    assert verdict.sends[Outcome.OK] > 0
    assert verdict.polled > 0


def test_every_kind_of_finding_has_a_planted_error() -> None:
    assert PLANTED.keys() == set(Kind)


@pytest.mark.parametrize("kind", PLANTED)
@given(seed=SEEDS)
def test_a_planted_error_is_found_and_shown(kind: Kind, seed: int) -> None:
    ops = a_history(seed)
    try:
        wrong = PLANTED[kind](random.Random(seed), ops)
    except (IndexError, StopIteration, ValueError):
        assume(False)  # the history is too small for this error
    found = [finding for finding in check(wrong).findings if finding.kind is kind]
    assert found
    assert found[0].evidence or kind is Kind.UNREAD
    assert kind in check(wrong).report()


def a_send(number: int, at: int, outcome: Outcome, offset: int | None = None) -> Send:
    return Send(
        process="p",
        partition=0,
        begun=at,
        ended=at + 5,
        value=f"v{number}",
        outcome=outcome,
        offset=offset,
    )


def a_final(*values: str) -> Final:
    records = tuple(enumerate(values))
    return Final(
        process="f", partition=0, begun=900, ended=999, start=0, end=len(values), records=records
    )


def kinds(*ops: Op) -> set[Kind]:
    return set(check(ops).kinds)


@pytest.mark.parametrize("is_there", [True, False])
def test_an_unanswered_send_may_or_may_not_be_written(is_there: bool) -> None:
    values = ("v1", "v2") if is_there else ("v2",)
    second = a_send(2, 10, Outcome.OK, len(values) - 1)
    assert kinds(a_send(1, 1, Outcome.UNKNOWN), second, a_final(*values)) == set()


def test_a_record_of_a_plain_producer_may_be_duplicated() -> None:
    send = Send(
        process="p",
        partition=0,
        begun=1,
        ended=2,
        value="v1",
        outcome=Outcome.OK,
        offset=0,
        is_idempotent=False,
    )
    assert kinds(send, a_final("v1", "v1")) == set()


def test_a_record_missing_for_one_reader_only_is_found() -> None:
    sends = (a_send(1, 1, Outcome.OK, 0), a_send(2, 10, Outcome.OK, 1))
    whole, part = a_final("v1", "v2"), a_final("v1")
    assert Kind.LOST in kinds(*sends, whole, part)
    assert kinds(*sends, whole, whole) == set()


def test_overlapping_sends_of_two_producers_may_be_written_in_either_order() -> None:
    one = a_send(1, 1, Outcome.OK, 1)
    other = Send(
        process="q", partition=0, begun=2, ended=3, value="w", outcome=Outcome.OK, offset=0
    )
    assert kinds(one, other, a_final("w", "v1")) == set()


def test_the_order_of_sends_counts_and_not_that_of_the_answers() -> None:
    first, second = a_send(1, 1, Outcome.UNKNOWN), a_send(2, 10, Outcome.OK, 1)
    assert kinds(second, first, a_final("v1", "v2")) == set()
    assert Kind.REORDERED in kinds(second, first, a_final("v2", "v1"))


def a_commit(offset: int, begun: int, ended: int, outcome: Outcome = Outcome.OK) -> Commit:
    return Commit(
        process="c",
        partition=0,
        begun=begun,
        ended=ended,
        group="g",
        offset=offset,
        outcome=outcome,
    )


def a_read(offset: int | None, begun: int) -> Committed:
    return Committed(
        process="c", partition=0, begun=begun, ended=begun + 1, group="g", offset=offset
    )


def test_a_replaced_commit_is_stale() -> None:
    commits = (a_commit(5, 1, 2), a_commit(9, 3, 4))
    assert kinds(*commits, a_read(9, 10)) == set()
    assert kinds(*commits, a_read(5, 10)) == {Kind.STALE_COMMITTED}
    assert kinds(*commits, a_read(None, 10)) == {Kind.STALE_COMMITTED}


def test_an_unanswered_commit_may_take_effect_late() -> None:
    late = a_commit(5, 1, 2, Outcome.UNKNOWN)
    assert kinds(late, a_commit(9, 3, 4), a_read(5, 10)) == set()
    assert kinds(late, a_commit(9, 3, 4), a_read(9, 10)) == set()


@given(SEEDS)
def test_an_operation_round_trips_through_its_line(seed: int) -> None:
    ops = a_history(seed)
    assert [from_line(to_line(op)) for op in ops] == ops


def test_a_torn_last_line_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "history.jsonl"
    with file.open("w") as out:
        recorder = Recorder(out)
        recorder.add(a_send(1, 1, Outcome.OK, 0))
        out.write('{"op":"send","pro')
    assert load([file]) == [a_send(1, 1, Outcome.OK, 0)]


def a_put() -> Put:
    return Put(process="q", partition=0, begun=1, ended=2, value="v")


def a_delivery(since: int, begun: int, times: int = 1) -> Delivery:
    return Delivery(
        process="m",
        partition=0,
        begun=begun,
        ended=begun + 1,
        since=since,
        records=((0, "v", times),),
    )


def an_accept(begun: int, outcome: Outcome = Outcome.OK) -> Accept:
    return Accept(
        process="m", partition=0, begun=begun, ended=begun + 1, values=("v",), outcome=outcome
    )


def a_drain(lag: int = 0) -> Drained:
    return Drained(process="f", partition=0, begun=900, ended=999, lag=lag)


ACCEPTED = (a_put(), a_delivery(5, 10), an_accept(12))


def test_an_accepted_record_does_not_come_again() -> None:
    assert kinds(*ACCEPTED, a_drain()) == set()
    assert kinds(*ACCEPTED, a_delivery(14, 20), a_drain()) == {Kind.DELIVERED_AGAIN}
    assert kinds(*ACCEPTED, an_accept(20), a_drain()) == {Kind.ACCEPTED_AGAIN}


def test_an_older_consumer_may_show_late_what_it_received_earlier() -> None:
    late = (a_delivery(4, 20), an_accept(22, Outcome.UNKNOWN))
    assert kinds(*ACCEPTED, *late, a_drain()) == set()


def test_an_unanswered_acceptance_may_count_or_not() -> None:
    unsure = (a_put(), a_delivery(5, 10), an_accept(12, Outcome.UNKNOWN))
    assert kinds(*unsure, a_drain()) == set()
    assert kinds(*unsure, a_delivery(14, 20, 2), an_accept(22), a_drain()) == set()


def test_a_record_that_nobody_accepts_is_found_unless_it_is_given_up() -> None:
    assert kinds(a_put(), a_drain()) == {Kind.NEVER_ACCEPTED}
    assert kinds(a_put(), a_delivery(5, 10), a_drain()) == {Kind.NEVER_ACCEPTED}
    assert kinds(a_put(), a_delivery(5, 10, DELIVERIES_MAX), a_drain()) == set()


def test_a_queue_must_be_empty_in_the_end() -> None:
    assert kinds(*ACCEPTED) == {Kind.UNREAD}
    assert kinds(*ACCEPTED, a_drain(1)) == {Kind.NOT_DRAINED}
    assert kinds(*ACCEPTED, a_drain(-1)) == {Kind.NOT_DRAINED}


def test_deliveries_after_the_first_and_confirmed_acceptances_are_counted() -> None:
    again = (a_delivery(14, 20), a_delivery(14, 30), an_accept(32, Outcome.UNKNOWN))
    verdict = check((*ACCEPTED, *again))
    assert (verdict.accepted, verdict.redelivered) == (1, 2)


def test_an_empty_poll_proves_nothing() -> None:
    assert kinds(Poll(process="c", partition=0, begun=1, ended=2, records=())) == set()
