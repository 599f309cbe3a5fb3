"""One node's broker: its store, its groups and the catalog of topics. Synchronous throughout."""

import random
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence

from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.store import Store
from kafkaesque.broker.watermark import Outcome
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig, RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import KafkaesqueError, LogError, OutcomeUnknown, UnknownTopic
from kafkaesque.machines.catalog import Catalog, Topic
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Roster
from kafkaesque.topic_settings import resolve
from kafkaesque.types import GroupId, NodeId

CATALOG_GROUP: GroupId = "cluster-metadata"
_NAME_CHARS_IN_PATH = 180

Answer = Callable[[KafkaesqueError | None], None]
"""Told None when a change is committed, else what went wrong."""


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
        raft: RaftConfig | None = None,
    ) -> None:
        self.node = node
        self.config = config
        self._store = store
        self._clock = clock
        self._chance = chance
        self._raft = raft or RaftConfig()
        self._failed = failed
        self._roster = Roster(node, self._raft, 1 + chance.getrandbits(60))
        self._replicas: dict[GroupId, Replica] = {}
        self._partitions: dict[str, list[Partition]] = {}
        self._catalog: MachineHost[Catalog]

    def start(self, ready: Callable[[], None]) -> None:
        """Open the catalog, then every topic in it; `ready` is told when all of them serve."""
        self._ready = ready
        replica = self._open(CATALOG_GROUP)
        self._catalog = MachineHost(replica, self._clock, Catalog, self._on_catalog, self._failed)
        replica.campaign()
        self.flush()

    def tick(self) -> None:
        """Let a tick pass."""
        self._roster.tick()
        for group in list(self._roster.awake):
            self._replicas[group].tick()
        self._store.flusher.settle()
        self.flush()

    def flush(self) -> None:
        """Begin to sync what was written; call it after every input."""
        self._store.flusher.kick()

    def stop(self) -> None:
        """Stop cleanly."""
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
        """Return a topic's partitions in order; raises UnknownTopic."""
        found = self._partitions.get(topic)
        if found is None:
            raise UnknownTopic(f"there is no topic {topic}")
        return found

    def partition(self, topic: str, index: int) -> Partition:
        """Return one partition; raises UnknownTopic."""
        found = self.partitions(topic)
        if not 0 <= index < len(found):
            raise UnknownTopic(f"topic {topic} has no partition {index}")
        return found[index]

    @property
    def open_partitions(self) -> Mapping[str, Sequence[Partition]]:
        """The partitions of every topic that can be used."""
        return self._partitions

    @property
    def sync_rounds(self) -> tuple[int, int]:
        """How many rounds of syncing were done, and how many milliseconds they took."""
        return self._store.flusher.rounds, self._store.flusher.rounds_ms

    def create_topic(
        self, name: str, partitions: int, settings: Mapping[str, str], answer: Answer
    ) -> None:
        """Create a topic; raises at once what the catalog refuses."""
        topic_id = self._chance.getrandbits(128).to_bytes(16, "big")
        records = self.catalog.create_topic(name, partitions, topic_id, settings)

        def created(outcome: Outcome) -> None:
            if outcome is Outcome.COMMITTED:
                self._open_topic(self.catalog.topics[name], lambda: answer(None))
            else:
                answer(OutcomeUnknown("leadership was lost; ask again whether it was made"))

        self._write(records, created)

    def _write(self, records: Sequence[MachineRecord], done: Callable[[Outcome], None]) -> None:
        self._catalog.write(records, done)
        self.flush()

    def _on_catalog(self, catalog: Catalog) -> None:
        if catalog.cluster_id is None:
            name = self._chance.getrandbits(128).to_bytes(16, "big")
            cluster_id = urlsafe_b64encode(name).decode().rstrip("=")
            self._write(catalog.name_cluster(cluster_id), _ignore)
        topics = list(catalog.topics.values())
        self._open_topics(topics)

    def _open_topics(self, topics: list[Topic]) -> None:
        if not topics:
            self._ready()
            return
        self._open_topic(topics[0], lambda: self._open_topics(topics[1:]))

    def _open_topic(self, topic: Topic, opened: Callable[[], None]) -> None:
        """Open a topic's partitions; it can be used, and `opened` is told, once all serve."""
        partitions = []
        try:
            for index in range(topic.partitions):
                replica = self._open(folder_of(topic, index))
                partitions.append(Partition(replica, resolve(topic.settings)))
                replica.campaign()
        except LogError as error:  # damaged, and there is nobody to refill it
            self._failed(error)
            return
        self.flush()

        def look() -> None:
            late = next((p for p in partitions if not p.replica.is_serving), None)
            if late is not None:
                late.when_more(look)
                return
            self._partitions[topic.name] = partitions
            opened()

        look()

    def _open(self, group: GroupId) -> Replica:
        if group in self._store.journal.groups:
            log = self._store.open_log(group)
        else:
            log = self._store.create_log(group, Voters(voters=(self.node,)))
        replica = self._store.replica(log, self._raft, self._chance, _nobody_to_send_to)
        self._replicas[group] = replica
        self._roster.add(group, replica.raft)
        return replica


def folder_of(topic: Topic, index: int) -> GroupId:
    """Return the folder, and so the group, of a partition; its id keeps namesakes apart."""
    return f"{topic.name[:_NAME_CHARS_IN_PATH]}.{topic.topic_id.hex()}/{index}"


def _nobody_to_send_to(group: GroupId, message: Message) -> None:
    raise AssertionError(f"a single broker has no peers for {group}: {message}")


def _ignore(_: object) -> None:
    """Nobody waits for it."""
