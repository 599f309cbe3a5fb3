"""A topic's settings applied to its partitions' logs, and to a whole broker."""

import random
from collections.abc import Callable

import pytest

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.replication.log_settings import internal, retention_rules
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import BrokerConfig, LogConfig, ProducerConfig
from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.retention import RetentionRules
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, SimDisk
from kafkaesque.topic_settings import UNLIMITED, CleanupPolicy, FlushPolicy, TopicSettings
from tests.broker.no_peers import MEMBERSHIP
from tests.broker.nodes import ALONE, Node, a_batch
from tests.heard import Heard
from tests.log.logs import HandClock
from tests.sim.disks import Later

SMALL = LogConfig(
    internal_segment_bytes_max=2_000, index_interval_bytes=200, snapshot_growth_bytes=2_000
)


class ABroker:
    """A broker on a simulated disk that syncs when the test says so."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.later = Later()
        self.disk = SimDisk(random.Random(1), self.later, DiskFaults(), clock=self.clock)
        self.failures: list[LogError] = []
        self.start()

    def start(self) -> None:
        self.later.waiting.clear()
        ready: list[bool] = []
        store = Store.open(self.disk, SMALL, self.clock, 1, self.failures.append, Heard())
        self.later.take_slices(store.slices)
        chance = random.Random(2)
        config = BrokerConfig()
        self.broker = Broker(1, store, self.clock, chance, config, self.failures.append, MEMBERSHIP)
        self.broker.start(lambda: ready.append(True))
        self.sync()
        assert ready

    def sync(self) -> None:
        self.broker.flush()
        while self.later.waiting:
            self.later.play()
            self.broker.flush()

    def tick(self, count: int = 1, *, ms: int = 50) -> None:
        for _ in range(count):
            self.clock.ms += ms
            self.broker.tick()
            self.sync()

    def topic(self, name: str, **settings: str) -> Partition:
        named = {key.replace("_", "."): value for key, value in settings.items()}
        self.broker.create_topic(name, 1, named, lambda error: None)
        self.sync()
        return self.broker.partition(name, 0)

    def size_of(self, group: str) -> int:
        names = [name for name in self.disk.list(group) if name.endswith(".log")]
        return sum(self.disk.open(f"{group}/{name}").size() for name in names)

    def segments_of(self, partition: Partition) -> int:
        return len(list(partition.replica.log.segments.each_info()))


def produce(partition: Partition, *values: bytes) -> list[Outcome]:
    outcomes: list[Outcome] = []
    partition.append(memoryview(a_batch(*values)), outcomes.append)
    return outcomes


def test_without_limits_there_are_no_rules() -> None:
    assert retention_rules(TopicSettings(retention_ms=-1)) == RetentionRules()
    found = retention_rules(TopicSettings(retention_ms=5, retention_bytes=6))
    assert found == RetentionRules(retention_ms=5, retention_bytes=6)


def test_logs_of_machines_are_always_synced_and_never_expire() -> None:
    wild = TopicSettings(
        flush_policy=FlushPolicy.OS, cleanup_policy=CleanupPolicy.COMPACT, retention_ms=1
    )
    found = internal(wild, LogConfig())
    assert found.flush_policy is FlushPolicy.ALWAYS
    assert found.cleanup_policy is CleanupPolicy.DELETE
    assert (found.retention_ms, found.retention_bytes) == (UNLIMITED, UNLIMITED)
    assert found.segment_bytes == LogConfig().internal_segment_bytes_max
    node = Node(ALONE)
    partition = Partition(node.replica, wild, HandClock(), ProducerConfig(), is_internal=True)
    assert partition.settings.flush_policy is FlushPolicy.ALWAYS


def test_a_topic_is_opened_with_its_own_settings_also_after_a_restart() -> None:
    machine = ABroker()
    for _ in range(2):
        if "small" not in machine.broker.catalog.topics:
            machine.topic("small", segment_bytes="2048", segment_ms="77")
        config = machine.broker.partition("small", 0).replica.log.segments.config
        assert (config.segment_bytes_max, config.segment_age_ms_max) == (2048, 77)
        assert config.index_interval_bytes == SMALL.index_interval_bytes
        machine.broker.stop()
        machine.disk.kill()
        machine.start()


@pytest.mark.setting("segment.bytes")
def test_a_topic_sets_its_segment_size() -> None:
    machine = ABroker()
    small, large = machine.topic("small", segment_bytes="1024"), machine.topic("large")
    for partition in (small, large):
        for _ in range(20):
            produce(partition, b"x" * 100)
    assert machine.segments_of(small) > 1
    assert machine.segments_of(large) == 1


@pytest.mark.setting("segment.jitter.ms")
def test_partitions_roll_early_each_by_its_own_jitter() -> None:
    machine = ABroker()
    plain = machine.topic("plain", segment_ms="100000")
    jittered = [
        machine.topic(f"jittered-{number}", segment_ms="100000", segment_jitter_ms="50000")
        for number in range(5)
    ]
    ages = {one.replica.log.segments.config.segment_age_ms_max for one in jittered}
    assert len(ages) == 5
    assert all(50_000 < age <= 100_000 for age in ages)
    for partition in (plain, *jittered):
        produce(partition, b"x")
    machine.clock.ms += 100_000
    for partition in (plain, *jittered):
        produce(partition, b"x")
    assert machine.segments_of(plain) == 1
    assert [machine.segments_of(one) for one in jittered] == [2] * 5


@pytest.mark.setting("index.interval.bytes")
def test_a_topic_sets_its_index_interval() -> None:
    machine = ABroker()
    sizes = {}
    for interval_bytes in (300, 20_000):
        name = f"every-{interval_bytes}"
        partition = machine.topic(
            name, index_interval_bytes=str(interval_bytes), segment_bytes="4096"
        )
        for _ in range(400):
            produce(partition, b"x" * 50)
            machine.broker.flush()
        machine.sync()
        folder = partition.replica.group
        names = [one for one in machine.disk.list(folder) if one.endswith(".index")]
        sizes[interval_bytes] = sum(machine.disk.open(f"{folder}/{one}").size() for one in names)
        assert len(partition.read(200, 100)) > 0
    assert sizes[20_000] < sizes[300] / 2


@pytest.mark.setting("flush.policy")
@pytest.mark.parametrize(
    ("policy", "is_answered"), [("always", False), ("interval", True), ("os", True)]
)
def test_the_policy_decides_whether_an_answer_waits_for_the_disk(
    policy: str, *, is_answered: bool
) -> None:
    machine = ABroker()
    partition = machine.topic("orders", flush_policy=policy)
    outcomes = produce(partition, b"x")
    machine.broker.flush()
    assert (outcomes == [Outcome.COMMITTED]) is is_answered
    machine.sync()
    assert outcomes == [Outcome.COMMITTED]


@pytest.mark.setting("flush.ms")
def test_a_topic_sets_how_soon_it_is_synced() -> None:
    machine = ABroker()
    soon, late = (
        machine.topic(name, flush_policy="interval", flush_ms=flush_ms).replica.log
        for name, flush_ms in (("soon", "200"), ("late", "5000"))
    )
    machine.tick(200)  # the writes of opening a log are synced by now
    for name in ("soon", "late"):
        produce(machine.broker.partition(name, 0), b"x")
    machine.tick(10)
    assert soon.durable == soon.end
    assert late.durable < late.end
    machine.tick(100)
    assert late.durable == late.end


@pytest.mark.setting("flush.messages")
def test_a_topic_sets_after_how_many_records_it_is_synced() -> None:
    machine = ABroker()
    few, many = (
        machine.topic("few", flush_policy="os", flush_messages="3"),
        machine.topic("many", flush_policy="os"),
    )
    for partition in (few, many):
        produce(partition, b"1", b"2", b"3")
    machine.broker.flush()
    machine.sync()
    assert few.replica.log.durable == few.replica.log.end
    assert many.replica.log.durable < many.replica.log.end


@pytest.mark.parametrize("policy", ["interval", "os"])
def test_answered_records_survive_a_killed_process(policy: str) -> None:
    machine = ABroker()
    partition = machine.topic("orders", flush_policy=policy)
    assert [produce(partition, b"%d" % number) for number in range(10)]
    machine.broker.flush()
    assert partition.high_watermark == 10
    machine.disk.kill()
    machine.start()
    assert machine.broker.partition("orders", 0).high_watermark == 10


def test_after_a_power_loss_a_lazy_topic_serves_what_is_left() -> None:
    machine = ABroker()
    careful, careless = machine.topic("careful"), machine.topic("careless", flush_policy="os")
    produce(careful, b"a")
    produce(careless, b"a")
    produce(careless, b"b")
    machine.broker.flush()
    machine.sync()  # a sync for the strict topic alone
    assert careful.high_watermark == 1
    assert machine.broker.partition("careless", 0).high_watermark == 2
    machine.disk.crash(CrashPolicy.DROP_UNSYNCED)
    machine.start()
    assert machine.broker.partition("careful", 0).high_watermark == 1
    left = machine.broker.partition("careless", 0).high_watermark
    assert left < 2
    produce(machine.broker.partition("careless", 0), b"c")
    machine.broker.flush()
    assert machine.broker.partition("careless", 0).high_watermark == left + 1


@pytest.mark.requirement("LOG-4")
@pytest.mark.complains("disk_full folder=* free_bytes=*")
def test_a_full_disk_refuses_writes_keeps_serving_reads_and_recovers_when_there_is_room() -> None:
    machine = ABroker()
    partition = machine.topic("orders")
    produce(partition, b"before")
    machine.broker.flush()
    machine.sync()
    machine.disk.faults = DiskFaults(full_at_bytes=machine.disk.used_bytes + 20)
    for _ in range(3):
        with pytest.raises(DiskFull):
            produce(partition, b"x" * 100)
        machine.broker.flush()
        machine.tick(3)
    assert len(partition.read(0, 1 << 20)) > 0
    assert machine.failures == []
    machine.disk.faults = DiskFaults()
    machine.tick(3)
    assert partition.high_watermark == 2, "the first refused batch was already in progress"
    outcomes = produce(partition, b"after")
    machine.broker.flush()
    machine.sync()
    assert outcomes == [Outcome.COMMITTED]


def test_a_batch_already_in_progress_to_a_full_disk_is_not_reported_as_refused() -> None:
    """The client would send the records again with a new sequence, and they would be duplicated."""
    machine = ABroker()
    partition = machine.topic("orders")
    machine.disk.faults = DiskFaults(full_at_bytes=machine.disk.used_bytes + 20)
    outcomes: list[Outcome] = []
    partition.append(memoryview(a_batch(b"x" * 100)), outcomes.append, needs_all=True)
    machine.broker.flush()
    with pytest.raises(DiskFull):
        partition.append(memoryview(a_batch(b"y" * 100)), outcomes.append, needs_all=True)
    assert outcomes == []
    machine.disk.faults = DiskFaults()
    machine.tick(3)
    machine.broker.flush()
    machine.sync()
    assert outcomes == [Outcome.COMMITTED]
    assert partition.high_watermark == 1


def test_a_failed_sync_is_still_fatal() -> None:
    machine = ABroker()
    partition = machine.topic("orders")
    machine.disk.fail_next_sync()
    produce(partition, b"x")
    machine.broker.flush()
    machine.sync()
    assert len(machine.failures) == 1
    outcomes = produce(partition, b"y")
    machine.tick(5)
    assert outcomes == []


def until(machine: ABroker, is_done: Callable[[], bool]) -> None:
    for _ in range(500):
        if is_done():
            return
        machine.tick(ms=1_000)
    raise AssertionError("it never comes to that")


@pytest.mark.requirement("LOG-4")
def test_the_catalog_does_not_grow_with_each_change() -> None:
    machine = ABroker()
    machine.topic("orders")
    for number in range(300):
        records = machine.broker.catalog.give_producer_ids(1)
        machine.broker._catalog._host.write(records, lambda _: None)
        machine.broker.flush()
        machine.sync()
        if number % 10 == 0:
            machine.tick(5, ms=1_000)
    assert machine.broker.catalog.next_producer_id == 300
    until(machine, lambda: machine.size_of(CATALOG_GROUP) < 8_000)
    machine.broker.stop()
    machine.disk.crash(CrashPolicy.DROP_UNSYNCED)
    machine.start()
    assert machine.broker.catalog.next_producer_id == 300
    assert "orders" in machine.broker.catalog.topics
