"""The share groups of a partition, on the node that leads it: what is written when, and by whom."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.queues.broker_shares import BrokerShares
from kafkaesque.broker.queues.partition_shares import RETRY_MS, PartitionShares, Stage
from kafkaesque.broker.queues.share_sessions import OPENING
from kafkaesque.errors import (
    KafkaesqueError,
    LogError,
    NotCoordinator,
    NotLeader,
    OutcomeUnknown,
)
from kafkaesque.machines.decision import Now
from kafkaesque.machines.queues.queue_errors import InvalidRecordState
from kafkaesque.machines.queues.share_commands import (
    Adopt,
    SetStart,
    ShareCommand,
)
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from kafkaesque.machines.queues.share_values import Acquired
from kafkaesque.topic_settings import FlushPolicy, TopicSettings
from tests.broker.partitions import PartitionNode, build
from tests.machines.share_desk import PLACE, accept

GROUP = "g"
SETTINGS = {GROUP: {"share.auto.offset.reset": "earliest"}}

Asked = tuple[ShareCommand, Callable[[Any], None]]


class Coordinator:
    """Keeps the state, as one that all brokers ask; it can keep its answers, or lose them."""

    def __init__(self) -> None:
        self.states = ShareStates(ShareStateLimits())
        self.is_holding = False
        self.waiting: list[Asked] = []
        self.asked: list[ShareCommand] = []
        self._serial = 0

    def next_serial(self) -> int:
        self._serial += 1
        return self._serial

    def ask(self, place: object, command: ShareCommand, to: Callable[[Any], None]) -> None:
        assert place == PLACE
        self.asked.append(command)
        if self.is_holding:
            self.waiting.append((command, to))
        else:
            to(self.decide(command))

    def decide(self, command: ShareCommand) -> Any:
        answers: list[Any] = []
        try:
            decision = self.states.decide(command, answers.append, Now(0, 0, None))
        except KafkaesqueError as error:
            return error
        for record in decision.records:
            self.states.apply(record)
        for to, answer in decision.replies:
            to(answer)
        return answers[0]

    def answer(self, *, is_lost: bool = False) -> None:
        """Answer all that waits, or lose the questions."""
        waiting, self.waiting = self.waiting, []
        for command, to in waiting:
            to(OutcomeUnknown("") if is_lost else self.decide(command))


class Shares:
    """A partition that leads, and what its broker hands out."""

    def __init__(self, node: PartitionNode | None = None) -> None:
        self.coordinator = Coordinator()
        self.node = node or PartitionNode()
        self.broker = self.new_broker()

    def new_broker(self) -> BrokerShares:
        coordinator: Any = self.coordinator
        coordinator.coordinators = self
        return BrokerShares(coordinator, self.node.clock, lambda: SETTINGS)

    def tick(self) -> None:
        """Play the part of this broker's own coordinators: there are none."""

    @property
    def here(self) -> PartitionShares:
        partition: Partition = self.node.partition
        return self.broker.of(PLACE, partition)

    def produce(self, *values: bytes) -> None:
        self.node.send(build(*values))

    def take(self, member: str, count: int = 10) -> list[Acquired]:
        return list(self.here.take(GROUP, member, count, 1 << 20).acquired)

    def settle(self, member: str, first: int, last: int | None = None) -> list[object]:
        answers: list[object] = []
        self.here.settle(GROUP, member, [accept(first, last)], answers.append)
        return answers

    def pass_ms(self, duration: int) -> None:
        self.node.clock.ms += duration
        self.broker.tick()

    def comes_back(self) -> None:
        """Let the partition have another leader, and then this one, without a restart."""
        self.node.crash_and_start()

    def lead_again(self, *, adopts: bool = True, loses_power: bool = True) -> None:
        """Let the leader be replaced, here by itself after a restart: it forgets all locks."""
        if loses_power:
            self.node.crash_and_start()
        else:
            self.node.stop_and_start()
        self.broker = self.new_broker()
        if adopts:
            self.take("nobody", 0)


def filled(count: int = 3) -> Shares:
    """A group that is open on a partition with some records."""
    shares = Shares()
    shares.produce(*(b"%d" % number for number in range(count)))
    shares.take("nobody", 0)
    return shares


def firsts(taken: Sequence[Acquired]) -> list[tuple[int, int]]:
    return [(one.first, one.last) for one in taken]


def test_nothing_is_handed_out_before_the_state_is_adopted() -> None:
    shares = filled()
    shares.take("a", 1)
    shares.settle("a", 0)
    shares.coordinator.is_holding = True
    shares.lead_again(adopts=False)
    assert shares.take("b") == []
    assert shares.here.stage is Stage.ADOPTING
    shares.coordinator.answer()
    shares.coordinator.is_holding = False
    assert firsts(shares.take("b")) == [(1, 2)]
    shares.settle("b", 1)
    assert shares.take("c") == []


def test_nothing_is_handed_out_before_the_start_of_a_group_is_written() -> None:
    shares = Shares()
    shares.produce(b"0")
    shares.here  # noqa: B018 - it adopts the state
    shares.coordinator.is_holding = True
    assert shares.take("a") == []
    assert shares.take("a") == []
    shares.coordinator.answer()
    assert firsts(shares.take("a")) == [(0, 0)]


def test_an_acknowledgement_is_answered_when_it_is_written() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    answers = shares.settle("a", 0)
    assert answers == []
    shares.coordinator.answer()
    assert answers == [None]


def test_acknowledgements_during_a_write_go_with_the_next_one() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    first, second = shares.settle("a", 0), shares.settle("a", 1)
    assert len(shares.coordinator.waiting) == 1
    shares.coordinator.answer()
    assert (first, second) == ([None], [])
    shares.coordinator.answer()
    assert second == [None]


def test_a_write_of_unknown_outcome_is_repeated_until_it_is_known() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    answers = shares.settle("a", 0)
    shares.coordinator.answer(is_lost=True)
    assert answers == []
    shares.coordinator.is_holding = False
    shares.pass_ms(RETRY_MS)
    assert answers == [None]
    shares.lead_again()
    assert firsts(shares.take("b")) == [(1, 2)]


def test_an_acknowledgement_after_a_refused_write_is_written_with_it() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    first = shares.settle("a", 0)
    ((_, to),) = shares.coordinator.waiting
    shares.coordinator.waiting.clear()
    shares.coordinator.is_holding = False
    to(NotCoordinator("it has moved"))
    second = shares.settle("a", 2)
    assert (first, second) == ([None], [None])
    shares.lead_again()
    assert firsts(shares.take("b")) == [(1, 1)]


def test_what_is_settled_during_a_write_of_the_same_offsets_is_written_after_it() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    shares.settle("a", 1)
    shares.settle("a", 2)
    shares.coordinator.answer()
    shares.coordinator.answer()
    shares.coordinator.is_holding = False
    shares.lead_again()
    assert firsts(shares.take("b")) == [(0, 0)]


def test_what_is_settled_while_the_outcome_of_a_write_is_unknown_is_not_forgotten() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    shares.settle("a", 1)
    late = shares.settle("a", 2)
    shares.coordinator.answer(is_lost=True)
    shares.coordinator.is_holding = False
    shares.pass_ms(RETRY_MS)
    assert late == [None]
    shares.lead_again()
    assert firsts(shares.take("b")) == [(0, 0)]


def test_a_write_that_was_given_up_and_arrives_late_undoes_nothing() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    shares.settle("a", 1)
    ((late, _),) = shares.coordinator.waiting
    shares.coordinator.answer(is_lost=True)
    shares.coordinator.is_holding = False
    assert shares.settle("a", 2) == []
    shares.pass_ms(RETRY_MS)
    shares.coordinator.decide(late)
    shares.lead_again()
    assert firsts(shares.take("b")) == [(0, 0)]


def test_after_an_unknown_outcome_the_members_keep_what_they_hold() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True
    shares.settle("a", 1)
    shares.coordinator.answer(is_lost=True)
    shares.coordinator.is_holding = False
    shares.pass_ms(RETRY_MS)
    assert shares.take("b") == []
    assert shares.settle("a", 0) == [None]


def test_only_one_write_is_on_its_way_even_if_answers_bring_acknowledgements() -> None:
    shares = filled()
    shares.take("a")
    shares.coordinator.is_holding = True

    def one_more(offset: int) -> Callable[[object], None]:
        return lambda _: shares.here.settle(GROUP, "a", [accept(offset)], ignore)

    def ignore(_: object) -> None: ...

    shares.produce(b"3", b"4")
    shares.take("a")
    shares.here.settle(GROUP, "a", [accept(0)], ignore)
    shares.here.settle(GROUP, "a", [accept(1)], one_more(3))
    shares.here.settle(GROUP, "a", [accept(2)], one_more(4))
    shares.coordinator.answer()
    shares.coordinator.answer()
    assert len(shares.coordinator.waiting) == 1


def test_a_leader_of_an_old_term_cannot_write_any_more() -> None:
    shares = filled()
    shares.take("a")
    old = shares.here
    newer = Adopt(place=PLACE, term=old.term + 1, serial=1, since=old.term, first=3)
    shares.coordinator.decide(newer)
    answers = shares.settle("a", 0)
    assert [type(one) for one in answers] == [OutcomeUnknown]
    assert old.stage is Stage.CLOSED
    shares.lead_again()  # in the newer term
    assert firsts(shares.take("b")) == [(0, 2)]


def test_a_leader_that_is_replaced_refuses_what_its_members_held() -> None:
    shares = filled()
    shares.take("a")
    shares.settle("a", 1)
    shares.lead_again()
    with pytest.raises(InvalidRecordState):
        shares.settle("a", 0)
    assert firsts(shares.take("b")) == [(0, 0), (2, 2)]


def test_a_leader_of_a_newer_term_begins_with_what_is_written() -> None:
    shares = filled()
    shares.take("a")
    before = shares.here
    shares.comes_back()
    assert firsts(shares.take("b")) == [(0, 2)]
    assert before.stage is Stage.CLOSED


def test_a_leader_of_an_old_term_does_not_adopt_the_state_again() -> None:
    shares = filled()
    shares.take("a")
    newer = Adopt(place=PLACE, term=shares.here.term + 1, serial=1, since=1, first=3)
    shares.coordinator.decide(newer)
    shares.settle("a", 0)
    shares.broker = shares.new_broker()
    with pytest.raises(NotLeader):
        shares.take("b")
    shares.pass_ms(RETRY_MS)
    with pytest.raises(NotLeader):
        shares.take("b")


def test_what_is_held_for_too_long_is_free_again() -> None:
    shares = filled()
    shares.take("a")
    woken: list[bool] = []
    shares.here.when_more(lambda: woken.append(True))
    shares.pass_ms(shares.broker.settings.of(GROUP).lock_ms - 1)
    assert not woken
    shares.pass_ms(1)
    assert woken
    assert [(one.first, one.last, one.count) for one in shares.take("b")] == [(0, 2, 2)]


def test_a_group_whose_start_was_set_begins_again() -> None:
    shares = filled()
    shares.take("a")
    shares.settle("a", 0, 2)
    shares.coordinator.decide(SetStart(place=PLACE, group=GROUP, offset=1))
    shares.produce(b"3")
    shares.take("a")
    answers = shares.settle("a", 3)
    assert [type(one) for one in answers] == [OutcomeUnknown]
    assert firsts(shares.take("b")) == [(1, 3)]


def test_a_leader_that_learns_of_a_set_start_when_it_leads_no_more_only_closes() -> None:
    shares = filled()
    shares.take("a")
    old = shares.here
    shares.coordinator.is_holding = True
    shares.settle("a", 0)
    shares.coordinator.decide(SetStart(place=PLACE, group=GROUP, offset=1))
    shares.node.replica.stop(LogError("the disk is gone"))
    shares.coordinator.answer()
    assert old.stage is Stage.CLOSED


# ── logs that lose their end ─────────────────────────────────────────────────────────────────


def lazy() -> Shares:
    """A partition whose records may be lost with the power."""
    settings = TopicSettings(flush_policy=FlushPolicy.OS)
    return Shares(PartitionNode(settings=settings))


def test_records_at_offsets_that_are_used_again_are_delivered() -> None:
    shares = lazy()
    shares.produce(b"0", b"1", b"2")
    shares.take("nobody", 0)
    shares.take("a")
    assert shares.settle("a", 0, 2) == [None]
    shares.lead_again()
    assert shares.node.partition.high_watermark == 0
    shares.produce(b"3", b"4")
    assert firsts(shares.take("b")) == [(0, 1)]


def test_they_are_delivered_also_if_no_member_came_in_the_term_that_wrote_them() -> None:
    shares = lazy()
    shares.produce(b"0", b"1", b"2")
    shares.take("nobody", 0)
    shares.take("a")
    assert shares.settle("a", 0, 2) == [None]
    shares.lead_again(adopts=False)
    shares.produce(b"3", b"4", b"5", b"6")
    shares.lead_again(loses_power=False)
    assert firsts(shares.take("b")) == [(0, 3)]


def test_what_was_settled_in_earlier_terms_stays_so_if_nothing_was_lost() -> None:
    shares = filled()
    shares.take("a")
    shares.settle("a", 0, 1)
    for _ in range(3):
        shares.lead_again(adopts=False)
        shares.produce(b"more")
    assert firsts(shares.take("b")) == [(2, 5)]


# ── sessions ─────────────────────────────────────────────────────────────────────────────────


def test_what_a_member_held_is_released_when_its_session_is_lost() -> None:
    shares = filled()
    session = shares.broker.sessions.at((GROUP, "a"), OPENING, 1)
    shares.take("a")
    session.served(PLACE)
    shares.broker.sessions.lost(2)
    assert shares.take("b") == [], "it goes on with another connection"
    shares.broker.sessions.lost(1)
    assert firsts(shares.take("b")) == [(0, 2)]
