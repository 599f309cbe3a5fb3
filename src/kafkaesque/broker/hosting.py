"""What topics need of their broker: replicas, fronts before them, and coordinators on some."""

from collections.abc import Callable, Sequence

from kafkaesque.broker.coordinators import OFFSETS_TOPIC, Coordinators
from kafkaesque.broker.group_coordinator import GroupCoordinator
from kafkaesque.broker.housekeeper import Housekeeper
from kafkaesque.broker.machine_trim import MachineState
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.replica_set import ReplicaSet
from kafkaesque.broker.serving_waits import Slot
from kafkaesque.broker.store import Store
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig
from kafkaesque.errors import DiskFailed, LogError
from kafkaesque.machines.catalog import Topic
from kafkaesque.machines.placement import Replicas
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import GroupId


class Hosting:
    """Opens and drops what one broker holds; `broker/topics.py` says when.

    `failed` is told of a disk that fails, if there are other brokers: what is down is led by them,
    what is half up by nobody.
    """

    def __init__(  # noqa: PLR0913 - all that a partition is made of
        self,
        replicas: ReplicaSet,
        coordinators: Coordinators,
        housekeeper: Housekeeper,
        store: Store,
        clock: Clock,
        config: BrokerConfig,
        failed: Callable[[LogError], None],
        *,
        is_alone: bool,
    ) -> None:
        self._replicas = replicas
        self._coordinators = coordinators
        self._housekeeper = housekeeper
        self._store = store
        self._clock = clock
        self._config = config
        self._failed = failed
        self._is_alone = is_alone

    def open_replica(self, topic: Topic, index: int) -> Replica:
        """Open a partition's replica, beginning its log if there is none; raises LogError."""
        try:
            return self._replicas.open_partition(topic, index)
        except DiskFailed as error:
            if not self._is_alone:
                self._failed(error)
            raise

    def drop_replica(self, group: GroupId) -> None:
        """Let a replica have no more ticks; one that could not be opened has none anyway."""
        self._replicas.drop(group)

    def leave_replica(self, group: GroupId) -> None:
        """Let a replica have no more ticks whose group goes on elsewhere."""
        self._replicas.leave(group)

    def prefer_leaders(self, group: GroupId, order: Replicas) -> None:
        """Let the first of these lead a group whenever it can, and the others in their order."""
        self._replicas.prefer(group, order)

    def new_partition(self, replica: Replica, settings: TopicSettings, topic: Topic) -> Partition:
        """Put the front of a partition before its replica, and look after it from now on."""
        partition = Partition(
            replica, settings, self._clock, self._config.producers, is_internal=topic.is_internal
        )
        if topic.is_internal:
            MachineState(replica, self._store.snapshots(replica.group))
        self._housekeeper.watch(
            replica, lambda: partition.settings, lambda: partition.producers.snapshot_offset
        )
        self._replicas.tell_of_leading(replica)
        return partition

    def topic_opened(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Learn that all of a topic serves: groups are coordinated on one of them."""
        if topic.name == OFFSETS_TOPIC and not self._coordinators.is_open:
            self._coordinators.open(
                [self._coordinator(s) if isinstance(s, Partition) else None for s in slots]
            )

    def slots_changed(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Learn that partitions came here or left: their groups are coordinated where they are."""
        if topic.name == OFFSETS_TOPIC and self._coordinators.is_open:
            self._coordinators.follow(slots, self._coordinator)

    def topic_closed(self, topic: Topic) -> None:
        """Learn that a topic is gone: nobody will come back to an offset in it."""
        self._coordinators.forget_topic(topic.topic_id)

    def _coordinator(self, partition: Partition) -> GroupCoordinator:
        replica = partition.replica
        snapshots = self._store.snapshots(replica.group)
        groups = self._config.groups
        return GroupCoordinator(replica, self._clock, groups, snapshots, self._failed)
