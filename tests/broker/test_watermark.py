"""Waiting for a commit, or for the news that there will be none."""

from kafkaesque.broker.replication.watermark import Copies, Outcome, Watermark


def test_waiters_are_notified_in_order_when_their_entries_are_committed() -> None:
    told: list[tuple[str, Outcome]] = []
    watermark = Watermark()
    watermark.wait(2, lambda outcome: told.append(("a", outcome)))
    watermark.wait(5, lambda outcome: told.append(("b", outcome)))
    watermark.wait(9, lambda outcome: told.append(("c", outcome)))
    watermark.reached(5)
    assert told == [("a", Outcome.COMMITTED), ("b", Outcome.COMMITTED)]


def test_half_a_batch_is_not_enough() -> None:
    told: list[Outcome] = []
    watermark = Watermark()
    watermark.wait(5, told.append)
    watermark.reached(4)
    assert told == []


def test_when_leadership_is_lost_the_other_waiters_learn_that_the_outcome_is_unknown() -> None:
    told: list[Outcome] = []
    watermark = Watermark()
    watermark.wait(1, told.append)
    watermark.wait(2, told.append)
    watermark.reached(1)
    watermark.lost()
    assert told == [Outcome.COMMITTED, Outcome.UNKNOWN]


def test_each_waiter_is_notified_once() -> None:
    told: list[Outcome] = []
    watermark = Watermark()
    watermark.wait(1, told.append)
    watermark.lost()
    watermark.lost()
    watermark.reached(9)
    assert told == [Outcome.UNKNOWN]


def test_a_notified_waiter_may_wait_again_at_once() -> None:
    told: list[Outcome] = []
    watermark = Watermark()

    def again(outcome: Outcome) -> None:
        told.append(outcome)
        if len(told) == 1:
            watermark.wait(3, again)

    watermark.wait(1, again)
    watermark.lost()
    assert told == [Outcome.UNKNOWN]
    watermark.reached(3)
    assert told == [Outcome.UNKNOWN, Outcome.COMMITTED]


def test_waiters_for_copies_are_notified_when_committed_and_on_enough_replicas() -> None:
    told: list[Outcome] = []
    copies = Copies()
    copies.wait(5, 3, told.append)
    held = {2: 9, 3: 4}
    copies.reached(9, held.__getitem__)
    assert told == []
    copies.reached(4, {3: 5}.__getitem__)
    assert told == []
    copies.reached(5, {3: 5}.__getitem__)
    assert told == [Outcome.COMMITTED]


def test_waiters_for_more_copies_than_are_in_sync_are_refused_and_others_keep_waiting() -> None:
    told: list[tuple[str, Outcome]] = []
    copies = Copies()
    copies.wait(1, 3, lambda outcome: told.append(("three", outcome)))
    copies.wait(2, 2, lambda outcome: told.append(("two", outcome)))
    copies.too_few(2)
    assert told == [("three", Outcome.TOO_FEW)]
    copies.lost()
    assert told[1:] == [("two", Outcome.UNKNOWN)]
    copies.reached(9, lambda _: 9)
    assert len(told) == 2
