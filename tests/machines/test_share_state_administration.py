"""The state of share groups as its coordinator keeps it, and what administrators do with it."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from kafkaesque.machines.decision import Now
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.queue_errors import FencedGeneration, FencedTerm, ShareStateFull
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    DeleteShareGroup,
    SetStart,
    ShareCommand,
    ShareOffsets,
    ShareStart,
    WriteState,
)
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_questions import ShareAnswer
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from kafkaesque.machines.queues.share_values import Ack, AckBatch, ShareLimits

TOPIC, OTHER_TOPIC = bytes(range(16)), bytes(16)
HERE: Place = (TOPIC, 0)
THERE: Place = (TOPIC, 1)
ELSEWHERE: Place = (OTHER_TOPIC, 0)
GROUP = "workers"
WALL_MS = 1_000_000


class Desk:
    """A machine whose decisions are kept at once."""

    def __init__(self, limits: ShareStateLimits | None = None) -> None:
        self.machine = ShareStates(limits or ShareStateLimits())
        self.wall_ms = WALL_MS

    def do(self, command: ShareCommand) -> Any:
        """Decide; raises refusals. Answers come as they do from another broker."""
        answers: list[Any] = []
        decision = self.machine.decide(command, answers.append, Now(0, self.wall_ms, None))
        self.keep(decision.records)
        for to, answer in decision.replies:
            to(answer)
        return msgspec.msgpack.decode(msgspec.msgpack.encode(answers[0]), type=ShareAnswer)

    def keep(self, records: Iterable[MachineRecord]) -> None:
        for record in records:
            self.machine.apply(record)

    def starts(self, group: str = GROUP) -> dict[Place, int]:
        told = self.do(ShareOffsets(group=group))
        return {place: start.offset for place, start in told.starts.items()}

    def written(self) -> list[bytes]:
        return [record.key for record in self.machine.records()]


class Leader:
    """The leader of a partition, with one group."""

    def __init__(
        self,
        desk: Desk,
        place: Place = HERE,
        group: str = GROUP,
        *,
        term: int = 1,
        first: int = 0,
    ) -> None:
        self.desk, self.place, self.group, self.term = desk, place, group, term
        self.share = SharePartition(place, group, 0, ShareLimits(), opened_ms=WALL_MS)
        desk.do(Adopt(place=place, term=term, serial=1, since=0, first=first))

    def open(self) -> "Leader":
        self.write(opens=True)
        return self

    def write(self, *, opens: bool = False) -> None:
        command = WriteState(
            place=self.place,
            term=self.term,
            serial=1,
            generations={self.group: self.share.generation},
            records=tuple(self.share.changes()),
            opens=(self.group,) if opens else (),
        )
        self.desk.do(command)

    def accept(self, first: int, last: int) -> None:
        """Let a member take and accept these; all from the start up to them are taken."""
        self.share.take("me", [(self.share.next, last)], 5000, 0)
        self.share.settle("me", [AckBatch(first, last, (Ack.ACCEPT,))], 0)
        self.write()


def test_a_start_says_what_is_done_above_it_and_by_whom() -> None:
    desk = Desk()
    leader = Leader(desk, term=3).open()
    leader.accept(0, 1)
    leader.accept(5, 8)
    leader.accept(1100, 1101)
    told = desk.do(ShareOffsets(group=GROUP))
    assert told.starts == {HERE: ShareStart(offset=2, done=6, term=3)}
    leader.accept(2, 4)
    assert desk.do(ShareOffsets(group=GROUP)).starts == {
        HERE: ShareStart(offset=9, done=2, term=3)
    }, "what is below the start is not counted"


def test_starts_are_told_of_the_partitions_that_are_asked_for() -> None:
    desk = Desk()
    Leader(desk).open()
    Leader(desk, THERE).open()
    Leader(desk, ELSEWHERE, "others").open()
    assert desk.starts() == {HERE: 0, THERE: 0}
    told = desk.do(ShareOffsets(group=GROUP, places=(THERE, ELSEWHERE, (OTHER_TOPIC, 7))))
    assert set(told.starts) == {THERE}


def test_a_start_that_is_set_leaves_nothing_else_and_fences_the_leader() -> None:
    desk = Desk()
    leader = Leader(desk).open()
    leader.accept(5, 8)
    desk.do(SetStart(place=HERE, group=GROUP, offset=4))
    assert desk.do(ShareOffsets(group=GROUP)).starts == {HERE: ShareStart(offset=4, done=0, term=1)}
    with pytest.raises(FencedGeneration):
        leader.accept(0, 4)
    assert desk.starts() == {HERE: 4}


def test_a_start_can_be_set_before_any_leader_came() -> None:
    desk = Desk()
    desk.do(SetStart(place=HERE, group=GROUP, offset=4))
    assert desk.do(ShareOffsets(group=GROUP)).starts == {HERE: ShareStart(offset=4, done=0, term=0)}
    with pytest.raises(FencedGeneration):
        Leader(desk, term=2, first=20).open()
    assert desk.starts() == {HERE: 4}


def test_a_leader_cannot_go_on_with_a_group_that_was_deleted() -> None:
    desk = Desk()
    leader = Leader(desk).open()
    desk.do(DeleteShareGroup(group=GROUP))
    with pytest.raises(FencedGeneration):
        leader.accept(0, 4)  # this writes a start, as an opening does
    assert desk.starts() == {}
    Leader(desk).open()
    assert desk.starts() == {HERE: 0}


def test_a_group_that_is_deleted_and_set_again_has_a_generation_of_its_own() -> None:
    desk = Desk()
    desk.do(SetStart(place=HERE, group=GROUP, offset=0))
    leader = Leader(desk)
    records = desk.do(Adopt(place=HERE, term=1, serial=1, since=0, first=0)).records
    leader.share = SharePartition.restored(HERE, GROUP, records, ShareLimits())
    desk.do(DeleteShareGroup(group=GROUP))
    desk.wall_ms += 1
    desk.do(SetStart(place=HERE, group=GROUP, offset=7))
    with pytest.raises(FencedGeneration):
        leader.accept(0, 4)
    assert desk.starts() == {HERE: 7}


def test_a_group_is_deleted_everywhere_or_in_some_partitions() -> None:
    desk = Desk()
    for place in (HERE, THERE, ELSEWHERE):
        Leader(desk, place).open().accept(5, 8)
        Leader(desk, place, "others").open()
    told = desk.do(DeleteShareGroup(group=GROUP, places=(HERE, (OTHER_TOPIC, 7))))
    assert told.places == (HERE,)
    assert desk.starts() == {THERE: 0, ELSEWHERE: 0}
    assert desk.do(DeleteShareGroup(group=GROUP, places=(HERE,))).places == ()
    assert set(desk.do(DeleteShareGroup(group=GROUP)).places) == {THERE, ELSEWHERE}
    assert desk.do(DeleteShareGroup(group=GROUP)).places == (), "it may be repeated"
    assert not any(GROUP.encode() in key for key in desk.written())
    assert len(desk.starts("others")) == 3


def test_the_start_of_a_group_is_deleted_last() -> None:
    desk = Desk()
    Leader(desk).open().accept(5, 8)
    decision = desk.machine.delete(DeleteShareGroup(group=GROUP), lambda _: None)
    assert len(decision.records) == 2
    for cut in range(3):
        rest = Desk()
        rest.keep(desk.machine.records())
        rest.keep(decision.records[:cut])
        assert (rest.starts() == {}) is (cut == 2)
        told = rest.do(DeleteShareGroup(group=GROUP))
        assert told.places == (() if cut == 2 else (HERE,)), "what a crash has cut is done again"
        assert rest.starts() == {}


def test_a_deleted_topic_leaves_nothing() -> None:
    desk = Desk()
    leader = Leader(desk).open()
    Leader(desk, THERE, "others").open()
    Leader(desk, ELSEWHERE).open()
    desk.keep(desk.machine.forget_topic(TOPIC).records)
    assert desk.starts() == {ELSEWHERE: 0}
    assert not any(TOPIC in key for key in desk.written())
    with pytest.raises(FencedTerm):
        leader.accept(0, 4)
    desk.keep(desk.machine.forget_topic(OTHER_TOPIC).records)
    assert desk.written() == []
    assert desk.machine.state_bytes == 0


def test_a_start_is_set_only_where_there_is_room_for_the_group() -> None:
    desk = Desk(ShareStateLimits(groups_max=1))
    Leader(desk).open()
    with pytest.raises(ShareStateFull):
        desk.do(SetStart(place=HERE, group="others", offset=4))
    desk.do(SetStart(place=HERE, group=GROUP, offset=4))
    assert desk.starts() == {HERE: 4}
