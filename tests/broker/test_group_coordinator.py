"""Consumer groups on a replica: answers wait for the commit, and nobody waits in vain."""

import pytest

from kafkaesque.broker.coordinators import Coordinators, partition_of
from kafkaesque.broker.group_coordinator import BATCH_BYTES, GroupCoordinator
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import (
    DiskFailed,
    KafkaesqueError,
    LogError,
    MemberIdRequired,
    NotCoordinator,
    TopicExists,
)
from kafkaesque.machines.consumer_commands import TopicsKnown
from kafkaesque.machines.group_commands import Answer, Commit, Committed, Identity, Join, Protocol
from tests.broker.nodes import ALONE, Node
from tests.log.logs import HandClock

GROUP = "readers"


class Coordinated:
    """A coordinator on a node whose disk answers when the test says so."""

    def __init__(self) -> None:
        self.node = Node(ALONE, holds_syncs=True)
        self.node.sync()
        self.clock = HandClock()
        self.failures: list[LogError] = []
        self.coordinator = GroupCoordinator(
            self.node.replica,
            self.clock,
            GroupConfig(initial_rebalance_delay_ms=100),
            self.node.store.snapshots(self.node.replica.group),
            self.failures.append,
        )

    def lead(self) -> None:
        self.node.replica.campaign()
        self.node.sync()

    def commit(self, partitions: int = 1, metadata: str = "") -> list[Answer]:
        answers: list[Answer] = []
        command = Commit(
            group=GROUP,
            generation=-1,
            member=Identity(member_id=""),
            offsets=tuple(((bytes(16), p), 5, -1, metadata) for p in range(partitions)),
        )
        self.coordinator.ask(
            lambda groups, now: groups.commit(command, answers.append, now), answers.append
        )
        return answers

    def join(self, *, knows_member_ids: bool) -> list[Answer]:
        answers: list[Answer] = []
        command = Join(
            group=GROUP,
            member_id="",
            fresh_id="m1",
            session_timeout_ms=1_000,
            rebalance_timeout_ms=1_000,
            protocol_type="consumer",
            protocols=(Protocol("range", b""),),
            topics=TopicsKnown(mark=None, topics={}),
            knows_member_ids=knows_member_ids,
        )
        self.coordinator.ask(
            lambda groups, now: groups.join(command, answers.append, now), answers.append
        )
        return answers


def test_an_answer_waits_for_the_commit() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.commit()
    assert answers == []
    coordinated.node.sync()
    assert answers == [Committed(refused=frozenset())]


def test_a_refusal_that_was_made_from_what_is_not_committed_waits_too() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    coordinated.commit()
    answers = coordinated.join(knows_member_ids=True)
    assert answers == []
    coordinated.node.sync()
    assert isinstance(answers[0], MemberIdRequired)


def test_one_that_does_not_lead_says_so() -> None:
    assert isinstance(Coordinated().commit()[0], NotCoordinator)


def test_lost_leadership_is_neither_success_nor_failure() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.commit()
    coordinated.node.replica.stop(DiskFailed("gone"))
    assert [type(answer) for answer in answers] == [NotCoordinator]


def test_members_that_wait_for_others_are_told_when_leadership_is_lost() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.join(knows_member_ids=False)
    coordinated.coordinator.tick()
    assert answers == []
    coordinated.node.replica.stop(DiskFailed("gone"))
    coordinated.coordinator.tick()
    assert [type(answer) for answer in answers] == [NotCoordinator]


def test_time_ends_the_gathering_of_members() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.join(knows_member_ids=False)
    coordinated.clock.ms += 100
    coordinated.coordinator.tick()
    assert answers == []
    coordinated.node.sync()
    assert len(answers) == 1


def test_a_decision_of_many_records_is_written_in_batches_of_sane_size() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.commit(partitions=600, metadata="x" * 4000)
    coordinated.node.sync()
    assert len(answers) == 1
    log = coordinated.node.replica.log
    sizes = [entry.size for entry in log.entries(log.start.index, 1 << 30)]
    assert log.end_offset == 600
    assert max(sizes) < 2 * BATCH_BYTES
    coordinated.coordinator.forget_topic(bytes(16))
    coordinated.node.sync()
    assert log.end_offset == 1200


# ── all coordinators of a broker ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("a", 97 % 50),
        ("test", 3556498 % 50),
        ("foobar", 1268878963 % 50),  # its hash code is negative
        ("hello world", 1794106052 % 50),
        ("polygenelubricants", 0),  # its hash code is the smallest number there is
        ("😀", (0xD83D * 31 + 0xDE00) % 50),
    ],
)
def test_a_group_belongs_to_the_partition_that_kafka_would_give_it(
    group: str, partition: int
) -> None:
    assert partition_of(group, 50) == partition


def test_the_topic_is_made_once_however_many_ask() -> None:
    asked: list[object] = []
    coordinators: Coordinators[GroupCoordinator] = Coordinators(asked.append)
    told: list[KafkaesqueError | None] = []
    coordinators.when_ready(told.append)
    coordinators.when_ready(told.append)
    assert (len(asked), told) == (1, [])
    with pytest.raises(NotCoordinator):
        coordinators.of(GROUP)
    coordinators.open([Coordinated().coordinator])
    coordinators.when_ready(told.append)
    assert told == [None] * 3
    assert coordinators.of(GROUP) is coordinators.all[0]


def test_what_stands_in_the_way_is_told_and_the_next_one_tries_again() -> None:
    attempts: list[object] = []

    def create(answer: object) -> None:
        attempts.append(answer)
        raise DiskFailed("no")

    coordinators: Coordinators[GroupCoordinator] = Coordinators(create)
    told: list[KafkaesqueError | None] = []
    coordinators.when_ready(told.append)
    coordinators.when_ready(told.append)
    assert len(attempts) == len(told) == 2
    assert all(isinstance(error, DiskFailed) for error in told)


def test_a_topic_that_is_being_opened_is_waited_for() -> None:
    def create(_: object) -> None:
        raise TopicExists("it is on its way")

    coordinators: Coordinators[GroupCoordinator] = Coordinators(create)
    told: list[KafkaesqueError | None] = []
    coordinators.when_ready(told.append)
    assert told == []
    coordinators.open([Coordinated().coordinator])
    assert told == [None]


def test_without_room_on_the_disk_groups_answer_that_they_cannot_and_time_goes_on() -> None:
    story = Coordinated()
    story.lead()
    flusher = story.node.store.flusher
    flusher.is_full = True
    assert isinstance(story.commit()[0], NotCoordinator)
    joined = story.join(knows_member_ids=False)
    story.clock.ms += 200
    story.coordinator.tick()  # the group's first generation cannot be written either
    assert isinstance(joined[0], NotCoordinator)
    flusher.is_full = False
    answers = story.commit()
    story.node.sync()
    assert isinstance(answers[0], Committed), "nothing is left of what was not written"
