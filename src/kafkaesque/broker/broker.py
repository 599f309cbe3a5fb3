"""One node's broker: its store, its groups, its copy of the catalog. Synchronous throughout."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from uuid import UUID

from kafkaesque.broker.caretaker import Caretaker
from kafkaesque.broker.changes import Changes
from kafkaesque.broker.confirming import Confirming
from kafkaesque.broker.coordinators import (
    OFFSETS_SETTINGS,
    OFFSETS_TOPIC,
    Coordinators,
    partition_of,
)
from kafkaesque.broker.copies import CopyAsked, CopyTold
from kafkaesque.broker.doubts import CATALOG_GROUP
from kafkaesque.broker.failing import once
from kafkaesque.broker.fetch_sessions import FetchSessions
from kafkaesque.broker.group_coordinator import GroupCoordinator
from kafkaesque.broker.hosting import Hosting
from kafkaesque.broker.housekeeper import Housekeeper
from kafkaesque.broker.identity import new_cluster_id
from kafkaesque.broker.leaders import Leader, LeadersTold
from kafkaesque.broker.live_settings import LiveSettings
from kafkaesque.broker.log_settings import configure_log, internal
from kafkaesque.broker.lost_brokers import LostBrokers
from kafkaesque.broker.machine_follower import MachineFollower
from kafkaesque.broker.machine_host import MachineHost
from kafkaesque.broker.membership import Membership, Registering
from kafkaesque.broker.mover import MoveProgress, Mover
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.peers import AnswerTo, NoPeers, Peers, ReplyTo
from kafkaesque.broker.producer_ids import Give, ProducerIds
from kafkaesque.broker.producer_sweep import ProducerSweep
from kafkaesque.broker.ranges import RangeAnswer, RangeAsked, give_range
from kafkaesque.broker.refills import Refills
from kafkaesque.broker.repairs import Repairs
from kafkaesque.broker.replica import Replica
from kafkaesque.broker.replica_set import ReplicaSet
from kafkaesque.broker.salvage import Remembered, remembered
from kafkaesque.broker.scrub import Scrubber
from kafkaesque.broker.serving_waits import ServingWaits
from kafkaesque.broker.store import Store
from kafkaesque.broker.topics import Answer, Topics, group_of
from kafkaesque.broker.transaction_carrier import TransactionCarrier
from kafkaesque.broker.transactions import STATE_SETTINGS, STATE_TOPIC, BrokerTransactions
from kafkaesque.broker.wall_clocks import WallClocks
from kafkaesque.clock import Clock
from kafkaesque.config import BrokerConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import CorruptLog, LogError, NotLeader, OutcomeUnknown
from kafkaesque.machines.broker_settings import settings_in_force
from kafkaesque.machines.catalog import Catalog, Topic, removed_text
from kafkaesque.machines.catalog_commands import (
    DEFAULT_REPLICATION,
    AddPartitions,
    Carried,
    Command,
    CreateTopic,
    DeleteTopic,
    DrainBroker,
    FinalizeFeatures,
    MovePartitions,
    Refused,
    RemoveBroker,
    Reply,
    SetBrokerSettings,
    SetSettings,
    TakeProducerIds,
    to_error,
    to_refusal,
)
from kafkaesque.machines.features import first_features, supported
from kafkaesque.machines.transaction_questions import Question
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.topic_settings import DEFAULTS
from kafkaesque.transactional_ids import hashed_part
from kafkaesque.types import NO_TERM, GroupId, NodeId, Offset

__all__ = ["CATALOG_GROUP", "Answer", "Broker"]


class Broker:
    """The broker of one node. `start` opens everything; `tick` is to be called regularly.

    Without a membership it is alone. With one it is of a cluster: what it has for the others goes
    out through `membership.peers`, what they have for it comes in through `deliver`,
    `receive_beat`, `receive_leaders`, `carry_out` and `consult`.
    """

    def __init__(
        self,
        node: NodeId,
        store: Store,
        clock: Clock,
        chance: random.Random,
        config: BrokerConfig,
        failed: Callable[[LogError], None],
        membership: Membership | None = None,
    ) -> None:
        self.node = node
        self.live = LiveSettings(config)
        """What is set now, and what was set when it started."""
        self.live.on_change = self._configure
        self._of_topics = self.live.defaults, config.producers
        """What partitions were last configured with."""
        self.fetch_sessions = FetchSessions(chance, config.fetch)
        self._store = store
        self._clock = clock
        self._chance = chance
        self._failed = failed
        session = 1 + chance.getrandbits(60)
        self._peers: Peers = NoPeers() if membership is None else membership.peers
        self.replicas = ReplicaSet(node, session, store, config.raft, chance, self._peers)
        self.leaders = self.replicas.leaders
        self._membership = membership
        self.supports = supported(config.cluster.catalog_version_max)
        """The lowest and highest level of each feature that this broker supports."""
        self._registering: Registering | None = None
        if membership is not None:
            self._registering = Registering(
                node, membership, session, self.supports, self.ask, failed
            )
        self.on_catalog: Callable[[], None] = _ignore
        """Called when this broker's copy of the catalog has changed."""
        self._is_started = False
        self._waits = ServingWaits(self.leaders, self.replicas.is_reachable)
        self.leaders.on_change = self._waits.changed
        self.clocks = WallClocks(node, clock, config.housekeeping, self._peers.tell)
        self._housekeeper = Housekeeper(clock, config.housekeeping, self.clocks)
        self.repairs = Repairs(
            node, self.replicas, self._housekeeper, self._peers, clock, config.housekeeping
        )
        self.refills = Refills(node, store, self._peers, clock, config.housekeeping, once(failed))
        self.scrubber = Scrubber(clock, config.housekeeping, self.replicas.by_group)
        self._producer_ids = ProducerIds(config.producers.ids_per_block, self._take_producer_ids)
        # While topics may come and go: those that were deleted meanwhile are not yielded.
        self.sweep = ProducerSweep(
            lambda: self.topics.each_partition(), failed, config.producers.all_max
        )
        self.topics: Topics
        self._catalog: MachineHost[Catalog]
        self._committed: MachineFollower[Catalog]
        self._changes: Changes
        self.confirming: Confirming
        self._caretaker: Caretaker | None = None
        self.has_catalog = False
        """Whether its copy of the catalog is open, which it is unless its log is damaged."""
        self.coordinators: Coordinators[GroupCoordinator] = Coordinators(self._create_offsets_topic)
        self.transactions = BrokerTransactions(self, self._create_state_topic)
        if membership is not None:
            carrier = TransactionCarrier(self, self._peers)
            self.transactions.desk = self.transactions.markers = carrier
        self._hosting = Hosting(
            self.replicas,
            self.coordinators,
            self.transactions,
            self._housekeeper,
            store,
            clock,
            config,
            failed,
            self.next_producer_id,
            self.refills,
            is_alone=membership is None,
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

        A catalog whose log is damaged is first filled by others, if there are any.
        """
        self._ready = ready
        try:
            self._begin(self._open_catalog())
        except CorruptLog as damage:
            if not self.refills.want(CATALOG_GROUP, damage, (), self._begin_refilled):
                raise

    def _open_catalog(self) -> Replica:
        return self.replicas.open(CATALOG_GROUP, self._first_voters(), has_machine=True)

    def _first_voters(self) -> Voters:
        alone = Voters(voters=(self.node,))
        return alone if self._membership is None else self._membership.voters

    def _begin_refilled(self) -> None:
        try:
            self._begin(self._open_catalog())
        except LogError as error:
            self._failed(error)

    def _begin(self, replica: Replica) -> None:
        """Follow the catalog, whose log is open."""
        first = self._first_voters()
        replica.raft.announces_commits = True
        settings = internal(DEFAULTS, replica.log.segments.config)
        configure_log(replica.log, settings)
        self._housekeeper.watch(replica, lambda: settings)
        snapshots = self._store.snapshots(CATALOG_GROUP)
        failed = once(self._failed)
        new_catalog = partial(Catalog, self.supports)
        self._committed = MachineFollower(
            replica, self._clock, self._known, self._on_applied, failed, snapshots
        )
        self._catalog = MachineHost(
            replica, self._clock, new_catalog, self._on_catalog, failed, snapshots, saves=False
        )
        self._changes = Changes(
            self.node,
            self._catalog,
            self._peers,
            self._chance,
            lambda: self.leader_of(CATALOG_GROUP).node,
            self.replicas.is_reachable,
        )
        self.confirming = Confirming(self.ask, self._committed, lambda: self._catalog.is_hosted)
        self._lost = LostBrokers(self._store.disk, lambda: self._committed.machine, self.ask)
        self.has_catalog = True
        self.replicas.tell_of_leading(replica)
        if self._membership is not None:
            self._caretaker = Caretaker(
                replica,
                self._catalog,
                self.replicas,
                self._clock,
                self._chance,
                self.config.cluster,
                first.members,
            )
            self._caretaker.on_moves = lambda moves: self._changes.decide(moves, _ignore)
        if replica.raft.voters.voters == (self.node,):
            replica.campaign()
        self.flush()

    @property
    def is_in_doubt(self) -> bool:
        """Whether groups may have been here of which nothing is known, as on an old copy."""
        return self._store.journal.doubted_term != NO_TERM

    def tick(self) -> None:
        """Let a tick pass."""
        self.replicas.tick(self._others())
        self.refills.tick()
        if not self.has_catalog:
            self.flush()
            return
        if self._registering is not None and not self._is_started:
            self._registering.tick()
        if self._is_started:
            self._lost.tick()
        self.topics.tick()
        self._mover.tick()
        self._store.flusher.pass_time(self._clock.monotonic_ms())
        self._catalog.tick()
        self._committed.tick()
        self.confirming.tick()
        if self._caretaker is not None:
            self._caretaker.tick()
        self.coordinators.tick()
        self.transactions.coordinators.tick()
        self._store.flusher.settle()
        self.clocks.tick(set(self._others()) - self.replicas.removed)
        self._housekeeper.tick()
        self.repairs.tick()
        self.scrubber.tick()
        self.sweep.step()
        self.flush()

    def _others(self) -> list[NodeId]:
        if self._membership is None:
            return []
        known = {*self._membership.voters.members, *self._known.brokers}
        # While nothing is committed the catalog names nobody, and they must meet to elect a leader.
        if not self._known.brokers and CATALOG_GROUP in self._store.journal.groups:
            known.update(self._store.journal.groups[CATALOG_GROUP].marks.voters()[-1][1].members)
        return sorted(known - {self.node})

    # ── what comes from other brokers ────────────────────────────────────────────────────────

    def deliver(self, group: GroupId, message: Message) -> None:
        """Take a message of a group; if the group is not here, or not yet, it is dropped."""
        self.replicas.deliver(group, message)
        self.flush()

    def receive_beat(self, beat: Beat) -> None:
        """Take another broker's beat."""
        self.replicas.receive_beat(beat)
        self.flush()

    def receive_leaders(self, told: LeadersTold) -> None:
        """Take another broker's word of what it leads."""
        self.replicas.receive_leaders(told)
        self.flush()

    def carry_out(self, command: Command, reply: ReplyTo) -> None:
        """Carry out what another broker asks of the leader of the catalog, if that is this one."""
        if self.has_catalog:
            self._changes.carry_out(command, reply)
        else:
            reply(to_refusal(NotLeader(None)))
        self.flush()

    def consult(self, question: Question, answer: AnswerTo) -> None:
        """Answer what another broker asks about transactions that are led or coordinated here."""
        self.transactions.answer(question, answer)
        self.flush()

    def give_range(self, asked: RangeAsked) -> RangeAnswer:
        """Answer another broker whose own copy of a log is damaged."""
        return give_range(self.replicas.by_group.get(asked.group), asked)

    def tell_copy(self, asked: CopyAsked) -> CopyTold:
        """Answer another broker that would empty its copy of a log."""
        return self.refills.tell(asked, self.replicas.by_group.get(asked.group))

    def remembered(self, node: NodeId) -> Remembered:
        """Return what is known here of a broker that has lost its journal."""
        return remembered(self._store.journal, node)

    def suspect(self, node: NodeId) -> None:
        """Take another broker for gone at once: its link is lost, and nobody listens there."""
        self.replicas.suspect(node)
        self.flush()

    def hand_over(self, done: Callable[[], None]) -> None:
        """Hand all leadership to others before a clean stop; `done` is told once, in time.

        Ticks go on meanwhile: it takes some, and at most `RaftConfig.hand_over_ticks`.
        """
        self.replicas.hand_over(done)

    def flush(self) -> None:
        """Begin to sync what was written; call it after every input."""
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
        self._store.close()

    @property
    def has_others(self) -> bool:
        """Whether there are other brokers in the cluster."""
        return bool(self._others())

    @property
    def catalog(self) -> Catalog:
        """The catalog as this broker knows it: as committed, and where it is led as decided."""
        is_led = self.has_catalog and self._catalog.is_hosted
        return self._catalog.machine if is_led else self._known

    @property
    def committed_catalog(self) -> MachineFollower[Catalog]:
        """This broker's copy of what is committed of the catalog."""
        return self._committed

    def leader_of(self, group: GroupId) -> Leader:
        """Return who leads a group, as far as is known here."""
        return self.leaders.of(group)

    def partition_leader(self, topic: Topic, index: int) -> Leader:
        """Return who leads a partition, as far as is known here."""
        return self.leaders.of(group_of(topic, index))

    def coordinator_of(self, key: str, topic_name: str = OFFSETS_TOPIC) -> NodeId | None:
        """Return the broker that coordinates a consumer group, None while nobody does.

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
        """What is set now, but for the defaults of topics."""
        return self.live.config

    @property
    def cluster_id(self) -> str | None:
        """The name that the cluster gave itself; None while it has none."""
        return self.catalog.cluster_id

    def now_ms(self) -> int:
        """Return the wall time."""
        return self._clock.now_ms()

    def fresh_name(self) -> str:
        """Return a name that nobody has had before."""
        return str(UUID(int=self._chance.getrandbits(128), version=4))

    def partition(self, topic: str, index: int) -> Partition:
        """Return one partition; raises UnknownTopic, PartitionOffline."""
        return self.topics.partition(topic, index)

    @property
    def sync_rounds(self) -> tuple[int, int]:
        """How many rounds of syncing were done, and how many milliseconds they took."""
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
        """Create a topic; raises at once what the catalog refuses, if it is led here."""
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
        """Delete a topic; raises at once what the catalog refuses, if it is led here."""
        self._change(DeleteTopic(name=name), answer, name)

    def add_partitions(
        self,
        name: str,
        partitions: int,
        answer: Answer,
        *,
        assignment: Sequence[Sequence[NodeId]] = (),
    ) -> None:
        """Give a topic this many partitions in all; raises as `create_topic` does."""
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
        """Replace what was set for a topic; raises as `create_topic` does."""
        known = None if expected is None else dict(expected)
        self._change(SetSettings(name=name, settings=dict(settings), expected=known), answer, name)

    def move_partitions(
        self, moves: Sequence[tuple[bytes, int, Sequence[NodeId]]], answer: Answer
    ) -> None:
        """Begin to move partitions, or call moves off; raises as `create_topic` does.

        Each is the id of a topic, a partition, and the brokers that are to hold it, the preferred
        leader first; without brokers its move is called off. It is answered when the moves are
        begun; `moves` tells how they go.
        """
        command = MovePartitions(moves=[(topic, index, list(to)) for topic, index, to in moves])
        self._change(command, answer)

    def drain_broker(self, node: NodeId, answer: Answer, *, is_draining: bool = True) -> None:
        """Put nothing new on a broker from now on, or do so again; raises as `create_topic`."""
        self._change(DrainBroker(node=node, is_draining=is_draining), answer)

    def set_broker_settings(
        self,
        node: NodeId,
        settings: Mapping[str, str],
        answer: Answer,
        expected: Mapping[str, str] | None = None,
    ) -> None:
        """Replace what is set for a broker, or for `ALL_BROKERS`; raises as `create_topic` does."""
        known = None if expected is None else dict(expected)
        command = SetBrokerSettings(node=node, settings=dict(settings), expected=known)
        self._change(command, answer)

    def remove_broker(self, node: NodeId, answer: Answer) -> None:
        """Forget a broker that holds nothing; raises as `create_topic` does."""
        self._change(RemoveBroker(node=node), answer)

    def finalize_features(
        self, levels: Mapping[str, int], answer: Answer, *, can_lower: bool = False
    ) -> None:
        """Let the whole cluster work at these levels; raises as `create_topic` does."""
        self._change(FinalizeFeatures(levels=dict(levels), can_lower=can_lower), answer)

    def moves(self) -> list[MoveProgress]:
        """Return how the moves of partitions go, as far as this broker knows."""
        return self._mover.progress()

    def next_producer_id(self, give: Give) -> None:
        """Give a producer id that nobody ever had; most calls write nothing."""
        self._producer_ids.next(give)

    def delete_records(self, topic: str, partition: int, offset: Offset, answer: Answer) -> None:
        """Forget the records before an offset, -1 for all; raises at once what cannot be."""
        self.topics.delete_records(topic, partition, offset, answer)

    def space(self) -> tuple[int, int]:
        """Return the bytes of the disk in all, and those of them that are free."""
        return self._store.disk.space()

    @property
    def data_folder(self) -> str:
        """Where everything is kept."""
        return self._store.disk.location()

    def _create_offsets_topic(self, answer: Answer) -> None:
        count = self.config.groups.offsets_partitions
        self.create_topic(OFFSETS_TOPIC, count, OFFSETS_SETTINGS, answer)

    def _create_state_topic(self, answer: Answer) -> None:
        count = self.config.transactions.state_partitions
        self.create_topic(STATE_TOPIC, count, STATE_SETTINGS, answer)

    def _take_producer_ids(self, count: int, taken: Callable[[int | None], None]) -> None:
        def replied(reply: Reply) -> None:
            taken(reply.first_id if isinstance(reply, Carried) else None)

        self.ask(TakeProducerIds(count=count), replied)

    # ── changes of the catalog ───────────────────────────────────────────────────────────────

    def ask(self, command: Command, reply: ReplyTo) -> None:
        """Have a command carried out by whoever leads the catalog; raises as `Changes.ask`."""
        if not self.has_catalog:
            raise NotLeader(None)
        self._changes.ask(command, reply)
        self.flush()

    def _change(self, command: Command, answer: Answer, name: str = "") -> None:
        """Have the catalog changed, and answer when that shows here and the topic is led."""

        def replied(reply: Reply) -> None:
            if isinstance(reply, Carried):
                self._committed.catch_up()
                self._committed.when_applied(reply.end, applied)
            elif isinstance(reply, Refused):
                answer(to_error(reply))
            else:
                answer(OutcomeUnknown("leadership was lost; ask again whether it was done"))

        def applied() -> None:
            self.topics.when_served(name, lambda: answer(None))

        self.ask(command, replied)

    def _on_catalog(self, catalog: Catalog) -> None:
        """Begin to lead the catalog."""
        if catalog.cluster_id is None:
            given = self._membership.cluster if self._membership is not None else ""
            cluster_id = given or new_cluster_id(self._new_id())
            begun = [*catalog.name_cluster(cluster_id), *first_features(self.supports)]
            self._catalog.write(begun, _ignore)
        if self._registering is None:
            self._committed.catch_up()
            self._start_topics()
        elif not self._is_started:
            self._registering.try_now()

    def _on_applied(self) -> None:
        """Follow the committed catalog, once this broker is known to have caught up with it."""
        removed = self._committed.machine.removed
        if removed != self.replicas.removed:
            self.replicas.removed = removed
            if self.node in removed:
                self._failed(LogError(removed_text(self.node)))
        self._follow_settings()
        if self._registering is not None and self._registering.is_done(self._committed.machine):
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
            except LogError as error:  # what it must not forget cannot be written
                self._failed(error)

    def _follow_settings(self) -> None:
        """Let what the committed catalog says was set for this broker hold."""
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
        if of_topics != self._of_topics:  # there may be many partitions
            self._of_topics = of_topics
            self.topics.configure(config.producers)

    def _new_id(self) -> bytes:
        return self._chance.getrandbits(128).to_bytes(16, "big")


def _ignore(*_: object) -> None:
    """Nobody waits for it."""
