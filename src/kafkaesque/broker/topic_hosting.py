"""What topics need of their broker: replicas, partitions on top of them, and coordinators."""

from collections.abc import Callable, Sequence

from kafkaesque.ages import Ages
from kafkaesque.broker.cluster.housekeeper import Housekeeper
from kafkaesque.broker.cluster.refills import Refills
from kafkaesque.broker.cluster.replica_set import ReplicaSet
from kafkaesque.broker.cluster.serving_waits import Slot
from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, Coordinators
from kafkaesque.broker.coordination.group_coordinator import GroupCoordinator
from kafkaesque.broker.coordination.producer_ids import Give
from kafkaesque.broker.coordination.transaction_coordinator import TransactionCoordinator
from kafkaesque.broker.coordination.transactions import STATE_TOPIC, BrokerTransactions
from kafkaesque.broker.machine_hosting.coordinator import Coordinator
from kafkaesque.broker.machine_hosting.machine_saver import MachineState
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.queues.share_calls import SHARE_TOPIC
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.storage.store import Store
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig
from kafkaesque.errors import LogError
from kafkaesque.log.errors import CorruptLog, DiskFailed
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.machines.queues.share_states import ShareStateLimits, ShareStates
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import GroupId


class Hosting:
    """Opens and drops what one broker holds; `broker/cluster/topics.py` decides when.

    `failed` is called when a disk fails: other brokers take over from a broker that is down, but
    not from one that is half up.
    """

    def __init__(  # noqa: PLR0913 - all that a partition is made of
        self,
        replicas: ReplicaSet,
        coordinators: Coordinators[GroupCoordinator],
        transactions: BrokerTransactions,
        shares: Coordinators[Coordinator[ShareStates]],
        housekeeper: Housekeeper,
        store: Store,
        clock: Clock,
        config: BrokerConfig,
        failed: Callable[[LogError], None],
        next_producer_id: Callable[[Give], None],
        refills: Refills,
    ) -> None:
        self._replicas = replicas
        self._coordinators = coordinators
        self._transactions = transactions
        self._shares = shares
        self._next_producer_id = next_producer_id
        self._housekeeper = housekeeper
        self._store = store
        self._clock = clock
        self._config = config
        self._failed = failed
        self._refills = refills
        self._damaged: list[Replica] = []
        replicas.on_stopped = self._on_stopped

    def configure(self, config: BrokerConfig) -> None:
        """Apply new settings to everything hosted here, now and later."""
        self._config = config
        for groups in self._coordinators.all:
            groups.configure(config.groups)
        for transactions in self._transactions.coordinators.all:
            transactions.configure(config.transactions)

    def open_replica(self, topic: Topic, index: int) -> Replica:
        """Open a partition's replica, and start its log if there is none; raises LogError."""
        try:
            return self._replicas.open_partition(topic, index)
        except DiskFailed as error:
            self._failed(error)
            raise

    def _on_stopped(self, replica: Replica) -> None:
        """Handle a replica, perhaps the catalog's, that stopped in the middle of its work.

        It is not reopened while this broker runs, and its group may be waiting for it. A replica
        with damage where it had to be cut is refilled by others; the catalog's at the next start.
        """
        error = replica.error
        if isinstance(error, DiskFailed):
            self._failed(error)
        elif isinstance(error, CorruptLog) and not replica.is_alone:
            if replica.group == CATALOG_GROUP:
                self._failed(error)
            else:
                self._damaged.append(replica)

    def take_damaged(self) -> list[Replica]:
        """Return the replicas that stopped for damage since the last call."""
        damaged, self._damaged = self._damaged, []
        return damaged

    def refill_replica(
        self, topic: Topic, index: int, damage: CorruptLog, refilled: Callable[[], None]
    ) -> bool:
        """Have others fill a log that cannot be opened; False if there are none."""
        group = group_of(topic, index)
        return self._refills.want(group, damage, topic.holders(index), refilled)

    def forget_refill(self, group: GroupId) -> None:
        """Cancel the refill of a log."""
        self._refills.forget(group)

    def drop_replica(self, group: GroupId) -> None:
        """Give a deleted group's replica no more ticks; it need not have been opened."""
        self._refills.forget(group)
        self._replicas.drop(group)

    def leave_replica(self, group: GroupId) -> None:
        """Give a replica no more ticks whose group continues elsewhere."""
        self._replicas.leave(group)

    def prefer_leaders(self, group: GroupId, order: Replicas) -> None:
        """Let the first of these lead a group whenever it can; the others are next in order."""
        self._replicas.prefer(group, order)

    def new_partition(self, replica: Replica, settings: TopicSettings, topic: Topic) -> Partition:
        """Create the partition of a replica, and take care of it from now on."""
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
        """Note that all of a topic serves: coordinate groups or transactions on its partitions."""
        here = [slot if isinstance(slot, Partition) else None for slot in slots]
        if topic.name == OFFSETS_TOPIC and not self._coordinators.is_open:
            self._coordinators.open([self._coordinator(one) if one else None for one in here])
        of_transactions = self._transactions.coordinators
        if topic.name == STATE_TOPIC and not of_transactions.is_open:
            make = self._transaction_coordinator
            of_transactions.open([make(one) if one else None for one in here])
        if topic.name == SHARE_TOPIC and not self._shares.is_open:
            self._shares.open([self._share_coordinator(one) if one else None for one in here])

    def slots_changed(self, topic: Topic, slots: Sequence[Slot]) -> None:
        """Note that partitions came here or left: coordinators stay with their partitions."""
        if topic.name == OFFSETS_TOPIC and self._coordinators.is_open:
            self._coordinators.follow(slots, self._coordinator)
        of_transactions = self._transactions.coordinators
        if topic.name == STATE_TOPIC and of_transactions.is_open:
            of_transactions.follow(slots, self._transaction_coordinator)
        if topic.name == SHARE_TOPIC and self._shares.is_open:
            self._shares.follow(slots, self._share_coordinator)

    def topic_closed(self, topic: Topic) -> None:
        """Note that a topic is gone: its committed offsets are no longer needed."""
        self._coordinators.forget_topic(topic.topic_id)
        self._shares.forget_topic(topic.topic_id)

    def _coordinator(self, partition: Partition) -> GroupCoordinator:
        found = GroupCoordinator(self._site(partition), self._config.groups)
        found.ages = self._ages
        return found

    def _transaction_coordinator(self, partition: Partition) -> TransactionCoordinator:
        found = TransactionCoordinator(
            self._site(partition),
            self._config.transactions,
            self._next_producer_id,
            self._transactions.markers,
        )
        found.ages = self._ages
        return found

    def _share_coordinator(self, partition: Partition) -> Coordinator[ShareStates]:
        return Coordinator(
            self._site(partition),
            lambda: ShareStates(ShareStateLimits()),
        )

    def _site(self, partition: Partition) -> MachineSite:
        return MachineSite(
            replica=partition.replica,
            clock=self._clock,
            snapshots=self._store.snapshots(partition.replica.group),
            slices=self._store.slices,
            failed=self._failed,
        )

    def _ages(self) -> Ages | None:
        return self._housekeeper.clocks.ages
