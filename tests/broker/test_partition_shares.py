"""The share groups of one partition: what is handed out, written, answered and repeated.

The state's coordinator is a real machine behind a desk where questions lie until the test answers.
"""

from typing import Any

import pytest

from kafkaesque.broker.queues import partition_shares
from kafkaesque.broker.queues.broker_shares import BrokerShares
from kafkaesque.broker.queues.partition_shares import RETRY_MS, Stage
from kafkaesque.entry import Voters
from kafkaesque.errors import NotCoordinator, NotLeader, OutcomeUnknown
from kafkaesque.machines.queues.queue_errors import (
    FencedTerm,
    InvalidAcknowledgement,
    InvalidRecordState,
    ShareStateFull,
)
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    DeleteShareGroup,
    SetStart,
    WriteState,
)
from kafkaesque.machines.queues.share_states import ShareStateLimits
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.machines.transactions.transaction_questions import Marker
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.partitions import build
from tests.broker.share_houses import (
    GROUP,
    LARGE,
    LOCK_MS,
    ME,
    PLACE,
    YOU,
    House,
    Outcome,
    acquired,
)
from tests.log.logs import START_MS

# ── adopting and opening ─────────────────────────────────────────────────────────────────────


def test_nothing_is_handed_out_before_the_state_is_adopted_and_the_start_is_written() -> None:
    house = House()
    house.desk.is_open = False
    house.shares = house.new_shares()
    house.write(3)
    assert house.take() == []
    house.wait()
    house.desk.answer()
    assert house.shares.stage is Stage.SERVING
    assert house.woken == 1
    assert house.take() == []
    assert house.desk.kinds() == [WriteState]
    assert house.desk.start() is None
    house.wait()
    house.desk.answer()
    assert (house.woken, house.desk.start()) == (1, 0)
    assert house.take() == [(0, 2, 1)]


def test_an_adoption_without_an_answer_is_repeated_after_a_while() -> None:
    house = House()
    house.desk.is_open = False
    house.shares = house.new_shares()
    house.desk.refuse(NotCoordinator("away"))
    house.pass_ms(RETRY_MS - 1)
    assert house.desk.questions == []
    house.pass_ms(1)
    assert house.desk.kinds() == [Adopt]
    house.pass_ms(10 * RETRY_MS)
    assert len(house.desk.questions) == 1, "one question at a time"
    house.desk.answer()
    assert house.shares.stage is Stage.SERVING


def test_an_opening_without_an_answer_is_repeated() -> None:
    house = House()
    house.write(1)
    house.desk.is_open = False
    assert house.take() == []
    house.desk.lose(is_done=True)
    assert house.take() == []
    house.pass_ms(RETRY_MS)
    house.desk.lose(is_done=False)
    house.pass_ms(RETRY_MS)
    house.desk.answer()
    assert house.take() == [(0, 0, 1)]


def test_a_group_that_reads_the_newest_starts_at_the_end() -> None:
    house = House()
    house.texts.clear()
    house.write(3)
    assert house.take() == []
    house.write(2)
    assert house.take() == [(3, 4, 1)]
    assert house.desk.start() == 3


def test_a_group_that_reads_by_duration_starts_at_that_time() -> None:
    house = House()
    house.send(build(b"old", at_ms=START_MS))
    house.send(build(b"young", at_ms=START_MS + 60_000))
    house.clock.ms = START_MS + 61_000
    house.texts[GROUP] = {"share.auto.offset.reset": "by_duration:PT10S"}
    assert house.take() == [(1, 1, 1)]
    house.texts["late"] = {"share.auto.offset.reset": "by_duration:PT0.5S"}
    assert house.take(group="late") == []
    assert house.desk.start("late") == 2
    house.texts["early"] = {"share.auto.offset.reset": "by_duration:P999999999D"}
    assert house.take(group="early") == [(0, 1, 1)]


def test_a_new_leader_goes_on_where_the_old_one_had_written() -> None:
    house = House()
    house.write(6)
    house.take()
    assert house.settle(0, 1) == [None]
    assert house.settle(4, 4) == [None]
    assert house.settle(5, 5, Ack.RELEASE) == [None]
    house.crash_and_start(CrashPolicy.KEEP_ALL)
    old = house.shares
    house.desk.is_open = False
    house.shares = house.new_shares()
    ((asked, _),) = house.desk.questions
    assert isinstance(asked, Adopt)
    assert (asked.term, asked.first) == (old.term + 1, 6)
    house.desk.is_open = True
    house.desk.answer()
    assert house.take() == [(2, 3, 1), (5, 5, 2)]


def test_a_leader_of_an_older_term_is_closed_and_tells_those_who_wait() -> None:
    house = House()
    house.write(2)
    house.take()
    assert house.desk.decide(
        Adopt(place=PLACE, term=house.shares.term + 1, serial=1, since=0, first=2)
    )
    house.wait()
    (outcome,) = house.settle(0, 0)
    assert isinstance(outcome, OutcomeUnknown), "an earlier try may have been written"
    assert house.shares.stage is Stage.CLOSED
    assert house.woken == 1
    assert not house.shares.is_current
    with pytest.raises(NotLeader):
        house.take()
    with pytest.raises(InvalidRecordState):
        house.settle(1, 1)


def test_an_adoption_in_an_older_term_closes() -> None:
    house = House()
    house.desk.decide(Adopt(place=PLACE, term=house.shares.term + 1, serial=1, since=0, first=0))
    shares = house.new_shares()
    assert shares.stage is Stage.CLOSED


# ── writing ──────────────────────────────────────────────────────────────────────────────────


def test_an_acknowledgement_is_answered_when_it_is_written() -> None:
    house = House()
    house.write(4)
    house.take()
    house.desk.is_open = False
    outcomes = house.settle(0, 1)
    assert outcomes == []
    assert house.desk.start() == 0
    house.desk.answer()
    assert outcomes == [None]
    assert house.desk.start() == 2


def test_one_write_is_in_flight_and_later_changes_are_gathered() -> None:
    house = House()
    house.write(6)
    house.take()
    house.desk.is_open = False
    outcomes = [house.settle(number, number) for number in range(4)]
    assert len(house.desk.questions) == 1
    house.desk.answer()
    assert outcomes == [[None], [], [], []]
    assert len(house.desk.questions) == 1
    house.desk.answer()
    assert outcomes == [[None]] * 4
    assert house.desk.questions == []
    assert house.desk.start() == 4


def test_writing_goes_on_once_when_an_answer_brings_more_to_write() -> None:
    """The waiting member settles at once what is next, within the answer."""
    house = House()
    house.write(4)
    house.take()
    house.desk.is_open = False
    later: list[Outcome] = []

    def settle_more(error: Outcome) -> None:
        house.shares.settle(GROUP, ME, [AckBatch(2, 2, (Ack.ACCEPT,))], later.append)

    house.shares.settle(GROUP, ME, [AckBatch(0, 0, (Ack.ACCEPT,))], settle_more)
    gathered = house.settle(1, 1)
    house.desk.answer()
    assert len(house.desk.questions) == 1
    assert later == gathered == []
    while house.desk.questions:
        house.desk.answer()
    assert later == gathered == [None]
    assert house.desk.start() == 3


@pytest.mark.parametrize("is_done", [True, False])
def test_an_unconfirmed_write_is_repeated_with_newer_values(is_done: bool) -> None:
    house = House()
    house.write(6)
    house.take()
    house.desk.is_open = False
    first = house.settle(1, 1)
    house.desk.lose(is_done=is_done)
    assert first == []
    second = house.settle(0, 0)
    assert house.desk.kinds() == [], "it waits a little before it adopts the state again"
    house.pass_ms(RETRY_MS)
    assert house.desk.kinds() == [Adopt]
    house.desk.lose(is_done=False)
    house.pass_ms(RETRY_MS)
    house.desk.answer()
    assert house.desk.kinds() == [WriteState]
    assert first == second == []
    house.desk.answer()
    assert first == second == [None]
    assert house.desk.start() == 2


def test_an_acknowledgement_that_is_repeated_is_not_confirmed_before_the_first_is_written() -> None:
    house = House()
    house.write(3)
    house.take()
    house.desk.is_open = False
    first = house.settle(0, 0)
    house.desk.lose(is_done=False)
    again = house.settle(0, 0)  # it is below the start by now: nothing is left to be changed
    house.pass_ms(RETRY_MS)
    house.desk.answer()  # it adopts the state again
    assert again == []
    house.desk.answer()
    assert first == again == [None]
    assert house.desk.start() == 1


def test_nothing_settled_is_handed_out_while_its_write_has_no_outcome() -> None:
    house = House()
    house.write(3)
    house.take()
    house.desk.is_open = False
    house.settle(0, 1)
    house.desk.lose(is_done=False)
    house.pass_ms(2 * LOCK_MS)
    assert house.take(member=YOU) == [(2, 2, 2)]


def test_too_many_waiting_acknowledgements_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_shares, "ACKS_WAITING_MAX", 3)
    house = House()
    house.write(9)
    house.take()
    house.desk.is_open = False
    outcomes = [house.settle(number, number) for number in range(3)]
    with pytest.raises(NotCoordinator):
        house.settle(3, 3)
    while house.desk.questions:
        house.desk.answer()
    assert outcomes == [[None]] * 3
    assert house.desk.start() == 3, "what was refused has changed nothing"
    house.desk.is_open = True
    assert house.settle(3, 3) == [None]


def test_what_is_wrong_in_an_acknowledgement_changes_nothing() -> None:
    house = House()
    house.write(4)
    house.take(2)
    with pytest.raises(InvalidAcknowledgement):
        house.settle(1, 2)
    with pytest.raises(InvalidRecordState):
        house.settle(0, 1, member=YOU)
    with pytest.raises(InvalidRecordState):
        house.settle(0, 1, group="nobody")
    assert house.settle(0, 1) == [None]
    assert house.settle(0, 1, member=YOU) == [None], "below the start it was done before"


def test_what_reaches_below_the_start_counts_from_there() -> None:
    house = House()
    house.write(6)
    house.take()
    assert house.settle(0, 1) == [None]
    outcomes: list[Outcome] = []
    kinds = (Ack.REJECT, Ack.RELEASE, Ack.RELEASE, Ack.ACCEPT)
    for batch in (AckBatch(0, 3, kinds), AckBatch(0, 3, kinds[:1])):
        with pytest.raises(InvalidRecordState):
            house.shares.settle(GROUP, YOU, [batch], outcomes.append)
    house.shares.settle(GROUP, ME, [AckBatch(0, 3, kinds)], outcomes.append)
    house.shares.settle(GROUP, ME, [AckBatch(0, 1, kinds[:2])], outcomes.append)
    assert outcomes == [None, None]
    assert house.take() == [(2, 2, 2)]
    assert house.settle(1, 2) == [None]
    assert house.desk.start() == 4


def test_closing_answers_all_who_wait_once() -> None:
    house = House()
    house.write(4)
    house.take()
    house.desk.is_open = False
    outcomes = [house.settle(0, 0), house.settle(1, 1)]
    house.shares.close()
    house.shares.close()
    assert [len(some) for some in outcomes] == [1, 1]
    assert [type(some[0]) for some in outcomes] == [OutcomeUnknown, NotLeader]
    house.desk.answer()  # too late
    assert [len(some) for some in outcomes] == [1, 1]


# ── an administrator, and full state ─────────────────────────────────────────────────────────


def a_house_of_two() -> House:
    house = House()
    house.texts["others"] = {"share.auto.offset.reset": "earliest"}
    house.write(6)
    assert house.take() == [(0, 5, 1)]
    assert house.take(3, group="others", member=YOU) == [(0, 2, 1)]
    return house


def test_a_group_whose_start_was_set_begins_again_and_other_groups_keep_their_locks() -> None:
    house = a_house_of_two()
    house.desk.decide(SetStart(place=PLACE, group=GROUP, offset=4))
    (outcome,) = house.settle(0, 0)
    assert isinstance(outcome, OutcomeUnknown), "what the administrator said holds"
    assert house.shares.stage is Stage.SERVING
    assert house.take(member="third") == [(4, 5, 1)]
    assert house.desk.start() == 4
    assert house.take(group="others", member="third") == [(3, 5, 1)]
    assert house.settle(0, 2, group="others", member=YOU) == [None]
    assert house.desk.start("others") == 3


def test_acknowledgements_of_other_groups_outlive_a_group_that_begins_again() -> None:
    house = a_house_of_two()
    house.desk.decide(SetStart(place=PLACE, group=GROUP, offset=4))
    house.desk.is_open = False
    mine = house.settle(0, 0)
    other = house.settle(0, 0, group="others", member=YOU)
    renewed = house.settle(1, 1, Ack.RENEW, group="others", member=YOU)
    house.desk.answer()
    assert house.desk.kinds() == [Adopt]
    meanwhile = house.settle(1, 1, group="others", member=YOU)
    house.pass_ms(RETRY_MS)
    while house.desk.questions:
        house.desk.answer()
    assert isinstance(mine[0], OutcomeUnknown)
    assert other == renewed == meanwhile == [None]
    assert house.desk.start("others") == 2


def test_a_deleted_group_opens_again() -> None:
    house = a_house_of_two()
    house.desk.decide(DeleteShareGroup(group=GROUP))
    assert house.desk.start() is None
    house.settle(2, 2)  # in the middle: the start is not written
    assert house.take(member="third") == [(0, 5, 1)]
    assert house.desk.start() == 0
    assert house.take(group="others", member="third") == [(3, 5, 1)]


def test_a_group_for_which_there_is_no_room_is_refused_and_the_others_go_on() -> None:
    house = House(ShareStateLimits(groups_max=1))
    house.write(3)
    house.take()
    house.wait()
    with pytest.raises(ShareStateFull):
        house.take(group="one too many")
        house.take(group="one too many")
    assert house.woken == 1
    assert house.settle(0, 1) == [None]
    assert house.desk.start() == 2
    house.pass_ms(RETRY_MS)
    house.take(group="one too many")
    assert [share.group for share in house.shares.groups()] == [GROUP]


def test_a_leader_that_lost_office_does_not_begin_again() -> None:
    house = a_house_of_two()
    house.desk.decide(SetStart(place=PLACE, group=GROUP, offset=4))
    house.desk.is_open = False
    outcomes = house.settle(0, 0, group=GROUP)
    other = house.settle(0, 0, group="others", member=YOU)
    house.partition.leave()
    house.desk.answer()
    assert house.desk.questions == []
    assert house.shares.stage is Stage.CLOSED
    assert [type(one) for one in (*outcomes, *other)] == [OutcomeUnknown, NotLeader]


# ── time ─────────────────────────────────────────────────────────────────────────────────────


def test_locks_that_run_out_wake_those_who_wait() -> None:
    house = House()
    house.write(3)
    house.take()
    assert house.take(member=YOU) == []
    house.wait()
    house.pass_ms(LOCK_MS - 1)
    assert house.woken == 0
    with pytest.raises(InvalidRecordState):
        house.settle(0, 0, member=YOU)
    house.pass_ms(1)
    assert house.woken == 1
    assert house.take(member=YOU) == [(0, 2, 2)]
    with pytest.raises(InvalidRecordState):
        house.settle(0, 0)


def test_a_lock_that_has_run_out_cannot_be_settled_even_before_the_tick() -> None:
    house = House()
    house.write(1)
    house.take()
    house.clock.ms += LOCK_MS
    with pytest.raises(InvalidRecordState):
        house.settle(0, 0)


def test_few_locks_expire_in_one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_shares, "EXPIRED_MAX", 4)
    house = House()
    house.write(6)
    house.take()
    house.pass_ms(LOCK_MS)
    assert house.take(member=YOU) == [(0, 3, 2)]
    house.pass_ms(0)
    assert house.take(member=YOU) == [(4, 5, 2)]


def test_deliveries_come_to_an_end() -> None:
    house = House()
    house.set(share_delivery_count_limit=2)
    house.write(2)
    assert house.take() == [(0, 1, 1)]
    house.shares.release(GROUP, ME)
    assert house.take() == [(0, 0, 2)], "the last attempt is made alone"
    assert house.settle(0, 0, Ack.RELEASE) == [None]
    assert house.take() == [(1, 1, 2)]
    house.shares.release(GROUP, ME)
    assert house.take() == []
    assert house.desk.start() == 2


def test_a_release_wakes_and_what_the_member_does_not_hold_stays() -> None:
    house = House()
    house.write(4)
    house.take(2)
    house.take(2, member=YOU)
    house.wait()
    house.shares.release(GROUP, ME)
    house.shares.release("nobody", ME)
    assert house.woken == 1
    assert house.take(member="third") == [(0, 1, 2)]


def test_a_waker_may_be_forgotten() -> None:
    house = House()
    calls: list[int] = []
    callback = lambda: calls.append(1)  # noqa: E731
    house.shares.when_more(callback)
    house.shares.forget(callback)
    house.shares.forget(callback)
    house.shares.close()
    assert calls == []


# ── what is handed out ───────────────────────────────────────────────────────────────────────


def test_limits_on_records_and_bytes() -> None:
    house = House()
    house.write(5, batches=4)
    size = len(build(*[b"v"] * 5))
    assert house.take(3) == [(0, 2, 1)]
    assert house.take(bytes_max=1) == [(3, 4, 1)], "a batch is given whatever its size"
    assert house.take(bytes_max=2 * size) == [(5, 14, 1)]
    assert house.take(0) == []
    assert house.take() == [(15, 19, 1)]


def test_a_full_window_waits_until_its_start_moves() -> None:
    house = House()
    house.set(share_partition_max_record_locks=100)
    house.write(50, batches=5)
    assert house.take(1000) == [(0, 99, 1)]
    assert house.settle(1, 99) == [None]
    assert house.take(1000) == [], "the first is not done: the window does not move"
    house.wait()
    assert house.settle(0, 0) == [None]
    assert house.woken == 1
    assert house.take(1000) == [(100, 199, 1)]


def test_what_is_released_in_a_full_window_can_be_taken() -> None:
    house = House()
    house.set(share_partition_max_record_locks=100)
    house.write(50, batches=5)
    house.take(1000)
    assert house.settle(40, 44, Ack.RELEASE) == [None]
    assert house.take(1000, member=YOU) == [(40, 44, 2)]


def test_deleted_records_are_done() -> None:
    house = House()
    house.write(5, batches=4)
    assert house.take(12) == [(0, 11, 1)]
    assert house.partition.trim(10)
    house.after_event()
    assert house.take() == [(12, 19, 1)]
    assert house.desk.start() == 10
    assert house.settle(3, 11) == [None], "those below the start were done before"
    assert house.desk.start() == 12


def transaction(sequence: int, count: int) -> bytes:
    records = [
        Record(offset=place, timestamp_ms=START_MS, key=None, value=b"t") for place in range(count)
    ]
    stamp = ProducerStamp(producer_id=7, producer_epoch=0, base_sequence=sequence)
    return bytes(build_batch(records, producer=stamp, traits=BatchTraits(is_transactional=True)))


def begin(house: House, sequence: int, count: int, number: int) -> None:
    house.partition.append(
        memoryview(transaction(sequence, count)), lambda _: None, verified=number
    )
    house.after_event()


def end(house: House, number: int, *, is_commit: bool) -> None:
    marker = Marker(producer_id=7, epoch=0, is_commit=is_commit, coordinator_term=1, number=number)
    house.partition.end_transaction(marker, lambda _: None)
    house.after_event()


def test_committed_readers_get_nothing_of_open_and_aborted_transactions() -> None:
    house = House()
    house.set(share_isolation_level="read_committed")
    house.write(2)
    begin(house, 0, 3, 1)
    house.write(1)
    assert house.take() == [(0, 1, 1)]
    assert house.take() == []
    end(house, 1, is_commit=False)
    begin(house, 3, 2, 2)
    assert house.take() == [(5, 5, 1)]
    end(house, 2, is_commit=True)
    assert house.take() == [(7, 8, 1)]
    assert house.settle(0, 1) == [None]
    assert house.settle(5, 5) == [None]
    assert house.settle(7, 8) == [None]
    assert house.take() == []
    assert house.desk.start() == 10, "markers and aborted records are done"


def test_other_readers_get_them_all_but_the_markers() -> None:
    house = House()
    begin(house, 0, 3, 1)
    assert house.take() == [(0, 2, 1)]
    end(house, 1, is_commit=False)
    begin(house, 3, 1, 2)
    assert house.take() == [(4, 4, 1)]


def test_many_markers_do_not_stop_a_group() -> None:
    house = House()
    house.set(share_isolation_level="read_committed")
    for number in range(40):
        begin(house, number, 1, number + 1)
        end(house, number + 1, is_commit=False)
    house.write(1)
    found: list[tuple[int, int, int]] = []
    for _ in range(10):
        found += house.take(bytes_max=1)
    assert found == [(80, 80, 1)]


# ── all partitions of a broker ───────────────────────────────────────────────────────────────


def test_only_a_leader_keeps_state() -> None:
    house = House(voters=Voters(voters=(1, 2, 3)))
    desk: Any = house.desk
    house.desk.coordinators = type("None", (), {"tick": staticmethod(lambda: None)})  # type: ignore[attr-defined]
    shares = BrokerShares(desk, house.clock, lambda: house.texts)
    with pytest.raises(NotLeader):
        shares.of(PLACE, house.partition)
    assert house.desk.questions == []
    assert shares.partitions == ()
    house.desk.is_open = False
    house.elect()
    found = shares.of(PLACE, house.partition)
    assert house.desk.kinds() == [Adopt]
    assert shares.of(PLACE, house.partition) is found
    house.desk.refuse(FencedTerm("another leads"))
    with pytest.raises(NotLeader):
        shares.of(PLACE, house.partition)
    assert house.desk.questions == [], "a fenced leader does not ask again and again"
    shares.tick()
    assert shares.partitions == ()


def test_a_batch_is_not_split_unless_its_member_insists() -> None:
    house = House()
    house.write(4, batches=3)
    whole = house.shares.take(GROUP, ME, 5, LARGE, whole_batches=True)
    assert acquired(whole) == [(0, 7, 1)]
    assert house.take(2, member=YOU) == [(8, 9, 1)]


def test_no_more_is_read_than_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_shares, "READ_BYTES_MIN", 100)
    house = House()
    house.write(1, batches=200)
    house.take(1)  # from here on it knows how large a record is
    wanted: list[int] = []
    read = house.partition.read

    def noted(offset: int, bytes_max: int, **others: Any) -> memoryview:
        wanted.append(bytes_max)
        return read(offset, bytes_max, **others)

    monkeypatch.setattr(house.partition, "read", noted)
    assert house.take(10) == [(1, 10, 1)]
    (bytes_max,) = wanted
    assert bytes_max < house.partition.size_bytes / 4
