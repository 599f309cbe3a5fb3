"""Topics are created, grown, changed and deleted; each change survives crashes and restarts."""

from collections.abc import Callable

import pytest

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC
from kafkaesque.broker.partition.partition_errors import BatchTooLarge, NotHere
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import InvalidSetting, LogError, OutcomeUnknown, TopicExists, UnknownTopic
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.machines.catalog.catalog_errors import InvalidPartitions
from kafkaesque.sim.disk import CrashPolicy, PowerLost
from tests.broker.brokers import Answers, BrokerNode


@pytest.mark.requirement("LOG-3")
def test_a_new_topic_serves_when_its_creation_is_answered() -> None:
    node = BrokerNode()
    assert node.create("orders", 3) == [None]
    assert node.produce("orders", b"a", partition=2) == [Outcome.COMMITTED]
    assert node.values("orders", 2) == [b"a"]


def test_a_topic_does_not_exist_before_it_is_committed() -> None:
    node = BrokerNode()
    node.holds_syncs = True
    first = node.create("orders")
    with pytest.raises(UnknownTopic):
        node.broker.topics.partitions("orders")
    second = node.create("orders")
    assert (first, second) == ([], []), "the refusal would name a topic that may never exist"
    node.sync()
    assert first == [None]
    assert [type(error) for error in second] == [TopicExists]


@pytest.mark.complains("replica_stopped partition=cluster-metadata reason=its disk is full")
def test_a_change_with_an_unknown_outcome_is_not_carried_out() -> None:
    node = BrokerNode()
    node.holds_syncs = True
    answers = node.create("orders")
    node.broker._catalog.replica.stop(LogError("its disk is full"))
    assert [type(answer) for answer in answers] == [OutcomeUnknown]
    assert node.broker.topics.names == []


def test_topics_and_records_survive_a_crash() -> None:
    node = BrokerNode()
    for name in ("a", "b", "c"):
        node.create(name, 2, retention_ms="5000")
        node.produce(name, name.encode(), partition=1)
    node.crash(CrashPolicy.DROP_UNSYNCED)
    for name in ("a", "b", "c"):
        assert node.values(name, 1) == [name.encode()]
        assert node.broker.partition(name, 0).settings.retention_ms == 5000


def test_many_topics_are_elected_in_few_syncs() -> None:
    node = BrokerNode()
    for number in range(50):
        node.create(f"t{number}", 2)
    node.broker.stop()
    node.disk.kill()
    before = node.disk.syncs
    node.start()
    assert len(node.broker.topics.partitions("t49")) == 2
    rounds = node.disk.syncs - before
    assert rounds < 10, "neither one sync per opened log nor one per election"


class WatchedNode(BrokerNode):
    """Remembers which topics had an open partition when clients were admitted."""

    def __init__(self) -> None:
        self.open_when_ready: set[str] = set()
        self.on_ready: Callable[[], None] | None = None
        super().__init__()

    def _ready(self) -> None:
        super()._ready()
        topics = self.broker.topics
        self.open_when_ready = {name for name in topics.names if topics.partitions(name)}
        for name in set(topics.names) - self.open_when_ready:
            with pytest.raises(NotHere, match="not open yet"):
                topics.partition(name, 0)
        if self.on_ready is not None:
            self.on_ready()


def a_node_with_twenty_topics(monkeypatch: pytest.MonkeyPatch) -> tuple[WatchedNode, list[str]]:
    monkeypatch.setattr("kafkaesque.broker.cluster.topics.OPENED_AT_ONCE_MAX", 2)
    node = WatchedNode()
    names = [f"t{number:02}" for number in range(20)]
    for name in names:
        node.create(name)
        node.produce(name, name.encode())
    return node, names


def test_clients_are_admitted_before_everything_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    node, names = a_node_with_twenty_topics(monkeypatch)
    node.disk.kill()
    node.start()
    assert {"t00", "t01"} <= node.open_when_ready <= set(names[:10])
    for name in names:
        assert node.values(name) == [name.encode()]
        assert node.produce(name, b"more") == [Outcome.COMMITTED]


def test_internal_topics_are_opened_first(monkeypatch: pytest.MonkeyPatch) -> None:
    node, _ = a_node_with_twenty_topics(monkeypatch)
    node.create(OFFSETS_TOPIC, 2)
    node.restart()
    assert OFFSETS_TOPIC in node.open_when_ready
    assert "t19" not in node.open_when_ready


def test_a_topic_may_be_changed_and_deleted_before_it_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, names = a_node_with_twenty_topics(monkeypatch)
    node.disk.kill()
    answers: Answers = []

    def change() -> None:
        node.broker.delete_topic("t18", answers.append)
        node.broker.add_partitions("t19", 2, answers.append)

    node.on_ready = change
    node.start()
    assert answers == [None, None]
    assert node.broker.topics.names == [name for name in names if name != "t18"]
    assert len(node.broker.topics.partitions("t19")) == 2
    assert node.values("t19") == [b"t19"]


@pytest.mark.requirement("CORE-8")
def test_added_partitions_serve_and_existing_ones_keep_their_records() -> None:
    node = BrokerNode()
    node.create("orders", 2)
    node.produce("orders", b"old")
    old = node.broker.partition("orders", 0)
    answers: Answers = []
    node.broker.add_partitions("orders", 5, answers.append)
    node.sync()
    assert answers == [None]
    assert node.broker.partition("orders", 0) is old
    assert node.produce("orders", b"new", partition=4) == [Outcome.COMMITTED]
    node.restart()
    assert len(node.broker.topics.partitions("orders")) == 5
    assert (node.values("orders", 0), node.values("orders", 4)) == ([b"old"], [b"new"])


def test_two_concurrent_growths_both_take_effect() -> None:
    node = BrokerNode()
    node.create("orders", 1)
    answers: Answers = []
    node.broker.add_partitions("orders", 2, answers.append)
    node.broker.add_partitions("orders", 4, answers.append)
    node.sync()
    assert answers == [None, None]
    assert len(node.broker.topics.partitions("orders")) == 4


def test_partitions_are_never_removed() -> None:
    node = BrokerNode()
    node.create("orders", 3)
    answers: Answers = []
    node.broker.add_partitions("orders", 2, answers.append)
    assert [type(error) for error in answers] == [InvalidPartitions]
    assert len(node.broker.topics.partitions("orders")) == 3


def test_settings_take_effect_at_once_and_after_a_restart() -> None:
    node = BrokerNode()
    node.create("orders")
    node.produce("orders", b"x" * 500)
    answers: Answers = []
    node.broker.set_settings("orders", {"max.message.bytes": "300"}, answers.append)
    node.sync()
    assert answers == [None]
    with pytest.raises(BatchTooLarge):
        node.produce("orders", b"x" * 500)
    node.restart()
    with pytest.raises(BatchTooLarge):
        node.produce("orders", b"x" * 500)
    node.broker.set_settings("orders", {"max.message.bytes": "many"}, answers.append)
    assert isinstance(answers[-1], InvalidSetting)


# ── deleting ─────────────────────────────────────────────────────────────────────────────────


def test_a_deleted_topic_is_gone_and_so_are_its_files() -> None:
    node = BrokerNode()
    node.create("orders", 3)
    node.create("others")
    node.produce("orders", b"a")
    assert node.delete("orders") == [None]
    with pytest.raises(UnknownTopic):
        node.broker.partition("orders", 0)
    node.tick(2)
    assert node.broker.topics.is_tidy
    assert [name.split(".")[0] for name in node.folders()] == ["others"]
    assert node.groups("orders") == 0
    node.restart()
    assert node.broker.topics.names == ["others"]


def test_requests_waiting_for_a_deleted_topic_are_answered() -> None:
    node = BrokerNode()
    node.create("orders")
    partition = node.broker.partition("orders", 0)
    woken: list[str] = []
    partition.when_more(lambda: woken.append("fetcher"))
    node.delete("orders")
    assert woken == ["fetcher"]
    with pytest.raises(UnknownTopic):
        partition.read(0, 100)
    with pytest.raises(UnknownTopic):
        partition.append(memoryview(b""), lambda _: None)


def test_a_producer_with_an_unsynced_batch_learns_that_the_topic_was_deleted() -> None:
    node = BrokerNode()
    node.create("orders")
    node.holds_syncs = True
    deleted: Answers = []
    node.broker.delete_topic("orders", deleted.append)
    node.broker.flush()  # the tombstone's sync is in progress
    fates = node.produce("orders", b"late")
    node.sync()
    assert deleted == [None]
    assert fates == [Outcome.DELETED]


def test_a_topic_deleted_before_its_creation_is_finished_is_gone() -> None:
    node = BrokerNode()
    node.holds_syncs = True
    created, deleted = node.create("orders"), node.delete("orders")
    again = node.create("orders", 2)
    node.sync()
    assert (created, deleted, again) == ([None], [None], [None])
    assert len(node.broker.topics.partitions("orders")) == 2
    node.tick(2)
    assert len(node.folders()) == 1


@pytest.mark.parametrize("policy", list(CrashPolicy))
def test_a_deletion_survives_a_crash_at_every_step(policy: CrashPolicy) -> None:
    """The power fails at each operation of the disk; afterwards everything is there, or nothing."""
    outcomes: set[bool] = set()
    for step in range(1, 400):
        node = BrokerNode(seed=step)
        node.create("orders", 2)
        node.create("others", 2)
        node.produce("orders", b"a")
        node.produce("others", b"b")
        first = node.disk.operations
        node.disk.crash_after = first + step
        deleted = _delete_until_power_ends(node)
        is_over = node.disk.operations < first + step
        node.crash(policy)
        node.tick(3)
        assert node.failures == []
        assert node.values("others") == [b"b"]
        is_there = "orders" in node.broker.topics.names
        assert not (is_there and deleted), "the answer was premature"
        if is_there:
            assert node.values("orders") == [b"a"]
        assert len(node.folders()) == (2 if is_there else 1)
        assert node.groups("orders") == (2 if is_there else 0)
        outcomes.add(is_there)
        if is_over:
            break
    else:
        raise AssertionError("a deletion takes fewer operations than that")
    assert outcomes == {True, False}


def _delete_until_power_ends(node: BrokerNode) -> Answers:
    answers: Answers = []
    try:
        node.broker.delete_topic("orders", answers.append)
        node.sync()
        node.tick(2)
    except PowerLost:
        pass
    return answers


@pytest.mark.event("folders_of_no_topic")
@pytest.mark.complains(
    "folders_of_no_topic count=1 folders=lost.00000000000000000000000000000001",
)
def test_a_folder_that_belongs_to_no_topic_is_reported_and_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = BrokerNode()
    stranger = f"lost.{'0' * 31}1"
    node.disk.make_folder(f"{stranger}/0")
    node.disk.make_folder("old.deleted")
    node.disk.create(f"{stranger}/0/00000000000000000000.log").write(0, b"records")
    node.disk.sync_now([], [f"{stranger}/0"])
    node.restart()
    node.tick(3)
    assert node.folders() == [stranger, "old.deleted"]
    assert node.disk.list(f"{stranger}/0") == ["00000000000000000000.log"]
    assert [r.getMessage() for r in caplog.records if stranger in r.getMessage()]


def test_a_folder_marked_for_removal_by_an_earlier_run_is_removed() -> None:
    node = BrokerNode()
    node.create("orders")
    node.disk.make_folder(f"gone.{'0' * 31}1.deleted/0")
    node.restart()
    node.tick()
    assert [name.split(".")[0] for name in node.folders()] == ["orders"]


@pytest.mark.event("removal_failed")
@pytest.mark.complains(
    "removal_failed folder=gone.00000000000000000000000000000001.deleted reason=[Errno *",
)
def test_a_folder_that_cannot_be_removed_is_left_and_does_no_harm() -> None:
    node = BrokerNode()
    folder = f"gone.{'0' * 31}1.deleted"
    node.disk.make_folder(f"{folder}/0/deeper")
    node.restart()
    node.tick(2)
    assert node.folders() == [folder]
    assert node.create("orders") == [None]


def test_a_topic_is_deleted_and_recreated_many_times() -> None:
    """Reads never return records of an earlier topic with the same name."""
    node = BrokerNode()
    for number in range(200):
        node.create("orders", 2)
        node.produce("orders", b"%d" % number)
        assert node.values("orders") == [b"%d" % number]
        old = node.broker.partition("orders", 0)
        node.delete("orders")
        with pytest.raises(UnknownTopic):
            old.read(0, 100)
        if number % 20 == 0:
            node.tick()
        if number % 50 == 0:
            node.crash()
    node.tick(2)
    assert node.folders() == []


# ── damage ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.event("partition_offline")
@pytest.mark.complains(
    "partition_offline partition=orders.*/0 reason=orders.*/0/00000000000000000000.log *",
)
def test_a_damaged_partition_is_offline_and_can_be_deleted() -> None:
    node = BrokerNode()
    node.create("orders", 2)
    node.produce("orders", b"a" * 40)
    node.produce("orders", b"b", partition=1)
    node.tick(3)
    (folder,) = node.folders()
    node.broker.stop()
    node.disk.kill()
    node.disk.flip_bit(f"{folder}/0/00000000000000000000.log", 80, 1)
    node.disk.open(f"{folder}/0/00000000000000000000.log").truncate(90)
    node.start()
    assert node.failures == []
    with pytest.raises(PartitionOffline, match="damaged at byte"):
        node.broker.partition("orders", 0)
    assert node.values("orders", 1) == [b"b"]
    assert len(node.broker.topics.partitions("orders")) == 1
    assert len(node.broker.topics.slots("orders")) == 2
    assert node.delete("orders") == [None]
    node.tick(2)
    assert node.folders() == []
    node.restart()
    assert node.is_ready


# ── deleting records ─────────────────────────────────────────────────────────────────────────


def delete_records(node: BrokerNode, offset: int) -> Answers:
    answers: Answers = []
    node.broker.delete_records("orders", 0, offset, answers.append)
    node.after_event()
    return answers


def test_records_before_an_offset_can_be_deleted_and_stay_deleted() -> None:
    node = BrokerNode()
    node.create("orders")
    for number in range(10):
        node.produce("orders", b"%d" % (2 * number), b"%d" % (2 * number + 1))
    assert delete_records(node, 7) == [None]
    assert node.broker.partition("orders", 0).first_offset == 7
    node.crash(CrashPolicy.DROP_UNSYNCED)
    assert node.broker.partition("orders", 0).first_offset == 7
    assert node.values("orders")[0] == b"7"
    assert delete_records(node, 3) == [None], "deleting records that are gone is not an error"
    assert node.broker.partition("orders", 0).first_offset == 7


def test_all_records_can_be_deleted_at_once() -> None:
    node = BrokerNode()
    node.create("orders")
    node.produce("orders", b"a", b"b", b"c")
    assert delete_records(node, -1) == [None]
    node.restart()
    assert node.values("orders") == []
    assert node.broker.partition("orders", 0).high_watermark == 3
    node.produce("orders", b"d")
    assert node.values("orders") == [b"d"]


def test_uncommitted_records_are_not_deleted() -> None:
    node = BrokerNode()
    node.create("orders")
    node.produce("orders", b"a")
    with pytest.raises(OffsetOutOfRange):
        delete_records(node, 2)
    with pytest.raises(OffsetOutOfRange):
        delete_records(node, -2)
    assert node.values("orders") == [b"a"]


def test_two_deletions_of_records_are_each_answered_when_durable() -> None:
    node = BrokerNode()
    node.create("orders")
    node.produce("orders", *(b"%d" % number for number in range(10)))
    node.create("others")
    node.holds_syncs = True
    node.produce("others", b"a")  # its sync is in progress: both deletions wait for the next one
    first, second = delete_records(node, 3), delete_records(node, 6)
    while not second:
        node.later.play()
        node.broker.flush()
    assert first == second == [None]
    node.crash(CrashPolicy.DROP_UNSYNCED)
    assert node.broker.partition("orders", 0).first_offset == 6


def test_a_time_before_the_first_record_finds_the_first_record() -> None:
    node = BrokerNode()
    node.create("orders")
    for number in range(10):
        node.produce("orders", b"%d" % number)
    delete_records(node, 5)
    partition = node.broker.partition("orders", 0)
    found = partition.find_time(0, partition.high_watermark)
    assert found is not None
    assert found[0] == 5
