"""One node's broker: its store, its groups and the catalog of topics. Synchronous throughout."""

import random
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping

from kafkaesque.broker.fetch_sessions import FetchSessions
from kafkaesque.broker.housekeeper import Housekeeper
from kafkaesque.broker.log_settings import configure_log, internal
from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.producer_ids import Give, ProducerIds
from kafkaesque.broker.producer_sweep import ProducerSweep
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.store import Store
from kafkaesque.broker.topics import Answer, Topics
from kafkaesque.broker.watermark import Outcome
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig, FetchConfig, ProducerConfig, RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.machines.catalog import Catalog, Topic
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Roster
from kafkaesque.topic_settings import DEFAULTS, TopicSettings
from kafkaesque.types import GroupId, NodeId, Offset

__all__ = ["CATALOG_GROUP", "Answer", "Broker"]

CATALOG_GROUP: GroupId = "cluster-metadata"


class Broker:
    """The broker of one node. `start` opens everything; `tick` is to be called regularly."""

    def __init__(
        self,
        node: NodeId,
        store: Store,
        clock: Clock,
        chance: random.Random,
        config: BrokerConfig,
        failed: Callable[[LogError], None],
        producers: ProducerConfig | None = None,
    ) -> None:
        self.node = node
        self.config = config
        self.fetch = FetchConfig()
        self.fetch_sessions = FetchSessions(chance, self.fetch)
        self._store = store
        self._clock = clock
        self._chance = chance
        self._raft = RaftConfig()
        self._failed = failed
        self._roster = Roster(node, self._raft, 1 + chance.getrandbits(60))
        self._replicas: dict[GroupId, Replica] = {}
        self._housekeeper = Housekeeper(clock, config.housekeeping)
        self._producers = producers or ProducerConfig()
        self._producer_ids = ProducerIds(self._producers.ids_per_block, self._take_producer_ids)
        self._sweep = ProducerSweep(self._open_partitions, failed)
        self._catalog: MachineHost[Catalog]
        self.topics: Topics

    def start(self, ready: Callable[[], None]) -> None:
        """Open the catalog, then every topic in it; `ready` is told when all of them serve."""
        self._ready = ready
        replica = self.open_replica(CATALOG_GROUP)
        settings = internal(DEFAULTS, replica.log.segments.config)
        configure_log(replica.log, settings)
        self._housekeeper.watch(replica, lambda: settings)
        self._catalog = MachineHost(replica, self._clock, Catalog, self._on_catalog, self._failed)
        self.topics = Topics(self._catalog, self, self._store, self._clock)
        replica.campaign()
        self.flush()

    def tick(self) -> None:
        """Let a tick pass."""
        self._roster.tick()
        for group in list(self._roster.awake):
            self._replicas[group].tick()
        self.topics.tick()
        self._store.flusher.pass_time(self._clock.monotonic_ms())
        self._store.flusher.settle()
        self._housekeeper.tick()
        self._sweep.step()
        self.flush()

    def flush(self) -> None:
        """Begin to sync what was written; call it after every input."""
        self._store.flusher.kick()

    def stop(self) -> None:
        """Stop cleanly."""
        self._housekeeper.stop()
        self._sweep.stop()
        self._store.close()

    @property
    def catalog(self) -> Catalog:
        """The catalog of topics; raises NotLeader where it is not hosted."""
        return self._catalog.machine

    @property
    def cluster_id(self) -> str | None:
        """The name that the cluster gave itself; None while it has none."""
        return self.catalog.cluster_id

    def partitions(self, topic: str) -> list[Partition]:
        """Return a topic's partitions in order, but for those offline; raises UnknownTopic."""
        return self.topics.partitions(topic)

    def partition(self, topic: str, index: int) -> Partition:
        """Return one partition; raises UnknownTopic, PartitionOffline."""
        return self.topics.partition(topic, index)

    def create_topic(
        self, name: str, partitions: int, settings: Mapping[str, str], answer: Answer
    ) -> None:
        """Create a topic; raises at once what the catalog refuses."""
        self.topics.create(name, partitions, self._new_id(), settings, answer)

    def delete_topic(self, name: str, answer: Answer) -> None:
        """Delete a topic; raises at once what the catalog refuses."""
        self.topics.delete(name, answer)

    def add_partitions(self, name: str, partitions: int, answer: Answer) -> None:
        """Give a topic this many partitions in all; raises at once what the catalog refuses."""
        self.topics.add_partitions(name, partitions, answer)

    def set_settings(self, name: str, settings: Mapping[str, str], answer: Answer) -> None:
        """Replace what was set for a topic; raises at once what the catalog refuses."""
        self.topics.set_settings(name, settings, answer)

    def next_producer_id(self, give: Give) -> None:
        """Give a producer id that nobody ever had; most calls write nothing."""
        self._producer_ids.next(give)

    def delete_records(self, topic: str, partition: int, offset: Offset, answer: Answer) -> None:
        """Forget the records before an offset, -1 for all; raises at once what cannot be."""
        self.topics.delete_records(topic, partition, offset, answer)

    def new_partition(self, replica: Replica, settings: TopicSettings, topic: Topic) -> Partition:
        """Put the front of a partition before its replica, and look after it from now on."""
        partition = Partition(
            replica, settings, self._clock, self._producers, is_internal=topic.is_internal
        )
        self._housekeeper.watch(replica, lambda: partition.settings)
        return partition

    def _open_partitions(self) -> Iterator[Partition]:
        """Yield the partitions of the topics there are now, but of those deleted meanwhile."""
        return self.topics.each_partition()

    def open_replica(self, group: GroupId) -> Replica:
        """Open a group's replica, beginning its log if there is none; raises LogError."""
        if group in self._store.journal.groups:
            log = self._store.open_log(group)
        else:
            log = self._store.create_log(group, Voters(voters=(self.node,)))
        replica = self._store.replica(log, self._raft, self._chance, _nobody_to_send_to)
        self._replicas[group] = replica
        self._roster.add(group, replica.raft)
        return replica

    def drop_replica(self, group: GroupId) -> None:
        """Let a replica have no more ticks; one that could not be opened has none anyway."""
        self._roster.remove(group)
        self._replicas.pop(group, None)

    def space(self) -> tuple[int, int]:
        """Return the bytes of the disk in all, and those of them that are free."""
        return self._store.disk.space()

    @property
    def data_folder(self) -> str:
        """Where everything is kept."""
        return self._store.disk.location()

    def _take_producer_ids(self, count: int, taken: Callable[[int | None], None]) -> None:
        catalog = self.catalog
        first = catalog.next_producer_id

        def done(outcome: Outcome) -> None:
            taken(first if outcome is Outcome.COMMITTED else None)

        self._catalog.write(catalog.give_producer_ids(count), done)
        self.flush()

    def _on_catalog(self, catalog: Catalog) -> None:
        if catalog.cluster_id is None:
            cluster_id = urlsafe_b64encode(self._new_id()).decode().rstrip("=")
            self._catalog.write(catalog.name_cluster(cluster_id), _ignore)
        self.topics.start(self._ready)

    def _new_id(self) -> bytes:
        return self._chance.getrandbits(128).to_bytes(16, "big")


def _nobody_to_send_to(group: GroupId, message: Message) -> None:
    raise AssertionError(f"a single broker has no peers for {group}: {message}")


def _ignore(_: object) -> None:
    """Nobody waits for it."""
