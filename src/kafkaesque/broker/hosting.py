"""What topics need of their broker: replicas, fronts before them, and coordinators on some."""

from collections.abc import Callable, Sequence

from kafkaesque.ages import Ages
from kafkaesque.broker.coordinators import OFFSETS_TOPIC, Coordinators
from kafkaesque.broker.doubts import CATALOG_GROUP
from kafkaesque.broker.group_coordinator import GroupCoordinator
from kafkaesque.broker.housekeeper import Housekeeper
from kafkaesque.broker.machine_trim import MachineState
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.producer_ids import Give
from kafkaesque.broker.refills import Refills
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.replica_set import ReplicaSet
from kafkaesque.broker.serving_waits import Slot
from kafkaesque.broker.store import Store
from kafkaesque.broker.topic_folders import group_of
from kafkaesque.broker.transaction_coordinator import TransactionCoordinator
from kafkaesque.broker.transactions import STATE_TOPIC, BrokerTransactions
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig
from kafkaesque.errors import CorruptLog, DiskFailed, LogError
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
        coordinators: Coordinators[GroupCoordinator],
        transactions: BrokerTransactions,
        housekeeper: Housekeeper,
        store: Store,
        clock: Clock,
        config: BrokerConfig,
        failed: Callable[[LogError], None],
        next_producer_id: Callable[[Give], None],
        refills: Refills,
        *,
        is_alone: bool,
    ) -> None:
        self._replicas = replicas
        self._coordinators = coordinators
        self._transactions = transactions
        self._next_producer_id = next_producer_id
        self._housekeeper = housekeeper
        self._store = store
        self._clock = clock
        self._config = config
        self._failed = failed
        self._is_alone = is_alone
        self._refills = refills
        self._damaged: list[Replica] = []
        replicas.on_stopped = self._on_stopped

    def configure(self, config: BrokerConfig) -> None:
        """Let other settings hold for all that is hosted here, and for what will be."""
        self._config = config
        for groups in self._coordinators.all:
            groups.configure(config.groups)
        for transactions in self._transactions.coordinators.all:
            transactions.configure(config.transactions)

    def open_replica(self, topic: Topic, index: int) -> Replica:
        """Open a partition's replica, beginning its log if there is none; raises LogError."""
        try:
            return self._replicas.open_partition(topic, index)
        except DiskFailed as error:
            if not self._is_alone:
                self._failed(error)
            raise

    def _on_stopped(self, replica: Replica) -> None:
        """Learn that a replica stopped in the middle of its work, the catalog's among them.

        Nobody opens it again while this broker runs, and its group may wait for it alone. One that
        is damaged where it was to be cut is filled by others; the catalog's by the next start.
        """
        error = replica.error
        if isinstance(error, DiskFailed) and not self._is_alone:
            self._failed(error)
        elif isinstance(error, CorruptLog) and not replica.is_alone:
            if replica.group == CATALOG_GROUP:
                self._failed(error)
            else:
                self._damaged.append(replica)

    def take_damaged(self) -> list[Replica]:
        """Return the replicas that have stopped for damage since this was last asked."""
        damaged, self._damaged = self._damaged, []
        return damaged

    def refill_replica(
        self, topic: Topic, index: int, damage: CorruptLog, refilled: Callable[[], None]
    ) -> bool:
        """Have a log that cannot be opened filled by others; False if there is nobody."""
        group = group_of(topic, index)
        return self._refills.want(group, damage, topic.holders(index), refilled)

    def forget_refill(self, group: GroupId) -> None:
        """Leave a log as it is that was to be filled by others."""
        self._refills.forget(group)

    def drop_replica(self, group: GroupId) -> None:
        """Let a replica have no more ticks; one that could not be opened has none anyway."""
        self._refills.forget(group)
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
        partition.producers.ages = self._ages
        if topic.is_internal:
            MachineState(replica, self._store.snapshots(replica.group))
        self._housekeeper.watch(
            replica, lambda: partition.settings, lambda: partition.producers.snapshot_offset
        )
        self._replicas.tell_of_leading(replica)
        return partition

    def topic_opened(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Learn that all of a topic serves: groups or transactions are coordinated on some."""
        here = [slot if isinstance(slot, Partition) else None for slot in slots]
        if topic.name == OFFSETS_TOPIC and not self._coordinators.is_open:
            self._coordinators.open([self._coordinator(one) if one else None for one in here])
        of_transactions = self._transactions.coordinators
        if topic.name == STATE_TOPIC and not of_transactions.is_open:
            make = self._transaction_coordinator
            of_transactions.open([make(one) if one else None for one in here])

    def slots_changed(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Learn that partitions came here or left: coordinators are where their partitions are."""
        if topic.name == OFFSETS_TOPIC and self._coordinators.is_open:
            self._coordinators.follow(slots, self._coordinator)
        of_transactions = self._transactions.coordinators
        if topic.name == STATE_TOPIC and of_transactions.is_open:
            of_transactions.follow(slots, self._transaction_coordinator)

    def topic_closed(self, topic: Topic) -> None:
        """Learn that a topic is gone: nobody will come back to an offset in it."""
        self._coordinators.forget_topic(topic.topic_id)

    def _coordinator(self, partition: Partition) -> GroupCoordinator:
        replica = partition.replica
        snapshots = self._store.snapshots(replica.group)
        groups = self._config.groups
        found = GroupCoordinator(replica, self._clock, groups, snapshots, self._failed)
        found.ages = self._ages
        return found

    def _transaction_coordinator(self, partition: Partition) -> TransactionCoordinator:
        replica = partition.replica
        found = TransactionCoordinator(
            replica,
            self._clock,
            self._config.transactions,
            self._store.snapshots(replica.group),
            self._failed,
            self._next_producer_id,
            self._transactions.markers,
        )
        found.ages = self._ages
        return found

    def _ages(self) -> Ages | None:
        return self._housekeeper.clocks.ages
