"""The topics of one node: each change is committed to the catalog first, then carried out here.

    decided --committed--> open --tombstone committed--> closed, forgotten, renamed, removed

A topic is known by its name only while it is open here; its id keeps it apart from namesakes that
were before it. A crash may come between any two steps of a deletion: the tombstone in the catalog,
or the folder's new name, says how to go on. What neither speaks of is left alone.
"""

import logging
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeAlias

from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.removal import Removal
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.store import Store
from kafkaesque.broker.watermark import Outcome
from kafkaesque.clock import Clock
from kafkaesque.errors import (
    KafkaesqueError,
    LogError,
    OutcomeUnknown,
    PartitionOffline,
    UnknownTopic,
)
from kafkaesque.machines.catalog import Catalog, Topic
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.topic_settings import TopicSettings, resolve
from kafkaesque.types import GroupId, Offset

log = logging.getLogger(__name__)

HIGH_WATERMARK: Offset = -1
"""Stands for the high watermark where an offset to trim to is given."""

_NAME_CHARS_IN_PATH = 180
_FOLDER = re.compile(r".+\.([0-9a-f]{32})")
_FOLDERS_TOLD_MAX = 20

Answer: TypeAlias = Callable[[KafkaesqueError | None], None]
"""Told None when a change is committed, else what went wrong."""

Slot: TypeAlias = Partition | PartitionOffline
"""One of a topic's partitions, or what keeps it from being used."""


class Replicas(Protocol):
    """Who opens and drops the replicas of this node."""

    def open_replica(self, group: GroupId) -> Replica:
        """Open a group's replica, beginning its log if there is none; raises LogError."""
        ...

    def drop_replica(self, group: GroupId) -> None:
        """Let a replica have no more ticks."""
        ...

    def new_partition(self, replica: Replica, settings: TopicSettings, topic: Topic) -> Partition:
        """Put the front of a partition before its replica, and look after it from now on."""
        ...


class _OpenTopic:
    """A topic as it was last committed, and its partitions."""

    def __init__(self, topic: Topic) -> None:
        self.topic = topic
        self.slots: list[Slot] = []


class Topics:
    """The topics that are open here; the broker's callers come through `Broker`."""

    def __init__(
        self, catalog: MachineHost[Catalog], replicas: Replicas, store: Store, clock: Clock
    ) -> None:
        self._catalog = catalog
        self._replicas = replicas
        self._store = store
        self._by_name: dict[str, _OpenTopic] = {}
        self._removal = Removal(store.disk, clock)

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    @property
    def names(self) -> Sequence[str]:
        """The names of all topics that are open, in the order of their names."""
        return sorted(self._by_name)

    def topic(self, name: str) -> Topic:
        """Return a topic as it was last committed; raises UnknownTopic."""
        return self._find(name).topic

    def slots(self, name: str) -> Sequence[Slot]:
        """Return every partition in order, or what keeps it offline; raises UnknownTopic."""
        return self._find(name).slots

    def partitions(self, name: str) -> list[Partition]:
        """Return those partitions that are not offline, in order; raises UnknownTopic."""
        return [slot for slot in self._find(name).slots if isinstance(slot, Partition)]

    def partition(self, name: str, index: int) -> Partition:
        """Return one partition; raises UnknownTopic, PartitionOffline."""
        slots = self._find(name).slots
        if not 0 <= index < len(slots):
            raise UnknownTopic(f"topic {name} has no partition {index}")
        slot = slots[index]
        if isinstance(slot, PartitionOffline):
            raise PartitionOffline(str(slot))  # a new one: each raise adds to its traceback
        return slot

    def each_partition(self) -> Iterator[Partition]:
        """Yield all that are not offline, while topics may come and go."""
        for name in list(self._by_name):
            found = self._by_name.get(name)
            if found is not None:
                yield from (slot for slot in list(found.slots) if isinstance(slot, Partition))

    # ── changing ─────────────────────────────────────────────────────────────────────────────

    def create(
        self,
        name: str,
        partitions: int,
        topic_id: bytes,
        settings: Mapping[str, str],
        answer: Answer,
    ) -> None:
        """Create a topic, and answer when all of it serves; raises what the catalog refuses."""
        catalog = self._catalog.machine
        records = catalog.create_topic(name, partitions, topic_id, settings)
        self._commit(records, answer, lambda: self._opening([catalog.topic(name)], answer))

    def delete(self, name: str, answer: Answer) -> None:
        """Delete a topic; its files go later. Raises what the catalog refuses."""
        topic = self._catalog.machine.topic(name)
        records = self._catalog.machine.delete_topic(name)

        def closed() -> None:
            self._close(topic)
            answer(None)

        self._commit(records, answer, lambda: closed)

    def add_partitions(self, name: str, partitions: int, answer: Answer) -> None:
        """Give a topic this many partitions in all; raises what the catalog refuses."""
        self._change(name, self._catalog.machine.add_partitions(name, partitions), answer)

    def set_settings(self, name: str, settings: Mapping[str, str], answer: Answer) -> None:
        """Replace what was set for a topic; raises what the catalog refuses."""
        self._change(name, self._catalog.machine.set_settings(name, settings), answer)

    def delete_records(self, name: str, index: int, offset: Offset, answer: Answer) -> None:
        """Forget the records before an offset, and answer when that would survive a crash.

        Raises UnknownTopic, OffsetOutOfRange, or why the partition does not serve.
        """
        found = self.partition(name, index)
        if offset == HIGH_WATERMARK:
            offset = found.high_watermark
        self._trim(found, offset, answer)

    # ── the life of topics ───────────────────────────────────────────────────────────────────

    def start(self, ready: Callable[[], None]) -> None:
        """Open all topics of the catalog at once; `ready` is told when all of them serve."""
        self._tidy_folders()
        new = [t for t in self._catalog.machine.topics.values() if t.name not in self._by_name]
        self._opening(new, lambda _: ready())()

    def tick(self) -> None:
        """Let time pass."""
        self._removal.tick()

    @property
    def is_tidy(self) -> bool:
        """Whether nothing of deleted topics waits to be removed."""
        return self._removal.is_idle

    def _opening(self, topics: Sequence[Topic], answer: Answer) -> Callable[[], None]:
        """Return what opens topics, or grows those that are open, and answers when all serve.

        They campaign together, so that two rounds of the disk elect a thousand leaders.
        """

        def opened() -> None:
            waiting: deque[Partition] = deque()
            for topic in topics:
                waiting += self._open_topic(topic)
            self._store.flusher.kick()
            _when_serving(waiting, partial(answer, None))

        return opened

    def _open_topic(self, topic: Topic) -> list[Partition]:
        found = self._by_name.setdefault(topic.name, _OpenTopic(topic))
        assert found.topic.topic_id == topic.topic_id, "a name is free before it is given again"
        found.topic = topic
        settings = resolve(topic.settings)
        for partition in self.partitions(topic.name):
            partition.configure(settings)
        added: list[Partition] = []
        for index in range(len(found.slots), topic.partitions):
            group = group_of(topic, index)
            try:
                replica = self._replicas.open_replica(group)
            except LogError as error:
                found.slots.append(_offline(group, error))
                continue
            partition = self._replicas.new_partition(replica, settings, topic)
            found.slots.append(partition)
            added.append(partition)
            replica.campaign()
        return added

    def _close(self, topic: Topic) -> None:
        """Serve a topic no more; when the journal has forgotten it, its folder may go."""
        found = self._by_name.pop(topic.name)
        assert found.topic.topic_id == topic.topic_id, "commits come in order"
        for index, slot in enumerate(found.slots):
            if isinstance(slot, Partition):
                slot.close()
            group = group_of(topic, index)
            self._replicas.drop_replica(group)
            self._store.forget(group)
        self._bury(topic.topic_id, folder_of(topic))

    def _bury(self, topic_id: bytes, folder: str) -> None:
        """Remove a folder after the next round: until then a sync may be under way in it."""

        def forgotten() -> None:
            self._catalog.machine.buried.discard(topic_id)
            self._removal.take(folder)

        self._store.flusher.after_next_round(forgotten)
        self._store.flusher.kick()

    def _tidy_folders(self) -> None:
        """Go on with the deletions that a crash interrupted, and tell what else lies about."""
        catalog = self._catalog.machine
        self._removal.take_named()
        known = {folder_of(topic) for topic in catalog.topics.values()}
        unfinished: set[bytes] = set()
        strangers: list[str] = []
        for name in self._store.disk.list(""):
            found = _FOLDER.fullmatch(name)
            if found is None or name in known:
                continue
            topic_id = bytes.fromhex(found[1])
            if topic_id not in catalog.buried:
                strangers.append(name)
                continue
            unfinished.add(topic_id)
            for group in [g for g in self._store.journal.groups if g.startswith(f"{name}/")]:
                self._store.forget(group)
            self._bury(topic_id, name)
        catalog.buried &= unfinished
        if strangers:
            log.warning(
                "folders_of_no_topic count=%d folders=%s: left alone; remove them by hand if "
                "nobody needs them",
                len(strangers),
                ",".join(strangers[:_FOLDERS_TOLD_MAX]),
            )

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _find(self, name: str) -> _OpenTopic:
        found = self._by_name.get(name)
        if found is None:
            raise UnknownTopic(f"there is no topic {name}")
        return found

    def _change(self, name: str, records: Sequence[MachineRecord], answer: Answer) -> None:
        catalog = self._catalog.machine
        self._commit(records, answer, lambda: self._opening([catalog.topic(name)], answer))

    def _commit(
        self,
        records: Sequence[MachineRecord],
        answer: Answer,
        then: Callable[[], Callable[[], None]],
    ) -> None:
        """Write records, and when they are committed do what `then` returns.

        `then` is asked as soon as they are applied: when they are committed, later changes may
        already have been applied that are not.
        """
        do: Callable[[], None] = _never

        def done(outcome: Outcome) -> None:
            if outcome is Outcome.COMMITTED:
                do()
            else:
                answer(OutcomeUnknown("leadership was lost; ask again whether it was done"))

        self._catalog.write(records, done)
        do = then()
        self._store.flusher.kick()

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
        self._store.flusher.kick()


def folder_of(topic: Topic) -> str:
    """Return a topic's folder; its id keeps namesakes apart."""
    return f"{topic.name[:_NAME_CHARS_IN_PATH]}.{topic.topic_id.hex()}"


def group_of(topic: Topic, index: int) -> GroupId:
    """Return the group of a partition, which is also its folder."""
    return f"{folder_of(topic)}/{index}"


def _offline(group: GroupId, error: LogError) -> PartitionOffline:
    log.error(
        "partition_offline partition=%s reason=%s: put its folder back from a copy while the "
        "broker is stopped, or delete the topic; everything else serves",
        group,
        error,
    )
    return PartitionOffline(f"this partition is offline: {error}")


def _when_serving(partitions: deque[Partition], then: Callable[[], None]) -> None:
    """Call back once all of these serve, or never will."""
    while partitions:
        first = partitions[0]
        if not first.replica.is_serving and first.replica.error is None:
            first.when_more(partial(_when_serving, partitions, then))
            return
        partitions.popleft()
    then()


def _never() -> None:
    raise AssertionError("a change is not committed before it is written")
