"""The topics of one node: applies the committed catalog to them.

    decided --committed--> open --tombstone committed--> closed, forgotten, renamed, removed

Every broker does so on its own, from its own copy of the catalog, for its own replicas.

A topic is known by its name only while it is open here; its id distinguishes it from earlier topics
of that name. Partitions come to this broker and leave it while the topic is open, as their moves
start and end. `broker/storage/topic_folders.py` describes what happens to their folders.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Protocol, TypeAlias

from kafkaesque import events as happened
from kafkaesque.broker.cluster.replica_set import first_voters
from kafkaesque.broker.cluster.serving_waits import ServingWaits, Slot
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.partition.partition_errors import NotFilled, NotHere
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.storage.old_copy_restart import Held
from kafkaesque.broker.storage.store import Store
from kafkaesque.broker.storage.topic_folders import TopicFolders
from kafkaesque.clock import Clock
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import KafkaesqueError, LogError, UnknownTopic
from kafkaesque.log.errors import CorruptLog
from kafkaesque.machines.catalog.catalog import Catalog, Topic
from kafkaesque.machines.catalog.group_names import folder_of, group_of
from kafkaesque.topic_settings import TopicSettings, resolve
from kafkaesque.types import GroupId, NodeId, Offset

__all__ = ["Answer", "Replicas", "Slot", "Topics"]

HIGH_WATERMARK: Offset = -1
"""Stands for the high watermark as an offset to trim to."""

OPENED_AT_ONCE_MAX = 250
"""Partitions that a start opens before it lets clients in, and then between two rounds of the disk:
requests wait that long. Chosen, not measured; all 250 cost about half a second of CPU."""

Answer: TypeAlias = Callable[[KafkaesqueError | None], None]
"""Called with None when a change is committed, else with the error."""


class Replicas(Protocol):
    """Opens and drops the replicas of this node."""

    def open_replica(self, topic: Topic, index: int) -> Replica:
        """Open a partition's replica, and start its log if there is none; raises LogError."""
        ...

    def refill_replica(
        self, topic: Topic, index: int, damage: CorruptLog, refilled: Callable[[], None]
    ) -> bool:
        """Have others fill a log that cannot be opened; False if there are none."""
        ...

    def forget_refill(self, group: GroupId) -> None:
        """Cancel the refill of a log."""
        ...

    def take_damaged(self) -> Sequence[Replica]:
        """Return the replicas that stopped for damage since the last call."""
        ...

    def drop_replica(self, group: GroupId) -> None:
        """Give a replica no more ticks."""
        ...

    def leave_replica(self, group: GroupId) -> None:
        """Give a replica no more ticks whose group continues elsewhere."""
        ...

    def prefer_leaders(self, group: GroupId, order: tuple[NodeId, ...]) -> None:
        """Let the first of these lead a group whenever it can; the others are next in order."""
        ...

    def new_partition(self, replica: Replica, settings: TopicSettings, topic: Topic) -> Partition:
        """Create the partition of a replica, and take care of it from now on."""
        ...

    def topic_opened(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Note that all of a topic serves, or more of it than before."""
        ...

    def slots_changed(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Note that partitions of a topic came to this broker or left it."""
        ...

    def topic_closed(self, topic: Topic) -> None:
        """Note that a topic is gone."""
        ...


class _OpenTopic:
    """A topic as last committed, and its partitions."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.slots: list[Slot] = []


class Topics:
    """The topics that are open here; callers outside the broker come through `Broker`."""

    def __init__(
        self,
        node: NodeId,
        catalog: Catalog,
        replicas: Replicas,
        store: Store,
        clock: Clock,
        waits: ServingWaits,
        defaults: Callable[[], TopicSettings],
    ) -> None:
        self._node = node
        self._catalog = catalog
        self._replicas = replicas
        self._store = store
        self._waits = waits
        self._defaults = defaults
        self._is_started = False
        self._by_name: dict[str, _OpenTopic] = {}
        self._names: dict[bytes, str] = {}
        self._folders = TopicFolders(store, clock, catalog)
        self._moving: dict[bytes, Topic] = {}
        self._unopened: dict[GroupId, bytes] = {}
        """Partitions of an earlier run that are here and not open yet, and the ids of their topics,
        in the order in which they will be opened."""

    # ── looking up ───────────────────────────────────────────────────────────────────────────

    @property
    def names(self) -> Sequence[str]:
        """The names of all open topics, sorted."""
        return sorted(self._by_name)

    def __contains__(self, name: str) -> bool:
        """Whether a topic of this name is open."""
        return name in self._by_name

    def topic(self, name: str) -> Topic:
        """Return a topic as last committed; raises UnknownTopic."""
        return self._find(name).topic

    def slots(self, name: str) -> Sequence[Slot]:
        """Return every partition in order, or why it is offline; raises UnknownTopic."""
        return self._find(name).slots

    def partitions(self, name: str) -> list[Partition]:
        """Return the partitions that are not offline, in order; raises UnknownTopic."""
        return [slot for slot in self._find(name).slots if isinstance(slot, Partition)]

    @property
    def open_partitions(self) -> dict[str, list[Partition]]:
        """Every topic's partitions that can be used here."""
        return {name: self.partitions(name) for name in self.names}

    def partition(self, name: str, index: int) -> Partition:
        """Return one partition; raises UnknownTopic, PartitionOffline, NotHere."""
        found = self._by_name.get(name) or self._find(name)
        slots = found.slots
        if not 0 <= index < len(slots):
            raise UnknownTopic(f"topic {name} has no partition {index}")
        slot = slots[index]
        if isinstance(slot, Partition):
            return slot
        raise type(slot)(str(slot))  # a new one: each raise extends the traceback

    @property
    def moving(self) -> Iterable[Topic]:
        """The topics that have partitions on the move, unordered."""
        return self._moving.values()

    def each_partition(self) -> Iterator[Partition]:
        """Yield all that are not offline, while topics may come and go."""
        for name in list(self._by_name):
            found = self._by_name.get(name)
            if found is not None:
                yield from (slot for slot in list(found.slots) if isinstance(slot, Partition))

    # ── records ──────────────────────────────────────────────────────────────────────────────

    def delete_records(self, name: str, index: int, offset: Offset, answer: Answer) -> None:
        """Delete the records before an offset, and answer when that would survive a crash.

        Raises UnknownTopic, OffsetOutOfRange, or why the partition does not serve.
        """
        found = self.partition(name, index)
        if offset == HIGH_WATERMARK:
            offset = found.high_watermark
        self._trim(found, offset, answer)

    # ── the life of topics ───────────────────────────────────────────────────────────────────

    def start(self, ready: Callable[[], None]) -> None:
        """Open the topics of the catalog; `ready` is called when the first partitions serve.

        Internal topics come first: clients find their coordinators there. The rest follows between
        rounds of the disk, and each partition serves as soon as it is open.
        """
        self._is_started = True
        self._folders.tidy()
        self._catalog.take_changed()
        topics = sorted(self._catalog.topics.values(), key=lambda topic: not topic.is_internal)
        held: dict[GroupId, Held] = {}
        for topic in topics:
            for index in range(topic.partitions):
                holders = topic.holders(index)
                if self._node in holders:
                    group = group_of(topic, index)
                    self._unopened[group] = topic.topic_id
                    voters = first_voters(topic, index, self._node)
                    held[group] = Held(voters=voters, is_alone=len(holders) == 1)
        self._store.settle(held)
        self._take_next()
        self._open(topics)
        first = [slot for slot in self._all_slots() if slot[0] not in self._unopened]
        self._waits.until_served(first, ready)

    def _take_next(self) -> dict[bytes, None]:
        """Schedule the next partitions to be opened, and return the ids of their topics."""
        if len(self._unopened) > OPENED_AT_ONCE_MAX:
            self._store.flusher.after_next_round(self._open_next)
        groups = list(islice(self._unopened, OPENED_AT_ONCE_MAX))
        return {self._unopened.pop(group): None for group in groups}

    def _open_next(self) -> None:
        found = [self._catalog.topic_by_id(topic_id) for topic_id in self._take_next()]
        self._open([topic for topic in found if topic is not None])

    def follow(self) -> None:
        """Apply the changes of the catalog, once started."""
        if not self._is_started:
            return
        changed: list[Topic] = []
        for topic_id in self._catalog.take_changed():
            topic = self._catalog.topic_by_id(topic_id)
            if topic is not None:
                changed.append(topic)
            elif topic_id in self._names:
                self._close(self._by_name[self._names[topic_id]].topic)
            else:
                self._catalog.buried.discard(topic_id)  # it was never here
        self._open(changed)

    def configure(self, producers: ProducerConfig) -> None:
        """Apply this broker's settings to everything that is open."""
        for found in self._by_name.values():
            settings = resolve(found.topic.settings, self._defaults())
            for slot in found.slots:
                if isinstance(slot, Partition):
                    slot.configure(settings)
                    slot.producers.configure(producers)

    def when_served(self, name: str, then: Callable[[], None]) -> None:
        """Call back when every partition of a topic has a leader, or none can be expected soon."""
        found = self._by_name.get(name)
        if found is None:  # deleted meanwhile
            then()
            return
        self._waits.until_served(_slots_of(found), then)

    def when_led(self, groups: Iterable[GroupId], then: Callable[[], None]) -> None:
        """Call back when each group has a reachable leader, or has had none for long."""
        self._waits.until_led(groups, then)

    def tick(self) -> None:
        """Advance one tick."""
        for replica in self._replicas.take_damaged():
            self._refill(replica)
        self._waits.tick()
        self._folders.tick()

    @property
    def is_tidy(self) -> bool:
        """Whether no folder of a deleted topic or moved partition waits to be removed."""
        return self._folders.is_idle

    def _all_slots(self) -> list[tuple[GroupId, Slot]]:
        return [slot for found in self._by_name.values() for slot in _slots_of(found)]

    def _open(self, topics: Sequence[Topic]) -> None:
        """Open topics, or grow those that are open.

        They campaign together, so that two rounds of the disk elect a thousand leaders.
        """
        for topic in topics:
            self._open_topic(topic)
        for topic in topics:
            self.when_served(topic.name, partial(self._opened, topic))

    def _opened(self, topic: Topic) -> None:
        found = self._by_name.get(topic.name)
        if found is not None and found.topic.topic_id == topic.topic_id:  # else it was deleted
            self._replicas.topic_opened(topic, found.slots)

    def _open_topic(self, topic: Topic) -> None:
        found = self._by_name.get(topic.name)
        if found is None:
            found = self._by_name[topic.name] = _OpenTopic(topic)
            self._names[topic.topic_id] = topic.name
        assert found.topic.topic_id == topic.topic_id, "a name is free before it is given again"
        if topic.moves != found.topic.moves:
            self._tell_of_moves(found.topic, topic)
        found.topic = topic
        if topic.moves:
            self._moving[topic.topic_id] = topic
        else:
            self._moving.pop(topic.topic_id, None)
        settings = resolve(topic.settings, self._defaults())
        for partition in self.partitions(topic.name):
            partition.configure(settings)
        has_changed = False
        for index, slot in enumerate(found.slots):
            is_held = self._node in topic.holders(index)
            if is_held == isinstance(slot, NotHere):
                found.slots[index] = self._new_slot(topic, index, settings, slot)
                has_changed = True
            if is_held:
                self._replicas.prefer_leaders(group_of(topic, index), topic.order(index))
        for index in range(len(found.slots), topic.partitions):
            found.slots.append(self._new_slot(topic, index, settings))
        if has_changed:
            self._replicas.slots_changed(topic, found.slots)

    def _new_slot(
        self, topic: Topic, index: int, settings: TopicSettings, before: Slot | None = None
    ) -> Slot:
        """Open a partition that is now held here, or leave one that no longer is."""
        group = group_of(topic, index)
        is_held = self._node in topic.holders(index)
        if is_held and group in self._unopened:
            return NotHere(f"partition {index} of topic {topic.name} is not open yet")
        if is_held and not self._folders.is_leaving(group):
            return self._open_slot(topic, index, settings)
        if not is_held:
            self._unopened.pop(group, None)
            self._replicas.forget_refill(group)
            self._leave(topic, group, before)
        return NotHere(f"partition {index} of topic {topic.name} is not on this broker")

    def _open_slot(self, topic: Topic, index: int, settings: TopicSettings) -> Slot:
        try:
            replica = self._replicas.open_replica(topic, index)
        except CorruptLog as damage:
            return self._unfilled_slot(topic, index, damage)
        except LogError as error:
            return self._offline(group_of(topic, index), error)
        partition = self._replicas.new_partition(replica, settings, topic)
        if topic.preferred(index) == self._node:  # the other replicas wait
            replica.campaign()
        return partition

    def _unfilled_slot(self, topic: Topic, index: int, damage: CorruptLog) -> Slot:
        refilled = partial(self._open_again, topic)
        if self._replicas.refill_replica(topic, index, damage, refilled):
            return NotFilled(f"partition {index} of topic {topic.name} waits to be refilled")
        return self._offline(group_of(topic, index), damage)

    def _refill(self, replica: Replica) -> None:
        """Have others fill the log of a replica that stopped for damage."""
        damage = replica.error
        for found in self._by_name.values():
            for index, slot in enumerate(found.slots):
                if isinstance(slot, Partition) and slot.replica is replica:
                    assert isinstance(damage, CorruptLog), "it stopped for that"
                    slot.leave()
                    self._replicas.leave_replica(replica.group)
                    found.slots[index] = self._unfilled_slot(found.topic, index, damage)
                    self._replicas.slots_changed(found.topic, found.slots)
                    return

    def _leave(self, topic: Topic, group: GroupId, slot: Slot | None) -> None:
        """Give up the local replica of a partition that the catalog places on other brokers."""
        if isinstance(slot, Partition):
            slot.leave()
            self._replicas.leave_replica(group)
        if not self._folders.has_remains(group) or self._folders.is_leaving(group):
            return

        self._folders.leave(group, partial(self._open_again, topic))  # it may have come back

    def _open_again(self, topic: Topic) -> None:
        """Open the partitions of a topic that could not be opened before, if it still exists."""
        found = self._by_name.get(topic.name)
        if found is not None and found.topic.topic_id == topic.topic_id:
            self._open([found.topic])

    def _close(self, topic: Topic) -> None:
        """Stop serving a topic; its folder is removed once the journal has forgotten it."""
        found = self._by_name.pop(topic.name)
        assert found.topic.topic_id == topic.topic_id, "commits come in order"
        del self._names[topic.topic_id]
        self._moving.pop(topic.topic_id, None)
        for index, slot in enumerate(found.slots):
            group = group_of(topic, index)
            self._unopened.pop(group, None)
            if isinstance(slot, Partition):
                slot.close()
            self._replicas.drop_replica(group)
            if group in self._store.journal.groups:
                self._store.forget(group)
        self._folders.bury(topic.topic_id, folder_of(topic))
        self._replicas.topic_closed(topic)

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _offline(self, group: GroupId, error: LogError) -> PartitionOffline:
        self._store.events.tell(happened.PartitionOffline(partition=group, reason=str(error)))
        return PartitionOffline(f"this partition is offline: {error}")

    def _tell_of_moves(self, before: Topic, topic: Topic) -> None:
        """Report moves that have started or ended, where the partition is held."""
        for index, move in sorted(topic.moves.items()):
            known = before.moves.get(index)
            is_new = known is None or known.number != move.number
            if is_new and self._node in topic.holders(index):
                group, source = group_of(topic, index), topic.replicas[index]
                begun = happened.MoveBegun(partition=group, source=source, to=move.nodes)
                self._store.events.tell(begun)
        for index in sorted(before.moves.keys() - topic.moves.keys()):
            if self._node in before.holders(index):
                group, nodes = group_of(topic, index), topic.replicas[index]
                self._store.events.tell(happened.MoveEnded(partition=group, nodes=nodes))

    def _find(self, name: str) -> _OpenTopic:
        found = self._by_name.get(name)
        if found is None:
            raise UnknownTopic(f"there is no topic {name}")
        return found

    def _trim(self, partition: Partition, offset: Offset, answer: Answer) -> None:
        is_trimmed = partition.trim(offset)

        def look() -> None:
            try:
                if not is_trimmed:
                    self._trim(partition, offset, answer)
                    return
            except KafkaesqueError as error:
                answer(error)
                return
            if partition.is_settled:
                answer(None)
            elif partition.replica.error is not None:
                answer(PartitionOffline(str(partition.replica.error)))
            else:
                self._store.flusher.after_next_round(look)

        self._store.flusher.after_next_round(look)


def _slots_of(found: _OpenTopic) -> list[tuple[GroupId, Slot]]:
    return [(group_of(found.topic, index), slot) for index, slot in enumerate(found.slots)]
