"""What share groups do is counted once, by records."""

from msgspec.structs import replace

from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_tally import ShareTally
from kafkaesque.machines.queues.share_values import Ack
from tests.machines.share_desk import GROUP, LIMITS, PLACE, Store, accept, ack

WIDE = replace(LIMITS, window=10_000, locks_max=10_000)


def test_ranges_are_counted_over_the_edges_of_chunks() -> None:
    tally = ShareTally()
    state = SharePartition(PLACE, GROUP, 0, WIDE, 7, tally)
    state.take("a", [(0, 2_999)], 10_000, 0)
    assert (tally.delivered, tally.redelivered) == (3_000, 0)
    state.settle("a", [accept(0, 1_499), ack(1_500, 1_599, Ack.REJECT)], 0)
    state.settle("a", [ack(1_600, 1_609, Ack.GAP), ack(1_610, 1_619, Ack.RENEW)], 0)
    state.settle("a", [ack(1_620, 2_999, Ack.RELEASE)], 0)
    assert (tally.accepted, tally.rejected, tally.given_up, tally.expired) == (1_500, 100, 0, 0)
    state.take("a", [(0, 2_999)], 1_000, 0)
    assert (tally.delivered, tally.redelivered) == (4_000, 1_000)


def test_what_was_done_before_is_not_counted_again() -> None:
    tally = ShareTally()
    state = SharePartition(PLACE, GROUP, 0, WIDE, 7, tally)
    state.take("a", [(0, 9)], 10, 0)
    state.settle("a", [accept(0, 4)], 0)
    state.settle("a", [accept(0, 9)], 0)
    assert tally.accepted == 10


def test_expired_locks_and_records_given_up_are_counted() -> None:
    tally = ShareTally()
    state = SharePartition(PLACE, GROUP, 0, replace(WIDE, delivery_max=2), 7, tally)
    state.take("a", [(0, 9)], 10, 0)
    assert state.expire(1_000, 6) == 6
    assert (tally.expired, tally.given_up) == (6, 0)
    state.drop("a", 1_000)
    assert tally.expired == 6, "the member itself let go of the others"
    state.take("a", [(0, 9)], 10, 1_000)  # a last attempt is made alone
    state.settle("a", [ack(0, 0, Ack.RELEASE)], 1_000)
    state.take("a", [(1, 9)], 10, 1_000)
    state.drop("a", 1_000)
    assert (tally.given_up, tally.rejected, tally.expired) == (2, 0, 6)
    assert (tally.delivered, tally.redelivered) == (12, 2)


def test_a_restored_group_counts_on() -> None:
    tally = ShareTally()
    state = SharePartition(PLACE, GROUP, 0, WIDE, 7, tally)
    state.take("a", [(0, 9)], 10, 0)
    state.settle("a", [ack(0, 9, Ack.RELEASE)], 0)
    store = Store()
    store.write(state.changes())
    again = SharePartition.restored(PLACE, GROUP, store.records(), WIDE, tally)
    again.take("b", [(0, 9)], 10, 0)
    assert (tally.delivered, tally.redelivered) == (20, 10)


def test_the_lag_is_what_is_not_done_between_the_ends_of_the_log() -> None:
    state = SharePartition(PLACE, GROUP, 5, WIDE, 7)
    assert state.lag(0, 105) == 100
    assert state.lag(25, 105) == 80, "the log no longer has the first ones"
    state.take("a", [(5, 24)], 20, 0)
    state.settle("a", [accept(10, 19)], 0)
    assert (state.lag(0, 105), state.locked, state.released) == (90, 10, 0)
    state.settle("a", [ack(5, 9, Ack.RELEASE)], 0)
    assert (state.lag(0, 105), state.locked, state.released) == (90, 5, 5)
    assert state.lag(0, 3) == 0, "the log is shorter than it was"
