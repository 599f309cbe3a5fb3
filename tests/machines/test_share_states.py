"""Who may write the state of share groups, and what of it a new leader gets."""

import pytest

from kafkaesque.errors import NewerFormat
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.queue_errors import (
    FencedGeneration,
    FencedTerm,
    InvalidShareState,
    ShareStateFull,
)
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    DeleteShareGroup,
    SetStart,
    ShareGroupDeleted,
    ShareOffsets,
    ShareStarts,
    StartSet,
    WriteState,
    Written,
)
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_records import (
    AdoptedKey,
    AdoptedSaved,
    ChunkKey,
    ChunkSaved,
    CountRun,
    CountsKey,
    CountsSaved,
    StartKey,
    StartSaved,
    from_record,
    to_record,
)
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from kafkaesque.machines.queues.share_values import Ack
from tests.machines.share_desk import GROUP, LIMITS, PLACE, Store, accept, ack, partition
from tests.machines.share_state_desk import NOW, WALL_MS, Desk

OTHER_PLACE = (bytes(16), 0)


def opened(desk: Desk, group: str = GROUP, term: int = 1) -> SharePartition:
    """Return a group that took 0 to 59, of which 10 and 30 are done and 20 was released."""
    desk.adopt(term, 0)
    state = SharePartition(PLACE, group, 0, LIMITS, 7)
    state.take("a", [(0, 99)], 500, 0)
    state.settle("a", [accept(10), ack(20, 20, Ack.RELEASE), ack(30, 30, Ack.REJECT)], 0)
    assert isinstance(desk.write(state, term), Written)
    return state


def saved(records: tuple[MachineRecord, ...]) -> Store:
    store = Store()
    store.write(records)
    return store


def test_a_new_leader_gets_what_the_one_before_has_written() -> None:
    desk = Desk()
    opened(desk)
    store = saved(desk.adopt(2, 100))
    assert (store.start().start, store.done(), store.counts()) == (
        0,
        {10: "", 30: "rejected"},
        {20: 1},
    )


def test_nobody_writes_who_has_not_adopted() -> None:
    desk = Desk()
    assert isinstance(desk.write(partition(), 1), FencedTerm)
    desk.adopt(1, 0)
    assert isinstance(desk.write(partition(), 2), FencedTerm)
    assert desk.starts() == {}


def test_a_leader_that_was_replaced_cannot_write() -> None:
    desk = Desk()
    state = opened(desk)
    desk.adopt(2, 100)
    state.settle("a", [accept(0, 9)], 0)
    assert isinstance(desk.write(state, 1), FencedTerm)
    assert desk.starts() == {PLACE: 0}


def test_an_older_term_cannot_adopt() -> None:
    desk = Desk()
    desk.adopt(3, 0)
    assert isinstance(desk.ask(Adopt(place=PLACE, term=2, serial=1, since=0, first=0)), FencedTerm)
    assert isinstance(desk.write(partition(), 3), Written)


def test_what_was_settled_at_offsets_that_are_used_again_is_void() -> None:
    desk = Desk()
    opened(desk)
    store = saved(desk.adopt(2, 20))
    assert (store.done(), store.counts()) == ({10: ""}, {})
    assert desk.was_one_batch
    assert sorted(desk.adopt(2, 20)) == sorted(store.records())
    state = desk.restored(2, 20)
    assert state.next == 11


def test_a_start_above_the_first_offset_of_the_term_is_lowered() -> None:
    desk = Desk()
    state = opened(desk)
    state.settle("a", [accept(0, 9), accept(11, 19)], 0)
    state.take("a", [(20, 20)], 1, 0)
    state.settle("a", [accept(20, 29), accept(31, 59)], 0)
    desk.write(state, 1)
    assert desk.starts() == {PLACE: 60}
    again = desk.restored(2, 40)
    assert (again.start, again.next) == (40, 40)
    assert desk.starts() == {PLACE: 40}


def test_state_of_many_chunks_is_void_from_the_offset_on() -> None:
    desk = Desk()
    desk.adopt(1, 0)
    state = SharePartition(PLACE, GROUP, 0, LIMITS, 7)
    state.limits = wide = type(LIMITS)(window=10_000, locks_max=10_000)
    state.take("a", [(0, 4_999)], 5_000, 0)
    state.settle("a", [accept(100, 3_000), ack(3_500, 4_500, Ack.RELEASE)], 0)
    desk.write(state, 1)
    store = saved(desk.adopt(2, 2_000))
    assert sorted(store.done()) == list(range(100, 2_000))
    assert store.counts() == {}
    assert len(store.values) == 3, "the start and two chunks"
    assert SharePartition.restored(PLACE, GROUP, store.records(), wide).next == 2_000


def test_the_same_term_adopts_again_and_loses_nothing_of_its_own() -> None:
    desk = Desk()
    state = opened(desk)
    before = len(desk.log)
    store = saved(desk.adopt(1, 0))
    assert store.done() == {10: "", 30: "rejected"}
    assert len(desk.log) == before
    state.settle("a", [accept(0)], 0)
    assert isinstance(desk.write(state, 1), Written)


def test_a_first_offset_far_away_costs_nothing() -> None:
    desk = Desk()
    opened(desk)
    assert saved(desk.adopt(2, 2**60)).done() == {10: "", 30: "rejected"}


def test_an_administrator_sets_the_start() -> None:
    desk = Desk()
    state = opened(desk)
    assert desk.ask(SetStart(place=PLACE, group=GROUP, offset=5)) == StartSet(generation=1)
    assert desk.was_one_batch
    assert desk.starts() == {PLACE: 5}
    state.settle("a", [accept(0, 9)], 0)
    assert isinstance(desk.write(state, 1), FencedGeneration)
    state.set_start(5, 1)
    assert isinstance(desk.write(state, 1), Written)
    again = desk.restored(2, 100)
    assert (again.start, again.next, again.generation, again.opened_ms) == (5, 5, 1, 7)


def test_a_start_can_be_set_before_the_group_comes() -> None:
    desk = Desk()
    assert desk.ask(SetStart(place=PLACE, group=GROUP, offset=5)) == StartSet(generation=WALL_MS)
    again = desk.restored(1, 100)
    assert (again.start, again.opened_ms) == (5, WALL_MS)


def test_a_group_that_was_deleted_is_not_brought_back_by_an_old_write() -> None:
    desk = Desk()
    state = opened(desk)
    opened(desk, "other")
    assert desk.ask(DeleteShareGroup(group=GROUP)) == ShareGroupDeleted(places=(PLACE,))
    state.settle("a", [accept(40)], 0)
    assert isinstance(desk.write(state, 1), FencedGeneration)
    assert (desk.starts(), desk.starts("other")) == ({}, {PLACE: 0})
    assert desk.ask(DeleteShareGroup(group=GROUP)) == ShareGroupDeleted(places=())


def test_a_deleted_group_loses_its_start_last() -> None:
    desk = Desk()
    opened(desk)
    before = len(desk.log)
    desk.ask(DeleteShareGroup(group=GROUP))
    gone = desk.log[before:]
    assert len(gone) == 3
    assert from_record(gone[-1]) == (StartKey(*PLACE, GROUP), None)


def test_starts_are_told_for_the_partitions_asked_for() -> None:
    desk = Desk()
    opened(desk)
    desk.ask(SetStart(place=OTHER_PLACE, group=GROUP, offset=9))
    assert desk.starts() == {PLACE: 0, OTHER_PLACE: 9}
    asked = ShareOffsets(group=GROUP, places=(OTHER_PLACE, (bytes(16), 1)))
    found = desk.ask(asked)
    assert isinstance(found, ShareStarts)
    assert {place: start.offset for place, start in found.starts.items()} == {OTHER_PLACE: 9}


def test_a_topic_that_is_gone_leaves_nothing() -> None:
    desk = Desk()
    state = opened(desk)
    desk.ask(SetStart(place=OTHER_PLACE, group=GROUP, offset=9))
    desk.carry_out(desk.machine.forget_topic(PLACE[0]))
    assert desk.starts() == {OTHER_PLACE: 9}
    state.settle("a", [accept(40)], 0)
    assert isinstance(desk.write(state, 1), FencedTerm)
    desk.carry_out(desk.machine.forget_topic(OTHER_PLACE[0]))
    assert (list(desk.machine.records()), desk.machine.state_bytes) == ([], 0)


def test_a_leader_writes_the_groups_of_its_own_partition_only() -> None:
    desk = Desk()
    desk.adopt(1, 0)
    start = StartSaved(generation=0, start=0, opened_ms=7)
    for record in (
        to_record(StartKey(*OTHER_PLACE, GROUP), start),
        to_record(StartKey(*PLACE, "other"), start),
        to_record(StartKey(*PLACE, GROUP), StartSaved(generation=1, start=0, opened_ms=7)),
        to_record(AdoptedKey(*PLACE), AdoptedSaved(term=9, first=0)),
    ):
        command = WriteState(
            place=PLACE, term=1, serial=1, generations={GROUP: 0}, records=(record,)
        )
        assert isinstance(desk.ask(command), InvalidShareState)
    assert desk.starts() == {}


def test_a_partition_has_a_limited_number_of_groups() -> None:
    desk = Desk(ShareStateLimits(groups_max=2))
    for group in ("a", "b"):
        opened(desk, group)
    assert isinstance(desk.write(SharePartition(PLACE, "c", 0, LIMITS, 7), 1), ShareStateFull)
    assert isinstance(desk.ask(SetStart(place=PLACE, group="c", offset=0)), ShareStateFull)
    assert desk.ask(SetStart(place=PLACE, group="b", offset=0)) == StartSet(generation=1)
    assert desk.ask(SetStart(place=OTHER_PLACE, group="c", offset=0)) == StartSet(
        generation=WALL_MS
    )


def test_state_grows_up_to_its_limit_and_may_always_shrink() -> None:
    desk = Desk()
    state = opened(desk)
    full = Desk(ShareStateLimits(bytes_max=1))
    for record in desk.log:
        full.machine.apply(record)
    assert full.machine.state_bytes == desk.machine.state_bytes, "what is written always applies"
    state.settle("a", [accept(50)], 0)
    assert isinstance(full.write(state, 1), ShareStateFull)
    assert isinstance(full.ask(SetStart(place=PLACE, group=GROUP, offset=0)), StartSet)


def test_the_size_of_the_state_is_that_of_its_records() -> None:
    desk = Desk()
    state = opened(desk)
    for kind in (Ack.ACCEPT, Ack.RELEASE):
        state.settle("a", [ack(40 + kind, 40 + kind, kind)], 0)
        desk.write(state, 1)
    store = saved(desk.adopt(1, 0))
    assert desk.machine.state_bytes == sum(len(k) + len(v) for k, v in store.values.items())


def test_a_snapshot_and_the_log_after_it_make_the_same_machine() -> None:
    desk = Desk()
    state = opened(desk)
    snapshot, tail = list(desk.machine.records()), len(desk.log)
    state.settle("a", [accept(0, 9), accept(40)], 0)
    desk.write(state, 1)
    desk.adopt(2, 45)
    again = ShareStates(desk.limits)
    for record in (*snapshot, *desk.log[tail:]):
        again.apply(record)
    assert sorted(again.records()) == sorted(desk.machine.records())
    assert sorted(desk.replayed().records()) == sorted(desk.machine.records())


def test_time_alone_changes_nothing() -> None:
    desk = Desk()
    opened(desk)
    assert (desk.machine.tick(NOW).records, desk.machine.expire(NOW).records) == ([], [])
    assert desk.machine.waiting() == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (AdoptedKey(*PLACE), AdoptedSaved(term=3, first=5)),
        (StartKey(*PLACE, GROUP), StartSaved(generation=1, start=2, opened_ms=3)),
        (ChunkKey(*PLACE, GROUP, 4), ChunkSaved(b"\x01", b"", b"\x01")),
        (CountsKey(*PLACE, GROUP, 4), CountsSaved((CountRun(1, 2, 3),))),
    ],
)
def test_a_record_is_read_as_it_was_written(key: object, value: object) -> None:
    record = to_record(key, value)  # type: ignore[arg-type]
    assert from_record(record) == (key, value)
    assert from_record(MachineRecord(record.key, None)) == (key, None)


def test_a_record_of_a_later_version_is_not_read() -> None:
    key, value = to_record(StartKey(*PLACE, GROUP), StartSaved(generation=0, start=0, opened_ms=0))
    assert value is not None
    for record in (
        MachineRecord(key.replace(b"\x94\x01", b"\x94\x06", 1), None),
        MachineRecord(key, value.replace(b"\x94\x01", b"\x94\x06", 1)),
        MachineRecord(key, to_record(AdoptedKey(*PLACE), AdoptedSaved(term=1, first=1)).value),
    ):
        with pytest.raises(NewerFormat):
            ShareStates(ShareStateLimits()).apply(record)


def test_the_example_of_the_page_is_what_is_written() -> None:
    place = (bytes(range(16)), 2)
    record = to_record(ChunkKey(*place, "g", 0), ChunkSaved(b"\x80\x01", b"\x80", b""))
    assert record.key == b"\x95\x02\xc4\x10" + bytes(range(16)) + b"\x02\xa1g\x00"
    assert record.value == b"\x94\x02\xc4\x02\x80\x01\xc4\x01\x80\xc4\x00"
