"""Consumer groups on a replica: answers wait for the commit, and no request waits forever."""

import sys

import pytest

from kafkaesque.broker.coordination.coordinators import Coordinators, Ready, partition_of
from kafkaesque.broker.coordination.group_coordinator import GroupCoordinator
from kafkaesque.broker.machine_hosting.coordinator import BATCH_BYTES, CoordinatorLoading
from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.config import LogConfig
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import KafkaesqueError, LogError, NotCoordinator, TopicExists
from kafkaesque.log.errors import DiskFailed
from kafkaesque.machines.groups.consumer_commands import TopicsKnown
from kafkaesque.machines.groups.group_commands import (
    Answer,
    Commit,
    Committed,
    Fetched,
    FetchOffsets,
    Identity,
    Join,
    Joined,
    Protocol,
    TransactionalCommit,
)
from kafkaesque.machines.groups.group_errors import MemberIdRequired
from kafkaesque.machines.transactions.transaction_questions import Marker
from tests.broker.nodes import ALONE, THREE, Node
from tests.broker.nodes import GROUP as NODE_GROUP
from tests.log.logs import HandClock

GROUP = "readers"
PLACE = (bytes(16), 0)
MARKER = Marker(producer_id=7, epoch=0, is_commit=True, coordinator_term=1, number=1)


class Coordinated:
    """A coordinator on a node whose disk answers when the test says so."""

    def __init__(self, voters: Voters = ALONE) -> None:
        self.node = Node(voters, holds_syncs=True)
        self.node.sync()
        self.clock = HandClock()
        self.failures: list[LogError] = []
        self.coordinator = GroupCoordinator(
            self.node.site(self.clock, self.failures),
            GroupConfig(initial_rebalance_delay_ms=100),
        )

    def lead(self) -> None:
        if len(self.node.replica.raft.voters.voters) > 1:
            self.node.elect()
        else:
            self.node.replica.campaign()
            self.node.sync()

    def agree(self) -> None:
        """Let a follower have everything too."""
        self.node.sync()
        self.node.accepts(2, self.node.replica.raft.end)

    def commit(self, partitions: int = 1, metadata: str = "") -> list[Answer]:
        answers: list[Answer] = []
        command = Commit(
            group=GROUP,
            generation=-1,
            member=Identity(member_id=""),
            offsets=tuple(((bytes(16), p), 5, -1, metadata) for p in range(partitions)),
        )
        self.coordinator.ask(command, answers.append)
        return answers

    def commit_in_transaction(self) -> None:
        commit = Commit(
            group=GROUP,
            generation=-1,
            member=Identity(member_id=""),
            offsets=((PLACE, 5, -1, ""),),
        )
        command = TransactionalCommit(commit=commit, producer_id=MARKER.producer_id)
        answers: list[Answer] = []
        self.coordinator.ask(command, answers.append)
        self.agree()
        assert answers == [Committed(refused=frozenset())]

    def fetched(self) -> Fetched:
        answers: list[Answer] = []
        self.coordinator.ask(FetchOffsets(group=GROUP), answers.append)
        assert isinstance(answers[0], Fetched)
        return answers[0]

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
        self.coordinator.ask(command, answers.append)
        return answers


def test_an_answer_waits_for_the_commit() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.commit()
    assert answers == []
    coordinated.node.sync()
    assert answers == [Committed(refused=frozenset())]


def test_a_refusal_based_on_uncommitted_state_waits_too() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    coordinated.commit()
    answers = coordinated.join(knows_member_ids=True)
    assert answers == []
    coordinated.node.sync()
    assert isinstance(answers[0], MemberIdRequired)


def test_a_coordinator_that_does_not_lead_says_so() -> None:
    assert isinstance(Coordinated().commit()[0], NotCoordinator)


def test_after_lost_leadership_the_outcome_is_unknown() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.commit()
    coordinated.node.replica.stop(DiskFailed("gone"))
    assert [type(answer) for answer in answers] == [NotCoordinator]


def test_members_waiting_for_others_are_answered_when_leadership_is_lost() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.join(knows_member_ids=False)
    coordinated.coordinator.tick()
    assert answers == []
    coordinated.node.replica.stop(DiskFailed("gone"))
    coordinated.coordinator.tick()
    assert [type(answer) for answer in answers] == [NotCoordinator]


def test_a_rebalance_ends_when_its_time_is_up() -> None:
    coordinated = Coordinated()
    coordinated.lead()
    answers = coordinated.join(knows_member_ids=False)
    coordinated.clock.ms += 100
    coordinated.coordinator.tick()
    assert answers == []
    coordinated.node.sync()
    assert len(answers) == 1


def test_a_decision_of_many_records_is_split_into_batches() -> None:
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


# ── during a transfer of leadership ──────────────────────────────────────────────────────────


@pytest.mark.parametrize("repeats_in_time", [True, False])
def test_offsets_of_a_transaction_count_even_if_the_marker_arrived_during_a_transfer(
    repeats_in_time: bool,
) -> None:
    story = Coordinated(THREE)
    story.lead()
    story.commit_in_transaction()
    story.node.replica.transfer(2)
    told: list[KafkaesqueError | None] = []
    for _ in range(2 if repeats_in_time else 1):
        story.coordinator.end_transaction(MARKER, told.append)
    assert all(isinstance(error, NotCoordinator) for error in told), "nothing has been written"
    story.node.let_the_transfer_fail()
    story.coordinator.end_transaction(MARKER, told.append)
    story.agree()
    assert told[-1] is None
    fetched = story.fetched()
    assert fetched.offsets[PLACE].offset == 5
    assert not fetched.unstable


def test_a_rebalance_that_times_out_during_a_transfer_ends_when_the_transfer_is_cancelled() -> None:
    story = Coordinated(THREE)
    story.lead()
    answers = story.join(knows_member_ids=False)
    story.node.replica.transfer(2)
    story.clock.ms += 100
    story.coordinator.tick()
    assert answers == []
    story.node.let_the_transfer_fail()
    story.coordinator.tick()
    story.agree()
    assert [type(answer) for answer in answers] == [Joined]


def test_offsets_of_a_topic_deleted_during_a_transfer_are_forgotten_after_it() -> None:
    story = Coordinated(THREE)
    story.lead()
    story.commit()
    story.agree()
    story.node.replica.transfer(2)
    story.coordinator.forget_topic(PLACE[0])
    story.node.let_the_transfer_fail()
    assert story.fetched().offsets
    story.coordinator.tick()
    story.agree()
    assert not story.fetched().offsets


# ── all coordinators of a broker ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("a", 97 % 50),
        ("test", 3556498 % 50),
        ("foobar", 1268878963 % 50),  # its hash code is negative
        ("hello world", 1794106052 % 50),
        ("polygenelubricants", 0),  # its hash code is the smallest integer
        ("😀", (0xD83D * 31 + 0xDE00) % 50),
    ],
)
def test_a_group_maps_to_the_same_partition_as_in_kafka(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def test_concurrent_requests_create_the_topic_once() -> None:
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


def test_a_failed_creation_is_reported_and_the_next_request_tries_again() -> None:
    attempts: list[Ready] = []

    def create(answer: Ready) -> None:
        attempts.append(answer)
        answer(DiskFailed("no"))

    coordinators: Coordinators[GroupCoordinator] = Coordinators(create)
    told: list[KafkaesqueError | None] = []
    coordinators.when_ready(told.append)
    coordinators.when_ready(told.append)
    assert len(attempts) == len(told) == 2
    assert all(isinstance(error, DiskFailed) for error in told)


def test_requests_wait_for_a_topic_that_is_being_opened() -> None:
    def create(answer: Ready) -> None:
        answer(TopicExists("it is on its way"))

    coordinators: Coordinators[GroupCoordinator] = Coordinators(create)
    told: list[KafkaesqueError | None] = []
    coordinators.when_ready(told.append)
    assert told == []
    coordinators.open([Coordinated().coordinator])
    assert told == [None]


def test_a_topic_that_is_not_here_yet_is_asked_for_by_every_caller() -> None:
    attempts: list[Ready] = []

    def create(answer: Ready) -> None:
        attempts.append(answer)
        answer(TopicExists("it is on its way"))

    coordinators: Coordinators[GroupCoordinator] = Coordinators(create)
    told: list[KafkaesqueError | None] = []
    coordinators.when_ready(told.append)
    coordinators.when_ready(told.append)
    assert len(attempts) == 2
    coordinators.open([Coordinated().coordinator])
    assert told == [None, None]


def test_on_a_full_disk_groups_answer_with_an_error_and_timeouts_still_run() -> None:
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
    assert isinstance(answers[0], Committed), "no trace of what was not written"


@pytest.mark.parametrize("note", ["m" * 4_000, "m" * 4_000 + "\N{SAUROPOD}"])
def test_a_coordinators_offsets_stay_within_its_limit(note: str) -> None:
    place = Coordinated()
    place.lead()
    place.coordinator.configure(GroupConfig(offsets_bytes_max=100_000))
    before = place.coordinator.offsets_bytes
    place.commit(partitions=50, metadata=note)
    place.node.sync()
    kept = place.fetched().offsets
    texts = {id(value.metadata): sys.getsizeof(value.metadata) for value in kept.values()}
    assert len(texts) == len(kept) > 4
    assert before + sum(texts.values()) <= 100_000


def test_a_coordinator_that_is_loading_its_state_asks_clients_to_retry() -> None:
    groups = Coordinated()
    groups.lead()
    for _ in range(5):
        groups.commit(10)
        groups.node.sync()
    groups.node.restart()
    node = groups.node
    snapshots = MachineSnapshots(node.disk, NODE_GROUP, LogConfig(slice_bytes=100))
    site = node.site(groups.clock, groups.failures, snapshots)
    groups.coordinator = GroupCoordinator(site, GroupConfig())
    node.replica.campaign()
    while not groups.coordinator.is_loading:
        node.store.flusher.kick()
        node.later.play()
    assert [type(answer) for answer in groups.commit()] == [CoordinatorLoading]
    node.sync()
    assert not groups.coordinator.is_loading
    assert len(groups.fetched().offsets) == 10
