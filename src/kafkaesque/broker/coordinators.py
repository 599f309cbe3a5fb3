"""All coordinators of one kind on this broker, and which of them a group or an id belongs to."""

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from kafkaesque.broker.partition import Partition
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.serving_waits import Slot
from kafkaesque.errors import KafkaesqueError, NotCoordinator, TopicExists

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_SETTINGS = {"cleanup.policy": "compact"}

Ready = Callable[[KafkaesqueError | None], None]


class Coordinator(Protocol):
    """What is coordinated on one partition."""

    @property
    def replica(self) -> Replica:
        """The replica on which its state lies."""
        ...

    def tick(self) -> None:
        """Let time pass."""
        ...

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget a topic that was deleted."""
        ...

    def stop(self) -> None:
        """Save the state before a clean stop."""
        ...

    def close(self) -> None:
        """Coordinate no more, because the partition has left this broker."""
        ...


C = TypeVar("C", bound=Coordinator)


class Coordinators(Generic[C]):
    """One coordinator per partition of an internal topic, which is made when first needed.

    `create` begins to make that topic and tells its callback how it went.
    """

    def __init__(self, create: Callable[[Ready], None], hashed: Callable[[str], str] = str) -> None:
        self._create = create
        self._hashed = hashed
        """Which part of a group or an id decides where it belongs."""
        self._by_partition: list[C | None] = []
        self._waiting: list[Ready] = []
        self._is_creating = False

    @property
    def all(self) -> Sequence[C]:
        """Every coordinator; none while there is no such topic."""
        return [one for one in self._by_partition if one is not None]

    @property
    def is_open(self) -> bool:
        """Whether the topic is open here."""
        return bool(self._by_partition)

    def of(self, group: str) -> C:
        """Return who coordinates a group; raises NotCoordinator until `when_ready` has passed."""
        if not self._by_partition:
            raise NotCoordinator("nothing has been coordinated here yet")
        found = self._by_partition[partition_of(self._hashed(group), len(self._by_partition))]
        if found is None:
            raise NotCoordinator(f"the partition that holds {group} is offline")
        return found

    def at(self, partition: int) -> C:
        """Return who coordinates what lies on a partition; raises NotCoordinator."""
        found = None
        if 0 <= partition < len(self._by_partition):
            found = self._by_partition[partition]
        if found is None:
            raise NotCoordinator(f"partition {partition} is not coordinated here")
        return found

    def when_ready(self, ready: Ready) -> None:
        """Tell `ready` once the topic is there, or what stands in the way."""
        if self._by_partition:
            ready(None)
            return
        self._waiting.append(ready)
        if self._is_creating:
            return
        self._is_creating = True
        try:
            self._create(self._created)
        except KafkaesqueError as error:
            self._created(error)

    def open(self, coordinators: Sequence[C | None]) -> None:
        """Take over the coordinators of the topic's partitions, in order; None is not here."""
        self._by_partition = list(coordinators)
        self._tell(None)

    def follow(self, slots: Sequence[Slot], make: Callable[[Partition], C]) -> None:
        """Take over partitions that came to this broker, and cease on those that left it."""
        for index, slot in enumerate(slots):
            replica = slot.replica if isinstance(slot, Partition) else None
            before = self._by_partition[index]
            if before is not None and before.replica is not replica:
                before.close()
                self._by_partition[index] = None
            if isinstance(slot, Partition) and self._by_partition[index] is None:
                self._by_partition[index] = make(slot)

    def tick(self) -> None:
        """Let time pass for all."""
        for coordinator in self.all:
            coordinator.tick()

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget the offsets of a topic that was deleted, in all groups."""
        for coordinator in self.all:
            coordinator.forget_topic(topic_id)

    def stop(self) -> None:
        """Save the state of all before a clean stop."""
        for coordinator in self.all:
            coordinator.stop()

    def _created(self, error: KafkaesqueError | None) -> None:
        self._is_creating = False
        if error is not None and not isinstance(error, TopicExists):
            self._tell(error)
        # Else it is being opened, and `open` tells those who wait; or it was only decided on and
        # never comes to be, and the next one who asks tries again.

    def _tell(self, error: KafkaesqueError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            ready(error)


def partition_of(group: str, partitions: int) -> int:
    """Return a group's, or an id's, partition as Kafka does: Java's String.hashCode, unsigned."""
    code = 0
    data = group.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(data), 2):
        code = (31 * code + (data[place] << 8 | data[place + 1])) & 0xFFFFFFFF
    number = code - (1 << 32) if code >= 1 << 31 else code
    # The smallest number has no positive twin in Java; Kafka takes 0 for it.
    return 0 if number == -(1 << 31) else abs(number) % partitions
