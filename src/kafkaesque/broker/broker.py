"""One node's broker: its store, its groups, its copy of the catalog. Synchronous throughout."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from kafkaesque.broker.cluster.calls import (
    COMMAND,
    COPY,
    RANGE,
    SHARE_STATE,
    TRANSACTION,
    CallKind,
)
from kafkaesque.broker.cluster.caretaker import Caretaker
from kafkaesque.broker.cluster.catalog_changes import Changes
from kafkaesque.broker.cluster.catalog_coordinator import CatalogCoordinator
from kafkaesque.broker.cluster.catalog_freshness import Confirming
from kafkaesque.broker.cluster.housekeeper import Housekeeper
from kafkaesque.broker.cluster.live_settings import LiveSettings
from kafkaesque.broker.cluster.lost_brokers import LostBrokers
from kafkaesque.broker.cluster.membership import Membership, Registering
from kafkaesque.broker.cluster.mover import MoveProgress, Mover
from kafkaesque.broker.cluster.refills import Refills
from kafkaesque.broker.cluster.repairs import Repairs
from kafkaesque.broker.cluster.replica_set import ReplicaSet
from kafkaesque.broker.cluster.serving_waits import ServingWaits
from kafkaesque.broker.cluster.topics import Answer, Topics
from kafkaesque.broker.cluster.wall_clocks import WallClocks
from kafkaesque.broker.coordination.coordinators import (
    OFFSETS_SETTINGS,
    OFFSETS_TOPIC,
    Coordinators,
    partition_of,
)
from kafkaesque.broker.coordination.group_coordinator import GroupCoordinator
from kafkaesque.broker.coordination.producer_ids import Give, ProducerIds
from kafkaesque.broker.coordination.transaction_carrier import TransactionCarrier
from kafkaesque.broker.coordination.transactions import (
    STATE_SETTINGS,
    STATE_TOPIC,
    BrokerTransactions,
)
from kafkaesque.broker.machine_hosting.machine_follower import MachineFollower
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.partition.fetch_sessions import FetchSessions
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.partition.producer_sweep import ProducerSweep
from kafkaesque.broker.queues.broker_shares import BrokerShares
from kafkaesque.broker.queues.share_calls import SHARE_SETTINGS, SHARE_TOPIC, ShareDesk
from kafkaesque.broker.replication.copy_query import CopyAsked, CopyTold
from kafkaesque.broker.replication.failures import once
from kafkaesque.broker.replication.leader_table import Leader, LeadersTold
from kafkaesque.broker.replication.log_settings import configure_log, internal
from kafkaesque.broker.replication.repair_ranges import RangeAnswer, RangeAsked, give_range
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.replication.scrubber import Scrubber
from kafkaesque.broker.storage.identity import new_cluster_id
from kafkaesque.broker.storage.salvage import Remembered, remembered
from kafkaesque.broker.storage.store import Store
from kafkaesque.broker.topic_hosting import Hosting
from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig
from kafkaesque.errors import DiskFull, KafkaesqueError, LogError, NotLeader
from kafkaesque.events import Events
from kafkaesque.log.errors import CorruptLog
from kafkaesque.machines.catalog.broker_settings import settings_in_force
from kafkaesque.machines.catalog.catalog import Catalog, Topic, removed_text
from kafkaesque.machines.catalog.catalog_commands import (
    DEFAULT_REPLICATION,
    AddPartitions,
    AnswerTo,
    Carried,
    CatalogAnswer,
    CatalogCommand,
    CreateTopic,
    DeleteTopic,
    DrainBroker,
    FinalizeFeatures,
    MovePartitions,
    NameCluster,
    RemoveBroker,
    Reply,
    SetBrokerSettings,
    SetGroupSettings,
    SetSettings,
    TakeProducerIds,
    to_refusal,
)
from kafkaesque.machines.catalog.features import supported
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.topic_settings import DEFAULTS
from kafkaesque.transactional_ids import hashed_part
from kafkaesque.types import GroupId, NodeId, Offset

__all__ = ["Answer", "Broker"]


Q = TypeVar("Q")
A = TypeVar("A")


class Broker:
    """The broker of one node. `start` opens everything; call `tick` regularly.

    Messages to other brokers go out through `membership.peers`; theirs come in through `deliver`,
    `receive_beat`, `receive_leaders` and `answer`.
    """

    def __init__(
        self,
        node: NodeId,
        store: Store,
        clock: Clock,
        chance: random.Random,
        config: BrokerConfig,
        failed: Callable[[LogError], None],
        membership: Membership,
    ) -> None:
        self.node = node
        self.live = LiveSettings(config, store.events)
        """The settings in force, and those at start."""
        self.live.on_change = self._configure
        self._of_topics = self.live.defaults, config.producers
        """The configuration last passed to partitions."""
        self.fetch_sessions = FetchSessions(chance, config.fetch)
        self._store = store
        self._clock = clock
        self._chance = chance
        self._failed = failed
        session = 1 + chance.getrandbits(60)
        self._peers = membership.peers
        self.replicas = ReplicaSet(node, session, store, config.raft, chance, self._peers)
        self.leaders = self.replicas.leaders
        self._membership = membership
        self.supports = supported(config.cluster.catalog_version_max)
        """The lowest and highest level of each feature that this broker supports."""
        self._registering = Registering(node, membership, session, self.supports, self.ask, failed)
        self.on_catalog: Callable[[], None] = ignore
        """Called when this broker's copy of the catalog has changed."""
        self._is_started = False
        self._waits = ServingWaits(self.leaders, self.replicas.is_reachable)
        self.leaders.on_change = self._waits.changed
        self.clocks = WallClocks(node, clock, config.housekeeping, self._peers.tell, store.events)
        self._housekeeper = Housekeeper(clock, config.housekeeping, self.clocks)
        self.repairs = Repairs(
            node,
            self.replicas,
            self._housekeeper,
            self._peers,
            clock,
            config.housekeeping,
            store.events,
        )
        self.refills = Refills(node, store, self._peers, clock, config.housekeeping, once(failed))
        self.scrubber = Scrubber(clock, config.housekeeping, self.replicas.by_group, store.events)
        self._producer_ids = ProducerIds(config.producers.ids_per_block, self._take_producer_ids)
        # Topics may come and go meanwhile; deleted ones are not yielded.
        self.sweep = ProducerSweep(
            lambda: self.topics.each_partition(), failed, config.producers.all_max
        )
        self.topics: Topics
        self._catalog: CatalogCoordinator
        self._committed: MachineFollower[Catalog]
        self._changes: Changes
        self.confirming: Confirming
        self._caretaker: Caretaker | None = None
        self.has_catalog = False
        """Whether its copy of the catalog is open; it is unless its log is damaged."""
        self.coordinators: Coordinators[GroupCoordinator] = Coordinators(self._create_offsets_topic)
        self.transactions = BrokerTransactions(self, self._create_state_topic)
        carrier = TransactionCarrier(self, self._peers)
        self.transactions.desk = self.transactions.markers = carrier
        desk = ShareDesk(self, self._peers, self._create_share_topic)
        self.shares = BrokerShares(desk, clock, lambda: self._known.group_settings)
        self._hosting = Hosting(
            self.replicas,
            self.coordinators,
            self.transactions,
            desk.coordinators,
            self._housekeeper,
            store,
            clock,
            config,
            failed,
            self.next_producer_id,
            self.refills,
        )
        self._known = Catalog(self.supports)
        self.topics = Topics(
            node,
            self._known,
            self._hosting,
            store,
            clock,
            self._waits,
            lambda: self.live.defaults,
        )
        self._mover = Mover(
            node, self.replicas, lambda: self.topics.moving, self.ask, clock, config.moves
        )

    def start(self, ready: Callable[[], None]) -> None:
        """Open the catalog, then its topics; calls `ready` when the first of them serve.

        If the catalog's log is damaged, other brokers fill it first, if there are any.
        """
        self._ready = ready
        try:
            self._begin(self._open_catalog())
        except CorruptLog as damage:
            if not self.refills.want(CATALOG_GROUP, damage, (), self._begin_refilled):
                raise

    def _open_catalog(self) -> Replica:
        return self.replicas.open(CATALOG_GROUP, self._membership.voters, has_machine=True)

    def _begin_refilled(self) -> None:
        try:
            self._begin(self._open_catalog())
        except LogError as error:
            self._failed(error)

    def _begin(self, replica: Replica) -> None:
        """Follow the catalog, whose log is open."""
        replica.raft.announces_commits = True
        settings = internal(DEFAULTS, replica.log.segments.config)
        configure_log(replica.log, settings)
        self._housekeeper.watch(replica, lambda: settings)
        site = MachineSite(
            replica=replica,
            clock=self._clock,
            snapshots=self._store.snapshots(CATALOG_GROUP),
            slices=self._store.slices,
            failed=once(self._failed),
        )
        self._committed = MachineFollower(site, self._known, self._on_applied)
        self._catalog = CatalogCoordinator(
            site,
            self.supports,
            self._committed.live,
            self.replicas.is_reachable,
            self._chance,
            self._on_catalog,
        )
        self._changes = Changes(
            self.node, self._catalog, self._peers, lambda: self.leader_of(CATALOG_GROUP).node
        )
        self.confirming = Confirming(self.ask, self._committed, lambda: self._catalog.is_hosted)
        self._lost = LostBrokers(
            self._store.disk, lambda: self._committed.machine, self.ask, self.events
        )
        self.has_catalog = True
        self.replicas.tell_of_leading(replica)
        self._caretaker = Caretaker(
            self._catalog,
            self.replicas,
            self._clock,
            self._chance,
            self.config.cluster,
            self._membership.voters.members,
            self.events,
        )
        if replica.raft.voters.voters == (self.node,):
            replica.campaign()

    def tick(self) -> None:
        """Advance one tick."""
        self.replicas.tick(self._others())
        self.refills.tick()
        if not self.has_catalog:
            return
        if self._is_started:
            self._lost.tick()
        else:
            self._registering.tick()
        self.topics.tick()
        self._mover.tick()
        self._store.flusher.pass_time(self._clock.monotonic_ms())
        self._store.look_at_room()
        self._catalog.tick()
        self._committed.tick()
        self.confirming.tick()
        if self._caretaker is not None:
            self._caretaker.tick()
        self.coordinators.tick()
        self.transactions.coordinators.tick()
        self.shares.tick()
        self._store.flusher.settle()
        self.clocks.tick(set(self._others()) - self.replicas.removed)
        self._housekeeper.tick()
        self.repairs.tick()
        self.scrubber.tick()
        self.sweep.step()

    def _others(self) -> list[NodeId]:
        known = {*self._membership.voters.members, *self._known.brokers}
        # Until something is committed the catalog is empty, yet brokers must meet to elect a
        # leader.
        if not self._known.brokers and CATALOG_GROUP in self._store.journal.groups:
            known.update(self._store.journal.groups[CATALOG_GROUP].marks.voters()[-1][1].members)
        return sorted(known - {self.node})

    # ── messages from other brokers ──────────────────────────────────────────────────────────

    def deliver(self, group: GroupId, message: Message) -> None:
        """Take a message of a group; it is dropped if the group is not open here."""
        self.replicas.deliver(group, message)

    def receive_beat(self, beat: Beat) -> None:
        """Take another broker's beat."""
        self.replicas.receive_beat(beat)

    def receive_leaders(self, told: LeadersTold) -> None:
        """Take another broker's message about the groups that it leads."""
        self.replicas.receive_leaders(told)

    def answer(self, kind: CallKind[Q, A], question: Q, reply: Callable[[A], None]) -> None:
        """Answer another broker's call."""
        answering: dict[CallKind[Any, Any], Callable[[Any, Callable[[Any], None]], None]] = {
            COMMAND: self.carry_out,
            TRANSACTION: self.transactions.answer,
            RANGE: self._give_range,
            COPY: self._tell_copy,
            SHARE_STATE: self.shares.desk.answer,
        }
        answering[kind](question, reply)

    def carry_out(self, command: CatalogCommand, reply: Callable[[Reply], None]) -> None:
        """Carry out a command for the catalog's leader, if that is this broker."""
        if self.has_catalog:
            self._changes.carry_out(command, reply)
        else:
            reply(to_refusal(NotLeader(None)))

    def _give_range(self, asked: RangeAsked, reply: Callable[[RangeAnswer], None]) -> None:
        reply(give_range(self.replicas.by_group.get(asked.group), asked))

    def _tell_copy(self, asked: CopyAsked, reply: Callable[[CopyTold], None]) -> None:
        reply(self.refills.tell(asked, self.replicas.by_group.get(asked.group)))

    def remembered(self, node: NodeId) -> Remembered:
        """Return what is known here of a broker that lost its journal."""
        return remembered(self._store.journal, node)

    def suspect(self, node: NodeId) -> None:
        """Consider another broker gone at once: its link is lost, and its port is closed."""
        self.replicas.suspect(node)

    def hand_over(self, done: Callable[[], None]) -> None:
        """Hand all leadership to others before a clean stop; `done` is called once, in time.

        Ticks continue meanwhile: it takes some, at most `RaftConfig.hand_over_ticks`.
        """
        self.replicas.hand_over(done)

    def flush(self) -> None:
        """Sync what was written now instead of at the end of the event."""
        self._store.flusher.kick()

    def stop(self) -> None:
        """Stop cleanly."""
        self._housekeeper.stop()
        self.repairs.stop()
        self.scrubber.stop()
        self.sweep.stop()
        if self.has_catalog:
            self._committed.stop()
        self.coordinators.stop()
        self.transactions.coordinators.stop()
        self.shares.desk.coordinators.stop()
        self._store.close()

    @property
    def has_others(self) -> bool:
        """Whether there are other brokers in the cluster."""
        return bool(self._others())

    @property
    def catalog(self) -> Catalog:
        """The catalog as this broker knows it: as committed, or as decided where it leads."""
        led = self._catalog.catalog if self.has_catalog else None
        return self._known if led is None else led

    @property
    def committed_catalog(self) -> MachineFollower[Catalog]:
        """This broker's copy of what is committed of the catalog."""
        return self._committed

    @property
    def events(self) -> Events:
        """Where all parts of the broker report their events."""
        return self._store.events

    def leader_of(self, group: GroupId) -> Leader:
        """Return a group's leader, as far as known here."""
        return self.leaders.of(group)

    def partition_leader(self, topic: Topic, index: int) -> Leader:
        """Return a partition's leader, as far as known here."""
        return self.leaders.of(group_of(topic, index))

    def coordinator_of(self, key: str, topic_name: str = OFFSETS_TOPIC) -> NodeId | None:
        """Return the broker that coordinates a consumer group; None if there is none now.

        With the topic of transactions, the one that coordinates a transactional id.
        """
        topic = self._committed.machine.topics.get(topic_name)
        if topic is None:
            return None
        if topic_name == STATE_TOPIC:
            key = hashed_part(key)
        return self.partition_leader(topic, partition_of(key, topic.partitions)).node

    @property
    def config(self) -> BrokerConfig:
        """The settings in force, except topic defaults."""
        return self.live.config

    @property
    def cluster_id(self) -> str | None:
        """The name that the cluster gave itself; None until it has one."""
        return self.catalog.cluster_id

    def now_ms(self) -> int:
        """Return the wall time."""
        return self._clock.now_ms()

    def fresh_name(self) -> str:
        """Return a name that was never used before."""
        return str(UUID(int=self._chance.getrandbits(128), version=4))

    def partition(self, topic: str, index: int) -> Partition:
        """Return one partition; raises UnknownTopic, PartitionOffline."""
        return self.topics.partition(topic, index)

    @property
    def sync_rounds(self) -> tuple[int, int]:
        """How many sync rounds were done, and their total milliseconds."""
        return self._store.flusher.rounds, self._store.flusher.rounds_ms

    def create_topic(
        self,
        name: str,
        partitions: int,
        settings: Mapping[str, str],
        answer: Answer,
        *,
        replication: int = DEFAULT_REPLICATION,
        assignment: Sequence[Sequence[NodeId]] = (),
    ) -> None:
        """Create a topic; answers with the error if the catalog refuses or has no leader."""
        command = CreateTopic(
            name=name,
            topic_id=self._new_id(),
            partitions=partitions,
            replication=replication,
            settings=dict(settings),
            assignment=[list(nodes) for nodes in assignment],
        )
        self._change(command, answer, name)

    def delete_topic(self, name: str, answer: Answer) -> None:
        """Delete a topic; answers as `create_topic` does."""
        self._change(DeleteTopic(name=name), answer, name)

    def add_partitions(
        self,
        name: str,
        partitions: int,
        answer: Answer,
        *,
        assignment: Sequence[Sequence[NodeId]] = (),
    ) -> None:
        """Grow a topic to this many partitions in total; answers as `create_topic` does."""
        assigned = [list(nodes) for nodes in assignment]
        command = AddPartitions(name=name, partitions=partitions, assignment=assigned)
        self._change(command, answer, name)

    def set_settings(
        self,
        name: str,
        settings: Mapping[str, str],
        answer: Answer,
        expected: Mapping[str, str] | None = None,
    ) -> None:
        """Replace a topic's settings; answers as `create_topic` does."""
        known = None if expected is None else dict(expected)
        self._change(SetSettings(name=name, settings=dict(settings), expected=known), answer, name)

    def move_partitions(
        self, moves: Sequence[tuple[bytes, int, Sequence[NodeId]]], answer: Answer
    ) -> None:
        """Start or cancel moves of partitions; answers as `create_topic` does.

        Each is a topic's id, a partition, and its target brokers, the preferred leader first;
        without brokers the move is cancelled. The answer comes when the moves have started; `moves`
        reports their progress.
        """
        command = MovePartitions(moves=[(topic, index, list(to)) for topic, index, to in moves])
        self._change(command, answer)

    def drain_broker(self, node: NodeId, answer: Answer, *, is_draining: bool = True) -> None:
        """Stop placing anything new on a broker, or resume that; answers as `create_topic` does."""
        self._change(DrainBroker(node=node, is_draining=is_draining), answer)

    def set_broker_settings(
        self,
        node: NodeId,
        settings: Mapping[str, str],
        answer: Answer,
        expected: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the settings of a broker, or of `ALL_BROKERS`; answers as `create_topic` does."""
        known = None if expected is None else dict(expected)
        command = SetBrokerSettings(node=node, settings=dict(settings), expected=known)
        self._change(command, answer)

    def set_group_settings(
        self,
        group: str,
        settings: Mapping[str, str],
        answer: Answer,
        expected: Mapping[str, str] | None = None,
    ) -> None:
        """Replace the settings of a group; answers as `create_topic` does."""
        known = None if expected is None else dict(expected)
        command = SetGroupSettings(group=group, settings=dict(settings), expected=known)
        self._change(command, answer)

    def remove_broker(self, node: NodeId, answer: Answer) -> None:
        """Forget a broker that holds nothing; answers as `create_topic` does."""
        self._change(RemoveBroker(node=node), answer)

    def finalize_features(
        self, levels: Mapping[str, int], answer: Answer, *, can_lower: bool = False
    ) -> None:
        """Set the feature levels of the whole cluster; answers as `create_topic` does."""
        self._change(FinalizeFeatures(levels=dict(levels), can_lower=can_lower), answer)

    def moves(self) -> list[MoveProgress]:
        """Return the progress of partition moves, as far as this broker knows."""
        return self._mover.progress()

    def next_producer_id(self, give: Give) -> None:
        """Give out a producer id that was never used before; most calls write nothing."""
        self._producer_ids.next(give)

    def delete_records(self, topic: str, partition: int, offset: Offset, answer: Answer) -> None:
        """Delete the records before an offset, -1 for all; invalid requests raise at once."""
        self.topics.delete_records(topic, partition, offset, answer)

    def space(self) -> tuple[int, int]:
        """Return the disk's total and free bytes."""
        return self._store.disk.space()

    @property
    def data_folder(self) -> str:
        """The folder that holds all data."""
        return self._store.disk.location()

    def _create_offsets_topic(self, answer: Answer) -> None:
        count = self.config.groups.offsets_partitions
        self.create_topic(OFFSETS_TOPIC, count, OFFSETS_SETTINGS, answer)

    def _create_state_topic(self, answer: Answer) -> None:
        count = self.config.transactions.state_partitions
        self.create_topic(STATE_TOPIC, count, STATE_SETTINGS, answer)

    def _create_share_topic(self, answer: Answer) -> None:
        count = self.config.groups.share_state_partitions
        self.create_topic(SHARE_TOPIC, count, SHARE_SETTINGS, answer)

    def _take_producer_ids(
        self, count: int, taken: Callable[[int | KafkaesqueError], None]
    ) -> None:
        def answered(answer: CatalogAnswer) -> None:
            taken(answer.first_id if isinstance(answer, Carried) else answer)

        self.ask(TakeProducerIds(count=count), answered)

    # ── changes of the catalog ───────────────────────────────────────────────────────────────

    def ask(self, command: CatalogCommand, to: AnswerTo) -> None:
        """Have the catalog's leader carry out a command; answers as `Changes.ask`."""
        if self.has_catalog:
            self._changes.ask(command, to)
        else:
            to(NotLeader(None))

    def _change(self, command: CatalogCommand, answer: Answer, name: str = "") -> None:
        """Have the catalog changed; answer once that shows here and the topic has leaders."""

        def answered(found: CatalogAnswer) -> None:
            if isinstance(found, Carried):
                self._committed.catch_up()
                self._committed.when_applied(found.end, applied)
            else:
                answer(found)

        def applied() -> None:
            self.topics.when_served(name, lambda: answer(None))

        self.ask(command, answered)

    def _on_catalog(self, catalog: Catalog) -> None:
        """Start to lead the catalog."""
        if catalog.cluster_id is None:
            cluster_id = self._membership.cluster or new_cluster_id(self._new_id())
            self._catalog.ask(NameCluster(cluster_id=cluster_id, levels=self.supports), self._named)
        if not self._is_started:
            self._registering.try_now()

    def _named(self, answer: CatalogAnswer) -> None:
        if isinstance(answer, DiskFull):  # of other errors the next leader takes care
            self._failed(answer)

    def _on_applied(self) -> None:
        """Follow the committed catalog, once this broker is known to have caught up with it."""
        removed = self._committed.machine.removed
        if removed != self.replicas.removed:
            self.replicas.removed = removed
            if self.node in removed:
                self._failed(LogError(removed_text(self.node)))
        self._follow_settings()
        if self._registering.is_done(self._committed.machine):
            self._start_topics()
        self.topics.follow()
        self.on_catalog()

    def _start_topics(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._follow_settings()
            try:
                self._lost.start()
                self.topics.start(self._ready)
            except LogError as error:  # it cannot write what it must not forget
                self._failed(error)

    def _follow_settings(self) -> None:
        """Apply the settings that the committed catalog has for this broker."""
        self.live.take(settings_in_force(self._committed.machine, self.node))

    def _configure(self) -> None:
        config = self.live.config
        self.fetch_sessions.configure(config.fetch)
        self._housekeeper.configure(config.housekeeping)
        self.scrubber.configure(config.housekeeping)
        self._mover.configure(config.moves)
        self._hosting.configure(config)
        if self._caretaker is not None:
            self._caretaker.configure(config.cluster)
        of_topics = self.live.defaults, config.producers
        if of_topics != self._of_topics:  # skipped otherwise: there may be many partitions
            self._of_topics = of_topics
            self.topics.configure(config.producers)

    def _new_id(self) -> bytes:
        return self._chance.getrandbits(128).to_bytes(16, "big")
