"""A partition on a simulated disk, and batches numbered like an idempotent producer's."""

from kafkaesque.broker.partition.partition import Appended, Partition
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import ProducerConfig
from kafkaesque.entry import Voters
from kafkaesque.record.build import NO_PRODUCER, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import Offset
from tests.broker.nodes import ALONE, Node
from tests.log.logs import START_MS, HandClock

PRODUCER = 7
SMALL_SEGMENTS = TopicSettings(segment_bytes=1024)
OFTEN = ProducerConfig(snapshot_bytes=400, snapshot_at_stop_bytes=1)


def numbered(
    sequence: int,
    *values: bytes,
    producer_id: int = PRODUCER,
    epoch: int = 0,
    at_ms: int = START_MS,
) -> bytes:
    """A numbered batch; without values it has one record that contains the sequence."""
    stamp = ProducerStamp(producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
    return build(*(values or (b"%d" % sequence,)), stamp=stamp, at_ms=at_ms)


def build(*values: bytes, stamp: ProducerStamp = NO_PRODUCER, at_ms: int = START_MS) -> bytes:
    """A batch of records without keys, as it comes from the network."""
    records = [
        Record(offset=place, timestamp_ms=at_ms, key=None, value=value)
        for place, value in enumerate(values)
    ]
    return bytes(build_batch(records, producer=stamp))


class PartitionNode(Node):
    """A node with one partition, on its only replica."""

    def __init__(
        self,
        voters: Voters = ALONE,
        *,
        holds_syncs: bool = False,
        config: ProducerConfig = OFTEN,
        settings: TopicSettings = SMALL_SEGMENTS,
    ) -> None:
        super().__init__(voters, holds_syncs=holds_syncs)
        self.clock = HandClock()
        self.config = config
        self.settings = settings
        self.lead()

    def lead(self) -> None:
        """Put a partition on the replica, and let it lead if it needs no other votes."""
        self.partition = Partition(
            self.replica, self.settings, self.clock, self.config, is_internal=False
        )
        self.sync()
        if len(self.replica.raft.voters.voters) == 1:
            self.replica.campaign()
            self.sync()

    def send(self, batch: bytes, *, needs_all: bool = True) -> tuple[Offset, list[Outcome]]:
        """Append as a client does; the list receives the outcome."""
        appended, outcomes = self.send_for_all(batch, needs_all=needs_all)
        return appended.offset, outcomes

    def send_for_all(
        self, batch: bytes | memoryview, *, needs_all: bool = True
    ) -> tuple[Appended, list[Outcome]]:
        outcomes: list[Outcome] = []
        appended = self.partition.append(memoryview(batch), outcomes.append, needs_all=needs_all)
        self.after_event()
        return appended, outcomes

    def upkeep(self) -> None:
        """Run the partition's upkeep a few times: one to take a snapshot, one to write it."""
        for _ in range(3):
            self.partition.producers.upkeep()
            self.after_event()

    def stop_and_start(self) -> None:
        """Stop cleanly and start again."""
        self.partition.producers.stop()
        self.restart()
        self.lead()

    def crash_and_start(self, policy: CrashPolicy = CrashPolicy.DROP_UNSYNCED) -> None:
        """Lose power and start again."""
        self.disk.crash(policy)
        self.start()
        self.lead()
