"""The clients of a simulated cluster of brokers: their requests, and what they were promised.

They ask any broker for the leader, as Kafka's clients ask for metadata, and go there. A broker that
is killed answers nothing: the outcome of requests to it is then unknown, for the client as for us.
"""

from collections.abc import Callable
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.groups.group_commands import (
    Answer,
    Commit,
    Committed,
    Fetched,
    FetchOffsets,
    Identity,
)
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation
from kafkaesque.types import GroupId

_TOPICS_MAX = 4
_BATCHES_MAX = 3
"""Sent to a partition in one event."""

_GROUPS = ("readers", "writers")
_PLACE = (b"\xff" * 16, 0)
"""The partition the groups commit offsets for; it does not exist, so no client can delete it."""


class BrokerClients:
    """All clients of the cluster."""

    def __init__(self, world: BrokerWorld) -> None:
        self.promised: dict[str, bytes] = {}
        """Topics confirmed to a client, with their ids, that no client asked to delete."""
        self.acknowledged: dict[GroupId, int] = {}
        self.offsets: dict[str, int] = dict.fromkeys(_GROUPS, 0)
        """The newest offset confirmed to each group."""
        self._attempted: dict[str, int] = dict.fromkeys(_GROUPS, 0)
        self._world = world
        self._chance = world.chance
        self._is_quiet = False
        self._written = 0
        self._topics_made = 0
        self._unwanted: set[str] = set()
        """Topics that a client asked to delete, maybe before their creation was answered."""

    def begin(self) -> None:
        """Start to send requests."""
        self._world.schedule(1, self._want)

    def stop(self) -> None:
        """Send no more requests."""
        self._is_quiet = True

    def _want(self) -> None:
        if self._is_quiet:
            return
        pause = 1 + self._chance.randrange(self._world.settings.work_pause_max)
        self._world.schedule(pause, self._want)
        able = self._world.able()
        if not able:
            return
        machine = self._chance.choice(able)
        (wish,) = self._chance.choices(
            (
                self._produce,
                self._read,
                self._commit,
                self._fetch,
                self._create,
                self._delete,
                self._take_id,
                self._delete_records,
            ),
            weights=(60, 10, 10, 6, 6, 1, 3, 2),
        )
        self._try(machine, wish)

    def _try(self, machine: BrokerNode, wish: Callable[[Broker], None]) -> None:
        try:
            self._world.ask_broker(machine, wish)
        except KafkaesqueError as error:
            self._world.count(f"refused: {type(error).__name__}")

    # ── topics ───────────────────────────────────────────────────────────────────────────────

    def _create(self, broker: Broker) -> None:
        if len(broker.catalog.topics) > _TOPICS_MAX:
            return
        self._topics_made += 1
        name = f"topic-{self._topics_made}"

        def answer(error: KafkaesqueError | None) -> None:
            if error is None:
                self._world.count("topics created")
                topic = broker.committed_catalog.machine.topics.get(name)
                if topic is not None and name not in self._unwanted:  # else its own copy lags
                    self.promised[name] = topic.topic_id
            else:
                self._world.count(f"create: {type(error).__name__}")

        replication = self._chance.choice([1, 3, 3, self._world.settings.brokers])
        copies = min(replication, self._chance.choice([1, 1, 2, 3]))
        settings = {"min.insync.replicas": str(copies)}
        if self._world.settings.retention_ms is not None:
            settings["retention.ms"] = str(self._world.settings.retention_ms)
            if self._topics_made % 2:
                settings["message.timestamp.type"] = "LogAppendTime"
        if self._world.settings.segment_bytes is not None:
            settings["segment.bytes"] = str(self._world.settings.segment_bytes)
        broker.create_topic(
            name, 1 + self._chance.randrange(3), settings, answer, replication=replication
        )

    def _delete(self, broker: Broker) -> None:
        names = sorted(name for name in broker.catalog.topics if name.startswith("topic-"))
        if names:
            name = self._chance.choice(names)
            self.promised.pop(name, None)
            self._unwanted.add(name)
            broker.delete_topic(name, ignore)
            self._world.count("topics deleted")

    # ── records ──────────────────────────────────────────────────────────────────────────────

    def _produce(self, broker: Broker) -> None:
        topics = [t for t in broker.catalog.topics.values() if not t.is_internal]
        if topics:
            topic = self._chance.choice(topics)
            index = self._chance.randrange(topic.partitions)
            self._world.schedule(1, partial(self.produce_to, broker, topic, index))

    def produce_to(self, broker: Broker, topic: Topic, index: int) -> None:
        """Write to a partition at the leader that this broker names."""
        leader = broker.partition_leader(topic, index).node
        machine = None if leader is None else self._world.nodes[leader]
        if machine is None or machine not in self._world.able():
            self._world.count("no leader known")
            return
        # Some send several batches at once: they are gathered, and written in one write.
        count = 1 + self._written % _BATCHES_MAX

        def append(found: Broker) -> None:
            for _ in range(count):
                self._append(found.partition(topic.name, index))

        self._try(machine, append)

    def _append(self, partition: Partition) -> None:
        self._written += 1
        now_ms = self._world.clock.now_ms()
        records = [
            Record(
                offset=place,
                timestamp_ms=now_ms,
                key=None,
                value=f"{self._written}.{place}".encode().ljust(self._world.settings.value_bytes),
            )
            for place in range(1 + self._chance.randrange(3))
        ]
        replica = partition.replica
        next_offset = replica.log.offset_at(replica.raft.end)
        end = replica.raft.end + len(records)
        copies = partition.settings.min_insync_replicas

        def done(outcome: Outcome) -> None:
            if outcome is not Outcome.COMMITTED:
                self._world.count("too few copies" if outcome is Outcome.TOO_FEW else "unknown")
                return
            group = replica.group
            self._world.checks.acknowledged(replica, end, copies)
            self.acknowledged[group] = self.acknowledged.get(group, 0) + 1
            values = [record.value for record in records]
            self._world.groups[group].acknowledge(next_offset, values)
            self._world.watch_now(replica)

        batch = memoryview(bytearray(build_batch(records)))
        appended = partition.append(batch, done, needs_all=True)
        if appended.offset != next_offset:
            raise Violation(f"a batch was given offset {appended.offset}, not {next_offset}")

    def _delete_records(self, broker: Broker) -> None:
        topics = [t for t in broker.catalog.topics.values() if t.name.startswith("topic-")]
        if not topics:
            return
        topic = self._chance.choice(topics)
        index = self._chance.randrange(topic.partitions)
        leader = broker.partition_leader(topic, index).node
        machine = None if leader is None else self._world.nodes[leader]
        if machine is None or machine not in self._world.able():
            return

        def ask(found: Broker) -> None:
            partition = found.partition(topic.name, index)
            first, end = partition.first_offset, partition.high_watermark
            if end > first:
                offset = first + 1 + self._chance.randrange(end - first)
                self._world.groups[partition.replica.group].delete_below(offset)
                found.delete_records(topic.name, index, offset, ignore)
                self._world.count("deletions of records")

        self._world.schedule(1, lambda: self._able_try(machine, ask))

    def _read(self, broker: Broker) -> None:
        """Read from any replica, as a consumer in its rack may: every record must be committed.

        A deposed leader is asked for records that another has committed since.
        """
        topics = [t for t in broker.topics.names if not broker.topics.topic(t).is_internal]
        found = [one for name in topics for one in broker.topics.partitions(name)]
        if not found:
            return
        partition = self._chance.choice(found)
        checks = self._world.groups[partition.replica.group]
        offset = self._chance.randrange(partition.replica.log.end_offset + 2)
        is_leading = partition.replica.is_serving
        if is_leading and partition.high_watermark < checks.committed_end_offset:
            offset = checks.committed_end_offset
            self._world.count("asked a leader of the past")
        read = partition.read if is_leading else partition.read_as_follower
        try:
            checks.was_read(read(offset, 1 << 16))
        except OffsetOutOfRange:
            if is_leading:
                checks.was_refused(offset, partition.first_offset)
            raise
        self._world.count("read from a leader" if is_leading else "read from a follower")

    def _take_id(self, broker: Broker) -> None:
        def give(given: int | KafkaesqueError) -> None:
            if isinstance(given, int):
                self._world.checks.gave_producer_id(given)
                self._world.count("producer ids")

        broker.next_producer_id(give)

    # ── groups ───────────────────────────────────────────────────────────────────────────────

    def _coordinator(self, broker: Broker, group: str) -> BrokerNode | None:
        """Find the coordinator as FindCoordinator does, which creates its topic."""
        node = broker.coordinator_of(group)
        if node is None:
            broker.coordinators.when_ready(ignore)
            return None
        machine = self._world.nodes[node]
        return machine if machine in self._world.able() else None

    def _commit(self, broker: Broker) -> None:
        group = self._chance.choice(_GROUPS)
        machine = self._coordinator(broker, group)
        if machine is None:
            return
        self._attempted[group] += 1
        wanted = self._attempted[group]
        command = Commit(
            group=group,
            generation=-1,
            member=Identity(member_id=""),
            offsets=((_PLACE, wanted, -1, ""),),
        )

        def reply(answer: Answer) -> None:
            if isinstance(answer, Committed):
                self._world.count("offsets committed")
                self.offsets[group] = max(self.offsets[group], wanted)

        def ask(found: Broker) -> None:
            coordinator = found.coordinators.of(group)
            coordinator.ask(command, reply)

        self._world.schedule(1, lambda: self._able_try(machine, ask))

    def _fetch(self, broker: Broker) -> None:
        group = self._chance.choice(_GROUPS)
        self.fetch_from(broker, group, ignore)

    def fetch_from(self, broker: Broker, group: str, then: Callable[[int], None]) -> None:
        """Ask a group's coordinator for its offset, which must be one that was committed."""
        machine = self._coordinator(broker, group)
        if machine is None:
            return
        least = self.offsets[group]

        def reply(answer: Answer) -> None:
            if isinstance(answer, Fetched):
                found = answer.offsets.get(_PLACE)
                offset = 0 if found is None else found.offset
                if not least <= offset <= self._attempted[group]:
                    raise Violation(f"group {group} was promised {least} and finds {offset}")
                self._world.count("offsets fetched")
                then(offset)

        def ask(found: Broker) -> None:
            found.coordinators.of(group).ask(FetchOffsets(group=group), reply)

        self._world.schedule(1, lambda: self._able_try(machine, ask))

    def _able_try(self, machine: BrokerNode, wish: Callable[[Broker], None]) -> None:
        if machine in self._world.able():
            self._try(machine, wish)
