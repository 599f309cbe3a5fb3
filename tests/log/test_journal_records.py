"""The meaning and the encoding of a group's records, and that a snapshot is equivalent to them."""

import msgspec
import pytest
from hypothesis import given

from kafkaesque.entry import HardState, TermOpened, Voters
from kafkaesque.log.journal_records import (
    CopyKept,
    GroupForgotten,
    GroupState,
    HolesAllowed,
    JournalRecord,
    LogStarted,
    LossAllowed,
    MarksCut,
    MemoryDoubted,
    OldCopyFound,
    PeerHeard,
    RecoverySet,
    RunBegan,
    RunEnded,
    RunNamed,
    StateSaved,
    SyncedTo,
    TermMarked,
    VotersMarked,
    mark_record,
    start_of,
    start_record,
    synced_record,
)
from kafkaesque.log.segments import SyncedPoint
from tests.log.histories import histories
from tests.log.stores import THEM, US, a_start, state_dump

# The records of format 1, as docs/reference/format-journal.md describes them.
WRITTEN: list[tuple[JournalRecord, list[object]]] = [
    (
        start_record("g", a_start(10, 2, 3, THEM), is_reset=True),
        [1, "g", 10, 2, 3, [1, 4], [5], 0, True, 0],
    ),
    (StateSaved(group="g", term=7, vote=None), [2, "g", 7, None]),
    (TermMarked(group="g", index=12, term=7), [3, "g", 12, 7]),
    (mark_record("g", 13, 7, THEM), [4, "g", 13, 7, [1, 4], [5], 0]),
    (MarksCut(group="g", index=13), [5, "g", 13]),
    (
        SyncedTo(group="g", segment_base=0, position=99, end_offset=10, checksum=7),
        [6, "g", 0, 99, 10, 7],
    ),
    (RecoverySet(group="g", is_recovering=True), [7, "g", True]),
    (GroupForgotten(group="g"), [8, "g"]),
    (HolesAllowed(group="g"), [9, "g"]),
    (LossAllowed(group="g", is_allowed=True), [10, "g", True]),
    (RunBegan(group="", boot="a"), [11, "", "a"]),
    (RunEnded(group=""), [12, ""]),
    (PeerHeard(group="", node=2, run=3, session=4, round=5), [13, "", 2, 3, 4, 5]),
    (RunNamed(group="", run=3, session=4), [14, "", 3, 4]),
    (OldCopyFound(group="", peer=2, run=3, round=4, term=5), [15, "", 2, 3, 4, 5]),
    (CopyKept(group="orders-0", offset=7), [16, "orders-0", 7]),
    (MemoryDoubted(group="", term=5), [17, "", 5]),
]


@pytest.mark.parametrize(("record", "array"), WRITTEN, ids=lambda v: type(v).__name__)
def test_a_record_is_an_array_that_starts_with_its_tag(
    record: JournalRecord, array: list[object]
) -> None:
    data = msgspec.msgpack.encode(record)
    assert msgspec.msgpack.decode(data) == array
    assert msgspec.msgpack.decode(data, type=JournalRecord) == record


def test_there_is_an_example_of_every_kind_of_record() -> None:
    assert {type(record) for record, _ in WRITTEN} == set(JournalRecord.__args__)


@pytest.mark.requirement("LOG-4")
@given(histories(groups=("a",)))
def test_a_snapshot_gives_the_same_state_as_the_whole_history(
    history: list[JournalRecord],
) -> None:
    state: GroupState | None = None
    for record in history:
        if isinstance(record, GroupForgotten):
            state = None
            continue
        if state is None:
            assert isinstance(record, LogStarted)
            state = GroupState(start_of(record))
        state.apply(record)
    if state is None:
        return
    first, *rest = state.snapshot("a")
    assert isinstance(first, LogStarted)
    rebuilt = GroupState(start_of(first))
    for record in [first, *rest]:
        rebuilt.apply(record)
    assert state_dump(rebuilt) == state_dump(state)
    assert rebuilt.snapshot("a") == [first, *rest]


def test_a_new_group_has_no_term_no_vote_and_nothing_synced() -> None:
    state = GroupState(a_start())
    assert state.hard_state == HardState(term=0, vote=None)
    assert state.synced is None
    assert not state.is_recovering
    assert not state.is_reset


def test_a_reset_forgets_marks_and_the_synced_point_but_keeps_term_and_vote() -> None:
    state = GroupState(a_start())
    state.apply(StateSaved(group="g", term=4, vote=2))
    state.apply(TermMarked(group="g", index=0, term=4))
    state.apply(RecoverySet(group="g", is_recovering=True))
    state.apply(SyncedTo(group="g", segment_base=0, position=50, end_offset=5))
    state.apply(start_record("g", a_start(100, 3, 4), is_reset=True))
    assert state.marks.all() == ()
    assert state.synced is None
    assert state.is_reset
    assert state.is_recovering
    assert state.hard_state == HardState(term=4, vote=2)
    state.apply(start_record("g", a_start(100, 3, 4), is_reset=False))
    assert not state.is_reset


def test_a_start_without_reset_trims_the_marks_and_keeps_the_synced_point() -> None:
    state = GroupState(a_start())
    state.apply(TermMarked(group="g", index=0, term=1))
    state.apply(TermMarked(group="g", index=6, term=2))
    point = SyncedPoint(segment_base=0, position=50, end_offset=9)
    state.apply(synced_record("g", point))
    start = state.marks.start_at(5, visible_offset=5)
    state.apply(start_record("g", start, is_reset=False))
    assert [mark.index for mark in state.marks.all()] == [6]
    assert state.marks.start.prev_term == 1
    assert state.synced == point


def test_a_term_that_decreases_is_refused() -> None:
    state = GroupState(a_start())
    state.apply(StateSaved(group="g", term=4, vote=2))
    with pytest.raises(AssertionError, match="never go back"):
        state.apply(StateSaved(group="g", term=3, vote=None))


def test_marks_and_records_convert_into_each_other() -> None:
    state = GroupState(a_start())
    payloads: list[TermOpened | Voters] = [TermOpened(), US, THEM]
    for index, payload in enumerate(payloads):
        state.apply(mark_record("g", index, 1, payload))
    assert [mark.payload for mark in state.marks.all()] == payloads
    assert isinstance(mark_record("g", 0, 1, US), VotersMarked)
