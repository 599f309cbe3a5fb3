"""The members of all share groups of a simulated cluster, their topic, and its producer."""

import random
from collections.abc import Callable
from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.machine_hosting.replay import Replay
from kafkaesque.broker.queues.share_calls import SHARE_TOPIC
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.share_records import StartKey, StartSaved, from_record
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from kafkaesque.machines.queues.share_values import ShareLimits
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_sharer import PARTITIONS, QUEUE, Sharer
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import GroupChecks, Violation, values
from kafkaesque.sim.share_checks import ShareOracle, check_starts
from kafkaesque.topic_settings import FlushPolicy
from kafkaesque.types import GroupId, NodeId, Offset

LOCK_MS = 1_000
"""The shortest that is allowed."""

_PAUSE = 40
_COUNTS = (2, 3, 4)
_LIMITS = (2, 3, 5)
_BATCHES = (1, 3, 10, 100)
"""How many records a producer sends at once: a chunk of offsets has 1,024."""


class Sharers:
    """As many members as the world's settings say, in one group or two."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = chance = random.Random(f"share groups of {world.seed}")
        wanted = world.settings.sharers
        count = chance.choice(_COUNTS) if wanted is None else wanted
        self._batch = chance.choice(_BATCHES)
        self._limits = ShareLimits(lock_ms=LOCK_MS, delivery_max=chance.choice(_LIMITS))
        self._groups = [f"workers-{number}" for number in range(1 + (count > 2))]
        self._oracle = ShareOracle(world.count, self._limits)
        self._all = [
            Sharer(
                world, chance, f"s{number}", self._groups[number % len(self._groups)], self._oracle
            )
            for number in range(count)
        ]
        self._produced = 0
        self._is_paused = False

    def begin(self) -> None:
        """Start to send requests."""
        if self._all:
            self._world.schedule(1, self._work)
        for one in self._all:
            self._world.schedule(1 + self._chance.randrange(_PAUSE), one.go_on)

    def pause(self) -> None:
        """Send no more requests for now."""
        self._is_paused = True
        for one in self._all:
            one.is_paused = True

    def calm_down(self) -> None:
        """Let the members go on, and accept whatever they get; nothing more is produced."""
        for one in self._all:
            one.is_paused, one.is_steady = False, True

    # ── the topic ────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        """Produce some records, or create the topic."""
        if self._is_paused:
            return
        self._world.schedule(1 + self._chance.randrange(_PAUSE), self._work)
        able = self._world.able()
        broker = self._chance.choice(able).broker if able else None
        if broker is None:
            return
        topic = broker.catalog.topics.get(QUEUE)
        if topic is None:
            self._ask(broker.node, self._create)
            return
        index = self._chance.randrange(PARTITIONS)
        checks = self._world.groups.get(group_of(topic, index))
        if checks is not None:
            checks.may_forget = self._world.settings.forgets
        node = broker.partition_leader(topic, index).node
        if node is not None:
            self._world.schedule(1, partial(self._ask, node, partial(self._produce, index)))

    def _create(self, broker: Broker) -> None:
        """Set the groups' settings first: who knows the topic knows them as well."""
        wanted = {
            "share.auto.offset.reset": "earliest",
            "share.delivery.count.limit": str(self._limits.delivery_max),
            "share.record.lock.duration.ms": str(LOCK_MS),
        }
        known = broker.committed_catalog.machine.group_settings
        missing = [group for group in self._groups if known.get(group) != wanted]
        if missing:
            broker.set_group_settings(missing[0], wanted, ignore)
        else:
            settings = {"retention.ms": "-1"}
            if self._world.settings.forgets:
                settings["flush.policy"] = FlushPolicy.OS
            broker.create_topic(QUEUE, PARTITIONS, settings, ignore)

    def _produce(self, index: int, broker: Broker) -> None:
        now_ms = self._world.clock.now_ms()
        records = [
            Record(offset=place, timestamp_ms=now_ms, key=None, value=b"job-%d" % self._next())
            for place in range(1 + self._chance.randrange(self._batch))
        ]
        batch = memoryview(bytearray(build_batch(records)))
        broker.partition(QUEUE, index).append(batch, ignore, needs_all=True)

    def _next(self) -> int:
        self._produced += 1
        return self._produced

    def _ask(self, node: int, question: Callable[[Broker], None]) -> None:
        machine = self._world.nodes[node]
        if machine not in self._world.able():
            return
        try:
            self._world.ask_broker(machine, question)
        except KafkaesqueError as error:
            self._world.count(f"sharers refused: {type(error).__name__}")

    # ── at the end ───────────────────────────────────────────────────────────────────────────

    def are_done(self) -> bool:
        """Return whether every group is done with every record, and that is written."""
        if not self._all:
            return True
        topic = self._topic(QUEUE)
        if topic is None:
            return True
        starts = self._starts()
        ends = [self._end(topic, index) for index in range(PARTITIONS)]
        return None not in ends and all(
            starts.get((group, index)) == end
            for group in self._groups
            for index, end in enumerate(ends)
        )

    def _topic(self, name: str) -> Topic | None:
        for machine in self._world.nodes.values():
            if machine.broker is not None:
                found = machine.broker.committed_catalog.machine.topics.get(name)
                if found is not None:
                    return found
        return None

    def _end(self, topic: Topic, index: int) -> Offset | None:
        replica = self._world.leading(group_of(topic, index))
        return None if replica is None else replica.high_watermark

    def _starts(self) -> dict[tuple[str, int], Offset]:
        """Return where each group begins, by partition, as far as it is committed."""
        starts: dict[tuple[str, int], Offset] = {}
        for machine in self._world.nodes.values():
            if machine.broker is None:
                continue
            for coordinator in machine.broker.shares.desk.coordinators.all:
                states, replica = coordinator.machine, coordinator.replica
                if states is None or replica.raft.commit < replica.raft.end:
                    continue
                for record in states.records():
                    key, value = from_record(record)
                    if isinstance(key, StartKey) and isinstance(value, StartSaved):
                        starts[key.group, key.partition] = value.start
        return starts

    def check_end(self) -> None:
        """Every committed record was settled or given up; every copy of the state is the same."""
        topic, state = self._topic(QUEUE), self._topic(SHARE_TOPIC)
        if not self._all or topic is None:
            return
        for index in range(PARTITIONS):
            committed = _values(self._world.groups[group_of(topic, index)])
            for group in self._groups:
                self._oracle.accounted_for(group, index, committed)
        if state is None:
            return
        for index in range(state.partitions):
            group = group_of(state, index)
            check_starts(self._world.groups[group])
            self._check_copies(group)

    def _check_copies(self, group: GroupId) -> None:
        """Replay each copy of a log: all come to the same state, and the leader has it."""
        states: dict[frozenset[MachineRecord], NodeId] = {}
        for machine in self._world.nodes.values():
            broker = machine.broker
            if broker is None or group not in broker.replicas.by_group:
                continue
            log = broker.replicas.by_group[group].log
            replay = Replay(ShareStates(ShareStateLimits()), log, machine.store.snapshots(group))
            end = log.end
            for slices in (replay.load(), replay.advance(lambda end=end: end)):  # type: ignore[misc]
                for _ in slices:
                    pass
            states[frozenset(replay.machine.records())] = machine.node
            for coordinator in broker.shares.desk.coordinators.all:
                if coordinator.replica.group == group and coordinator.machine is not None:
                    states[frozenset(coordinator.machine.records())] = machine.node
        if len(states) != 1:
            raise Violation(f"brokers {sorted(states.values())} have another state of {group}")


def _values(checks: GroupChecks) -> dict[Offset, bytes | None]:
    """Return the value of every committed record."""
    return {
        offset: value
        for entry in checks.committed.values()
        if isinstance(entry.payload, bytes)
        for offset, (_, value) in values(entry).items()
    }
