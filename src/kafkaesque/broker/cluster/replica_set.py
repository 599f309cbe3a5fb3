"""One broker's replicas, and all that they exchange with other brokers' replicas.

It owns the roster, which lets idle groups rest, and the table of leaders. The caller that opens a
replica says what it is for: the catalog, or a partition with its preferred leader.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kafkaesque.broker.cluster.old_copies import OldCopyDetector
from kafkaesque.broker.cluster.peers import Peers
from kafkaesque.broker.replication.campaigns import Campaigns
from kafkaesque.broker.replication.hand_over import HandOver
from kafkaesque.broker.replication.leader_table import Leaders, LeadersTold
from kafkaesque.broker.replication.preferred_leaders import TICKS_BETWEEN as PREFERRED_TICKS
from kafkaesque.broker.replication.preferred_leaders import GivingBack
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.broker.storage.aside import NOBODY
from kafkaesque.broker.storage.store import Store
from kafkaesque.callbacks import ignore
from kafkaesque.config import RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.events import ReplicaStopped
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.machines.catalog.placement import Replicas
from kafkaesque.raft.messages import Message, VoteRequest, VoteResponse
from kafkaesque.raft.roster import Beat, Roster
from kafkaesque.types import NO_TERM, GroupId, NodeId

_VOTES = VoteRequest, VoteResponse


class ReplicaSet:
    """All replicas of one broker, in one of its runs."""

    def __init__(
        self,
        node: NodeId,
        session: int,
        store: Store,
        config: RaftConfig,
        chance: random.Random,
        peers: Peers,
    ) -> None:
        self.leaders = Leaders(node, session)
        self.on_opened: Callable[[Replica], None] = ignore
        """Called for every replica that is opened."""
        self.on_stopped: Callable[[Replica], None] = ignore
        """Called for every replica that stops because its log failed."""
        self.removed: frozenset[NodeId] = frozenset()
        """Brokers that were removed: nothing is sent to them or expected of them."""
        self.elections = 0
        """How often a group came to be led here."""
        self._node = node
        self._store = store
        self._config = config
        self._chance = chance
        self._peers = peers
        self._roster = Roster(node, config, session)
        self._lives = OldCopyDetector(session, store.journal, store.flusher)
        self._ticks = 0
        self._by_group: dict[GroupId, Replica] = {}
        self._order: dict[GroupId, Replicas] = {}
        """The order of preference for each partition's leader."""
        self._campaigns = Campaigns(node, config, self.is_reachable)
        self._roster.on_lost = self._on_lost
        self._hand_over: HandOver | None = None
        self._newborn: set[GroupId] = set()
        """Groups that we should lead and that never had a leader: the other brokers may not have
        opened their replicas when we first ask for votes."""
        self._giving_back = GivingBack()

    @property
    def by_group(self) -> Mapping[GroupId, Replica]:
        """The open replicas."""
        return self._by_group

    @property
    def reachable(self) -> frozenset[NodeId]:
        """The other known brokers that were recently reachable."""
        return self._roster.reachable

    def meet(self, nodes: Iterable[NodeId]) -> None:
        """Start to exchange beats with these brokers, to know whether they are reachable."""
        self._roster.meet(nodes)

    # ── opening and dropping ─────────────────────────────────────────────────────────────────

    def open(self, group: GroupId, first_voters: Voters, *, has_machine: bool = False) -> Replica:
        """Open a group's replica, and start its log if there is none; raises LogError."""
        if group in self._store.journal.groups:
            log = self._store.open_log(group, has_machine=has_machine)
        else:
            log = self._store.create_log(group, first_voters)
        replica = self._store.replica(log, self._config, self._chance, self._peers.send)
        replica.on_stopped = partial(self._on_stopped, replica)
        replica.is_reachable = self.is_reachable
        replica.raft.is_sending = partial(self._peers.is_sending, group)
        self._by_group[group] = replica
        self._roster.add(group, replica.raft)
        self.on_opened(replica)
        return replica

    def open_partition(self, topic: Topic, index: int) -> Replica:
        """Open a partition's replica, and start its log if there is none; raises LogError.

        The catalog knows the voters only where the group was born, and only until its first move. A
        replica that starts later learns them from its leader.
        """
        group = group_of(topic, index)
        is_born_here = topic.is_birthplace(index, self._node)
        voters = first_voters(topic, index, self._node)
        replica = self.open(group, voters, has_machine=topic.is_internal)
        self.prefer(group, topic.order(index))
        if is_born_here and replica.raft.term == NO_TERM and self._node == topic.preferred(index):
            self._newborn.add(group)
        return replica

    def prefer(self, group: GroupId, order: Replicas) -> None:
        """Let the first of these lead a group whenever it can; the others are next in order."""
        if group in self._by_group:
            self._order[group] = order

    def tell_of_leading(self, replica: Replica) -> None:
        """Announce from now on when this replica starts and stops serving."""

        def announce() -> None:
            if replica.is_serving:
                self.elections += 1
                replica.look_in_sync()
                tell()
            else:
                self.leaders.cease(replica.group)

        def tell() -> None:
            if replica.is_serving and replica.in_sync is not None:
                self.leaders.lead(replica.group, replica.raft.term, replica.in_sync.nodes)

        replica.on_announced.append(announce)
        replica.on_in_sync = tell

    def drop(self, group: GroupId) -> None:
        """Give a deleted group's replica no more ticks; it need not have been opened."""
        self._let_go(group)
        self.leaders.forget(group)

    def leave(self, group: GroupId) -> None:
        """Give a replica no more ticks whose group continues elsewhere."""
        self._let_go(group)
        self.leaders.cease(group)

    def _let_go(self, group: GroupId) -> None:
        self._roster.remove(group)
        self._by_group.pop(group, None)
        self._order.pop(group, None)
        self._newborn.discard(group)

    def abandon(self) -> None:
        """Stop at once, like a killed process: no callback is called any more."""
        self._store.flusher.stop()
        for replica in self._by_group.values():
            replica.abandon()

    # ── time and messages ────────────────────────────────────────────────────────────────────

    def tick(self, others: Sequence[NodeId]) -> None:
        """Advance one tick for all awake groups; `others` are all other brokers."""
        self._ticks += 1
        self._roster.meet(others)
        if self._ticks % self._config.heartbeat_ticks == 0:
            self._look_in_sync()  # before groups go to rest: resting ones are not checked
        self._roster.forget(self.removed)
        for beat in self._roster.tick():
            self._peers.beat(beat)
        for group in list(self._roster.awake):
            replica = self._by_group.get(group)
            if replica is not None:  # otherwise another replica's tick has removed it
                replica.tick()
        self._campaigns.tick(self._by_group)
        if self._hand_over is not None:
            self._hand_over.tick(self._by_group.values())
        if self._ticks % self._config.heartbeat_ticks == 0:
            if others:
                self._lives.tick(others)
            for told in self.leaders.tick(others, self._lives.owed(others)):
                self._peers.tell(self._lives.stamp(told))
            self._ask_for_newborn()
        if self._ticks % PREFERRED_TICKS == 0 and self._hand_over is None:
            first = {group: order[0] for group, order in self._order.items()}
            elsewhere = [(group, node) for group, node in first.items() if node != self._node]
            self._giving_back.look((self._by_group[group], node) for group, node in elsewhere)

    def _look_in_sync(self) -> None:
        for group in list(self._roster.awake):
            replica = self._by_group.get(group)
            if replica is not None:
                replica.look_in_sync()

    def _ask_for_newborn(self) -> None:
        for group in sorted(self._newborn):
            replica = self._by_group[group]
            if replica.error is not None or replica.raft.term > NO_TERM:
                self._newborn.discard(group)
            else:
                replica.campaign()

    def deliver(self, group: GroupId, message: Message) -> None:
        """Take a message of a group; it is dropped if the group is not open here."""
        replica = self._by_group.get(group)
        if replica is None:
            return
        if isinstance(message, _VOTES) and not self._lives.may_vote_with(message.source):
            return
        replica.step(message)

    def receive_beat(self, beat: Beat) -> None:
        """Take another broker's beat."""
        self._roster.receive(beat)

    def receive_leaders(self, told: LeadersTold) -> None:
        """Take another broker's message about the groups that it leads."""
        if self._lives.takes(told):
            self.leaders.receive(told)

    # ── other brokers that come and go ───────────────────────────────────────────────────────

    def is_reachable(self, node: NodeId) -> bool:
        """Whether another broker is heard and hears us, as far as known; true of this one."""
        return self._roster.is_reachable(node)

    def suspect(self, node: NodeId) -> None:
        """Consider another broker gone at once, without waiting for its silence to last."""
        self._roster.suspect(node)
        self._look_in_sync()

    def hand_over(self, done: Callable[[], None]) -> None:
        """Hand every group that is led here to another replica; `done` is called once, in time."""
        self._hand_over = HandOver(self._config, self._order, done)

    def _on_lost(self, node: NodeId) -> None:
        self._campaigns.leader_lost(node, self._by_group.values(), self._order)

    def _on_stopped(self, replica: Replica) -> None:
        """Take a stopped replica off the roster: if vouched for, its followers would never wake."""
        if self._by_group.get(replica.group) is replica:
            self._roster.remove(replica.group)
            self.leaders.cease(replica.group)
            told = ReplicaStopped(partition=replica.group, reason=str(replica.error))
            self._store.events.tell(told)
            self.on_stopped(replica)


def first_voters(topic: Topic, index: int, node: NodeId) -> Voters:
    """Return the voters of a partition's log that a node starts, as far as the catalog knows."""
    if not topic.is_birthplace(index, node):
        return NOBODY
    return Voters(voters=tuple(sorted(topic.replicas[index])))
