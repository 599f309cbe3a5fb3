"""What a share group hands out of a partition, what members may say of it, and what is kept."""

import pytest
from msgspec.structs import replace

from kafkaesque.machines.queues.queue_errors import InvalidAcknowledgement, InvalidRecordState
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_records import StartSaved, from_record
from kafkaesque.machines.queues.share_values import Ack, AckBatch, Acquired, ShareLimits
from tests.machines.share_desk import GROUP, LIMITS, PLACE, Store, accept, ack, partition

WIDE = replace(LIMITS, window=10_000, locks_max=10_000)


def taken(first: int = 0, last: int = 9, limits: ShareLimits = LIMITS) -> SharePartition:
    """Return a partition of which member a has taken a range at time 0."""
    state = partition(first, limits)
    state.take("a", [(first, last)], 10_000, 0)
    return state


# ── handing out ──────────────────────────────────────────────────────────────────────────────


def test_records_are_handed_out_once_and_in_order() -> None:
    state = partition()
    assert state.take("a", [(0, 9)], 4, 0) == [Acquired(0, 3, 1)]
    assert state.take("b", [(0, 9)], 500, 0) == [Acquired(4, 9, 1)]
    assert state.take("c", [(0, 9)], 500, 0) == []
    assert state.holders() == {"a": 4, "b": 6}


def test_neighbours_over_the_edge_of_a_chunk_are_one_range() -> None:
    state = partition(1_000, WIDE)
    assert state.take("a", [(1_000, 1_500), (1_501, 4_000)], 5_000, 0) == [
        Acquired(1_000, 4_000, 1)
    ]
    state.settle("a", [accept(1_000, 4_000)], 0)
    assert (state.start, state.next) == (4_001, 4_001)
    assert state.view(0).done == 0


def test_what_was_released_comes_before_what_is_new() -> None:
    state = taken(0, 9)
    state.settle("a", [ack(3, 4, Ack.RELEASE)], 0)
    assert state.next_available() == 3
    assert state.take("b", [(0, 20)], 3, 0) == [Acquired(3, 4, 2), Acquired(10, 10, 1)]


def test_offsets_that_do_not_exist_are_done() -> None:
    state = partition()
    assert state.take("a", [(2, 3), (6, 7)], 500, 0, read_to=10) == [
        Acquired(2, 3, 1),
        Acquired(6, 7, 1),
    ]
    assert (state.start, state.next) == (2, 10)
    state.settle("a", [accept(2, 3), accept(6, 7)], 0)
    assert state.start == 10


def test_a_hole_of_any_width_at_the_start_is_skipped_at_once() -> None:
    state = partition()
    assert state.take("a", [(10**15, 10**15 + 1)], 500, 0) == [Acquired(10**15, 10**15 + 1, 1)]
    assert state.start == 10**15


def test_a_hole_behind_a_held_record_is_noted_as_far_as_the_window_reaches() -> None:
    state = taken(0, 0)
    assert state.take("a", [(10**15, 10**15)], 500, 0) == []
    assert (state.next, state.next_available()) == (LIMITS.window, None)
    state.settle("a", [accept(0)], 0)
    assert state.take("a", [(10**15, 10**15)], 500, 0) == [Acquired(10**15, 10**15, 1)]


def test_what_was_released_during_a_read_is_not_taken_for_a_hole() -> None:
    state = taken(0, 9)
    read_from = state.next_available()
    state.settle("a", [ack(2, 2, Ack.RELEASE)], 0)
    assert state.take("b", [(10, 12)], 500, 0, read_from=read_from) == [Acquired(10, 12, 1)]
    assert state.next_available() == 2


def test_a_read_from_beyond_what_was_handed_out_hands_out_nothing() -> None:
    state = partition()
    assert state.take("a", [(5, 9)], 500, 0, read_from=5) == []
    assert (state.start, state.next) == (0, 0)


def test_the_window_counts_from_the_start() -> None:
    state = partition(limits=replace(WIDE, window=10))
    assert state.take("a", [(0, 99)], 500, 0) == [Acquired(0, 9, 1)]
    state.settle("a", [accept(1, 9)], 0)
    assert state.next_available() is None, "record 0 holds the window back"
    state.settle("a", [accept(0)], 0)
    assert state.take("a", [(0, 99)], 500, 0) == [Acquired(10, 19, 1)]


def test_what_was_released_is_taken_though_the_window_is_full() -> None:
    state = partition(limits=replace(WIDE, window=10))
    state.take("a", [(0, 99)], 500, 0)
    state.settle("a", [ack(7, 7, Ack.RELEASE)], 0)
    assert state.take("b", [(0, 99)], 500, 0) == [Acquired(7, 7, 2)]


def test_all_members_together_hold_a_limited_number_of_records() -> None:
    state = partition(limits=replace(WIDE, locks_max=5))
    state.take("a", [(0, 99)], 3, 0)
    assert state.take("b", [(0, 99)], 500, 0) == [Acquired(3, 4, 1)]
    assert state.next_available() is None
    state.settle("a", [accept(0)], 0)
    assert state.next_available() == 5


# ── the delivery limit ───────────────────────────────────────────────────────────────────────


def test_a_last_attempt_is_handed_out_alone() -> None:
    state = taken(0, 9)
    state.settle("a", [ack(4, 5, Ack.RELEASE)], 0)
    state.take("a", [(0, 9)], 500, 0)
    state.settle("a", [ack(2, 2, Ack.RELEASE), ack(4, 5, Ack.RELEASE)], 0)
    assert state.take("b", [(0, 20)], 500, 0) == [Acquired(2, 2, 2)], "up to the last attempt"
    assert state.take("b", [(0, 20)], 500, 0) == [Acquired(4, 4, 3)]
    assert state.take("b", [(0, 20)], 500, 0) == [Acquired(5, 5, 3)]
    assert state.take("b", [(0, 20)], 500, 0) == [Acquired(10, 20, 1)]


@pytest.mark.parametrize("ends", ["release", "drop", "expiry"])
def test_a_delivery_that_was_the_last_attempt_ends_the_record(ends: str) -> None:
    state = taken(0, 0, replace(LIMITS, delivery_max=1))
    match ends:
        case "release":
            state.settle("a", [ack(0, 0, Ack.RELEASE)], 0)
        case "drop":
            state.drop("a", 0)
        case _:
            assert state.expire(LIMITS.lock_ms, 10) == 1
    assert (state.start, state.next_available()) == (1, 1)


def test_a_record_may_be_accepted_at_its_last_attempt() -> None:
    state = taken(0, 0, replace(LIMITS, delivery_max=1))
    state.settle("a", [accept(0)], 0)
    assert state.start == 1


def test_why_a_record_is_done_is_kept() -> None:
    state = taken(0, 9, replace(LIMITS, delivery_max=1, locks_max=99))
    assert state.holders() == {"a": 1}, "each is a last attempt"
    for _ in range(3):
        state.take("a", [(0, 9)], 500, 0)
    state.settle("a", [ack(1, 3, Ack.ACCEPT, Ack.REJECT, Ack.RELEASE)], 0)
    store = Store()
    store.write(state.changes())
    assert store.done() == {1: "", 2: "rejected", 3: "limit"}


# ── settling ─────────────────────────────────────────────────────────────────────────────────


def test_what_lies_below_the_start_may_be_settled_again() -> None:
    state = taken(0, 9)
    state.settle("a", [accept(0, 4)], 0)
    state.settle("a", [accept(0, 6)], 0)
    assert state.start == 7


def test_what_was_never_handed_out_cannot_be_settled() -> None:
    state = taken(0, 9)
    with pytest.raises(InvalidAcknowledgement, match="offset 10 was never handed out"):
        state.settle("a", [accept(0, 10)], 0)
    assert state.start == 0


def test_only_the_holder_settles() -> None:
    state = taken(0, 9)
    with pytest.raises(InvalidRecordState, match="b does not hold offset 3"):
        state.settle("b", [accept(3)], 0)


def test_what_is_done_or_released_is_not_held() -> None:
    state = taken(0, 9)
    state.settle("a", [accept(3), ack(5, 5, Ack.RELEASE)], 0)
    for offset in (3, 5):
        with pytest.raises(InvalidRecordState):
            state.settle("a", [accept(offset)], 0)


def test_a_lock_that_ran_out_settles_nothing_even_before_it_is_released() -> None:
    state = taken(0, 9)
    state.settle("a", [accept(0)], LIMITS.lock_ms - 1)
    with pytest.raises(InvalidRecordState):
        state.settle("a", [accept(1)], LIMITS.lock_ms)


@pytest.mark.parametrize(
    "acks",
    [
        [accept(3), accept(2)],
        [accept(3, 5), accept(5, 6)],
        [accept(4, 3)],
        [ack(0, 2, Ack.ACCEPT, Ack.ACCEPT)],
        [ack(0, 2)],
    ],
)
def test_malformed_acknowledgements_are_refused(acks: list[AckBatch]) -> None:
    state = taken(0, 9)
    with pytest.raises(InvalidAcknowledgement):
        state.settle("a", acks, 0)
    assert state.view(0).locked == 10


def test_all_is_settled_or_nothing() -> None:
    state = taken(0, 4)
    state.take("b", [(0, 9)], 500, 0)
    with pytest.raises(InvalidRecordState):
        state.settle("a", [accept(0), ack(1, 1, Ack.RELEASE), accept(4, 5)], 0)
    assert (state.start, state.holders()) == (0, {"a": 5, "b": 5})


def test_a_gap_is_done() -> None:
    state = taken(0, 2)
    state.settle("a", [ack(0, 2, Ack.GAP)], 0)
    assert state.start == 3


def test_renewed_locks_run_out_later_and_the_others_do_not() -> None:
    state = taken(0, 9)
    state.settle("a", [ack(3, 5, Ack.RENEW)], 600)
    assert state.expire(LIMITS.lock_ms, 100) == 7
    assert state.holders() == {"a": 3}
    assert state.due_ms == LIMITS.lock_ms + 600
    state.settle("a", [accept(3, 5)], LIMITS.lock_ms + 599)


def test_a_record_that_is_taken_again_belongs_to_the_new_holder_alone() -> None:
    """Both locks begin at record 0: the first one must not get lost."""
    state = taken(0, 9)
    state.settle("a", [ack(0, 0, Ack.RELEASE)], 0)
    assert state.take("b", [(0, 9)], 1, 0) == [Acquired(0, 0, 2)]
    assert state.holders() == {"a": 9, "b": 1}
    with pytest.raises(InvalidRecordState):
        state.settle("b", [accept(1)], 0)
    state.settle("b", [accept(0)], 0)
    state.settle("a", [accept(1, 9)], 0)
    assert state.start == 10


def test_a_range_over_two_locks_settles_no_more_than_itself() -> None:
    state = taken(0, 4)
    state.take("a", [(0, 9)], 500, 0)
    state.settle("a", [accept(3, 6)], 0)
    assert (state.holders(), state.view(0).done) == ({"a": 6}, 4)
    state.settle("a", [accept(0, 2), accept(7, 9)], 0)


def test_a_range_with_a_record_that_is_no_longer_held_is_refused() -> None:
    state = taken(0, 9)
    state.settle("a", [ack(4, 4, Ack.RELEASE)], 0)
    with pytest.raises(InvalidRecordState, match="offset 4"):
        state.settle("a", [accept(0, 9)], 0)
    assert state.next_available() == 4


def test_a_range_is_settled_though_another_lock_lies_inside() -> None:
    state = taken(0, 9)
    state.settle("a", [ack(4, 5, Ack.RELEASE)], 0)
    state.take("b", [(0, 9)], 500, 0)
    state.settle("b", [accept(4, 5)], 0)
    state.settle("a", [accept(6, 9)], 0)
    state.settle("a", [accept(0, 3)], 0)
    assert (state.start, state.view(0).locked) == (10, 0)


# ── time and members ─────────────────────────────────────────────────────────────────────────


def test_a_call_releases_a_limited_number_of_records() -> None:
    state = taken(0, 59)
    assert [state.expire(LIMITS.lock_ms, 25) for _ in range(4)] == [25, 25, 10, 0]
    assert state.next_available() == 0


def test_locks_run_out_in_order_after_the_lock_time_was_shortened() -> None:
    state = taken(0, 4)
    state.limits = replace(LIMITS, lock_ms=10)
    state.take("b", [(0, 9)], 500, 0)
    assert state.due_ms == LIMITS.lock_ms
    state.settle("b", [accept(9)], LIMITS.lock_ms - 1)
    assert state.expire(LIMITS.lock_ms, 100) == 9


def test_a_member_that_leaves_releases_what_it_holds_and_the_count_stays() -> None:
    state = taken(0, 4)
    state.take("b", [(0, 9)], 500, 0)
    state.drop("a", 0)
    assert state.holders() == {"b": 5}
    assert state.take("c", [(0, 9)], 500, 0) == [Acquired(0, 4, 2)]


def test_a_view_counts_by_state() -> None:
    state = taken(0, 9)
    state.take("b", [(10, 14)], 500, 50)
    state.settle("a", [accept(4, 6), ack(8, 8, Ack.RELEASE)], 60)
    view = state.view(100)
    assert (view.start, view.next, view.released, view.locked, view.done) == (0, 15, 1, 11, 3)
    assert (view.held_ms_max, view.holders) == (100, {"a": 6, "b": 5})
    assert partition().view(0).held_ms_max is None


# ── the start ────────────────────────────────────────────────────────────────────────────────


def test_what_the_log_no_longer_has_is_done() -> None:
    state = taken(0, 1_999, WIDE)
    state.settle("a", [ack(1_000, 1_000, Ack.RELEASE), accept(1_500)], 0)
    state.log_starts_at(1_500)
    assert (state.start, state.next, state.holders()) == (1_501, 2_000, {"a": 499})
    assert (state.next_available(), state.view(0).released) == (2_000, 0)
    state.log_starts_at(5_000)
    assert (state.start, state.next, state.due_ms) == (5_000, 5_000, None)
    state.log_starts_at(10)
    assert state.start == 5_000


def test_a_start_that_was_set_forgets_everything_else() -> None:
    store = Store()
    state = taken(0, 9)
    state.settle("a", [accept(4), ack(6, 6, Ack.RELEASE)], 0)
    store.write(state.changes())
    state.set_start(2, generation=1)
    store.write(state.changes())
    assert store.start() == StartSaved(generation=1, start=2, opened_ms=7)
    assert (len(store.values), state.holders()) == (1, {})
    assert state.take("b", [(0, 9)], 500, 0) == [Acquired(2, 9, 1)]


# ── records ──────────────────────────────────────────────────────────────────────────────────


def test_acknowledgements_in_order_write_only_the_start() -> None:
    store = Store()
    state = taken(0, 59)
    assert store.write(state.changes()) == 1
    for offset in range(60):
        state.settle("a", [accept(offset)], 0)
        assert store.write(state.changes()) == 1
    assert (store.start().start, len(store.values)) == (60, 1)


def test_chunks_below_the_start_are_deleted() -> None:
    store = Store()
    state = taken(0, 3_000, WIDE)
    state.settle("a", [ack(10, 10, Ack.RELEASE), accept(20, 3_000)], 0)
    store.write(state.changes())
    assert len(store.values) == 1 + 3 + 1
    state.settle("a", [accept(0, 9), accept(11, 19)], 0)
    state.take("b", [(10, 10)], 1, 0)
    state.settle("b", [accept(10)], 0)
    assert state.start == 3_001
    store.write(state.changes())
    assert store.done() == {}
    assert len(store.values) == 2, "the start, and the chunk that it lies in"
    assert state.view(0).done == 0


def test_what_was_locked_is_free_with_the_count_of_deliveries_that_ended() -> None:
    state = taken(0, 9)
    state.settle("a", [ack(2, 3, Ack.RELEASE), accept(6)], 0)
    state.take("a", [(0, 9)], 500, 0)
    store = Store()
    store.write(state.changes())
    again = SharePartition.restored(PLACE, GROUP, store.records(), LIMITS)
    assert (again.start, again.next, again.holders()) == (0, 7, {})
    assert again.take("b", [(0, 9)], 500, 0) == [
        Acquired(0, 1, 1),
        Acquired(2, 3, 2),
        Acquired(4, 5, 1),
        Acquired(7, 9, 1),
    ]


def test_what_others_have_written_is_left_out() -> None:
    store = Store()
    other = SharePartition(PLACE, "other", 5, LIMITS, 0)
    elsewhere = SharePartition((bytes(16), 0), GROUP, 6, LIMITS, 0)
    for state in (partition(3), other, elsewhere):
        state.take("a", [(0, 50)], 20, 0)
        state.settle("a", [accept(12)], 0)
        store.write(state.changes())
    again = SharePartition.restored(PLACE, GROUP, store.records(), LIMITS)
    assert (again.start, again.next, again.opened_ms) == (3, 13, 7)
    assert [type(from_record(record)[1]) for record in again.changes()] == []
