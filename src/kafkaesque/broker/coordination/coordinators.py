"""All coordinators of one kind on this broker, and which one owns a group or id."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from kafkaesque.broker.cluster.serving_waits import Slot
from kafkaesque.broker.machine_hosting.coordinator import Coordinator
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.errors import KafkaesqueError, NotCoordinator, TopicExists

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_SETTINGS = {"cleanup.policy": "compact"}

Ready = Callable[[KafkaesqueError | None], None]

C = TypeVar("C", bound=Coordinator[Any])


class Coordinators(Generic[C]):
    """One coordinator per partition of an internal topic, which is created when first needed.

    `create` starts to create that topic and passes the outcome to its callback.
    """

    def __init__(self, create: Callable[[Ready], None], hashed: Callable[[str], str] = str) -> None:
        self._create = create
        self._hashed = hashed
        """Returns the part of a group or id that decides its partition."""
        self._by_partition: list[C | None] = []
        self._waiting: list[Ready] = []
        self._is_creating = False

    @property
    def all(self) -> Sequence[C]:
        """Every coordinator; empty while the topic does not exist."""
        return [one for one in self._by_partition if one is not None]

    @property
    def is_open(self) -> bool:
        """Whether the topic is open here."""
        return bool(self._by_partition)

    def of(self, group: str) -> C:
        """Return a group's coordinator; raises NotCoordinator until `when_ready` has passed."""
        if not self._by_partition:
            raise NotCoordinator("the coordinators' topic is not open here yet")
        found = self._by_partition[partition_of(self._hashed(group), len(self._by_partition))]
        if found is None:
            raise NotCoordinator(f"the partition that holds {group} is offline")
        return found

    def at(self, partition: int) -> C:
        """Return a partition's coordinator; raises NotCoordinator."""
        found = None
        if 0 <= partition < len(self._by_partition):
            found = self._by_partition[partition]
        if found is None:
            raise NotCoordinator(f"partition {partition} is not coordinated here")
        return found

    def when_ready(self, ready: Ready) -> None:
        """Call `ready` once the topic exists, or with the error that prevents it."""
        if self._by_partition:
            ready(None)
            return
        self._waiting.append(ready)
        if self._is_creating:
            return
        self._is_creating = True
        self._create(self._created)

    def open(self, coordinators: Sequence[C | None]) -> None:
        """Take over the coordinators of the topic's partitions, in order; None where elsewhere."""
        self._by_partition = list(coordinators)
        self._tell(None)

    def follow(self, slots: Sequence[Slot], make: Callable[[Partition], C]) -> None:
        """Open coordinators for partitions that came to this broker; close those that left."""
        for index, slot in enumerate(slots):
            replica = slot.replica if isinstance(slot, Partition) else None
            before = self._by_partition[index]
            if before is not None and before.replica is not replica:
                before.close()
                self._by_partition[index] = None
            if isinstance(slot, Partition) and self._by_partition[index] is None:
                self._by_partition[index] = make(slot)

    def tick(self) -> None:
        """Advance time for all coordinators."""
        for coordinator in self.all:
            coordinator.tick()

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget a deleted topic's offsets in all groups."""
        for coordinator in self.all:
            coordinator.forget_topic(topic_id)

    def stop(self) -> None:
        """Save all state before a clean stop."""
        for coordinator in self.all:
            coordinator.stop()

    def _created(self, error: KafkaesqueError | None) -> None:
        self._is_creating = False
        if error is not None and not isinstance(error, TopicExists):
            self._tell(error)
        # Otherwise the topic is being opened, and `open` notifies the waiting callbacks.

    def _tell(self, error: KafkaesqueError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            ready(error)


def partition_of(group: str, partitions: int) -> int:
    """Return a group's or id's partition as Kafka does: Java's String.hashCode, unsigned."""
    code = 0
    data = group.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(data), 2):
        code = (31 * code + (data[place] << 8 | data[place + 1])) & 0xFFFFFFFF
    number = code - (1 << 32) if code >= 1 << 31 else code
    # The smallest number has no positive counterpart in Java; Kafka uses 0 for it.
    return 0 if number == -(1 << 31) else abs(number) % partitions
