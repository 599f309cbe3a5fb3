"""All coordinators of consumer groups on this broker, and which of them a group belongs to."""

from collections.abc import Callable, Sequence

from kafkaesque.broker.group_coordinator import GroupCoordinator
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.serving_waits import Slot
from kafkaesque.errors import KafkaesqueError, NotCoordinator, TopicExists

OFFSETS_TOPIC = "__consumer_offsets"
OFFSETS_SETTINGS = {"cleanup.policy": "compact"}

Ready = Callable[[KafkaesqueError | None], None]
Make = Callable[[Partition], GroupCoordinator]


class Coordinators:
    """One coordinator per partition of the topic for offsets, which is made when first needed.

    `create` begins to make that topic and tells its callback how it went.
    """

    def __init__(self, create: Callable[[Ready], None]) -> None:
        self._create = create
        self._by_partition: list[GroupCoordinator | None] = []
        self._waiting: list[Ready] = []
        self._is_creating = False

    @property
    def all(self) -> Sequence[GroupCoordinator]:
        """Every coordinator; none while there is no topic for offsets."""
        return [one for one in self._by_partition if one is not None]

    @property
    def is_open(self) -> bool:
        """Whether the topic for offsets is open here."""
        return bool(self._by_partition)

    def of(self, group: str) -> GroupCoordinator:
        """Return who coordinates a group; raises NotCoordinator until `when_ready` has passed."""
        if not self._by_partition:
            raise NotCoordinator("no group has been coordinated here yet")
        found = self._by_partition[partition_of(group, len(self._by_partition))]
        if found is None:
            raise NotCoordinator(f"the partition that holds group {group} is offline")
        return found

    def when_ready(self, ready: Ready) -> None:
        """Tell `ready` once groups can be coordinated, or what stands in the way."""
        if self._by_partition:
            ready(None)
            return
        self._waiting.append(ready)
        if self._is_creating:
            return
        self._is_creating = True
        try:
            self._create(self._created)
        except TopicExists:
            pass  # it is being opened; `open` tells those who wait
        except KafkaesqueError as error:
            self._created(error)

    def open(self, coordinators: Sequence[GroupCoordinator | None]) -> None:
        """Take over the coordinators of the topic's partitions, in order; None is not here."""
        self._by_partition = list(coordinators)
        self._tell(None)

    def follow(self, slots: Sequence[Slot], make: Make) -> None:
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
        """Let time pass for all groups."""
        for coordinator in self.all:
            coordinator.tick()

    def forget_topic(self, topic_id: bytes) -> None:
        """Forget the offsets of a topic that was deleted, in all groups."""
        for coordinator in self.all:
            coordinator.forget_topic(topic_id)

    def stop(self) -> None:
        """Save the state of all groups before a clean stop."""
        for coordinator in self.all:
            coordinator.stop()

    def _created(self, error: KafkaesqueError | None) -> None:
        self._is_creating = False
        if error is not None and not isinstance(error, TopicExists):
            self._tell(error)

    def _tell(self, error: KafkaesqueError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for ready in waiting:
            ready(error)


def partition_of(group: str, partitions: int) -> int:
    """Return the partition of a group as Kafka does: Java's String.hashCode, without its sign."""
    code = 0
    data = group.encode("utf-16-be", "surrogatepass")
    for place in range(0, len(data), 2):
        code = (31 * code + (data[place] << 8 | data[place + 1])) & 0xFFFFFFFF
    number = code - (1 << 32) if code >= 1 << 31 else code
    # The smallest number has no positive twin in Java; Kafka takes 0 for it.
    return 0 if number == -(1 << 31) else abs(number) % partitions
