"""Which groups of a node are awake, and how nodes vouch for those that are not.

A resting group costs nothing: its replicas get no ticks and its leader sends no heartbeats. That is
safe, because ticks only ever start elections; but the loss of a leader must still be noticed. So
nodes *beat*: one message per pair of nodes and heartbeat, however many groups they share. A beat
carries the changes to a table of the groups that its sender leads and keeps at rest. A follower
rests only while its leader's node is heard and lists the group in the follower's own term:

    awake --leader idle for a while, all members reachable--> at rest, listed in the table
    at rest --any message or proposal, a member's node silent--> awake, taken off the table
    follower at rest --off the table, node silent, node restarted--> awake

Every failure ends in waking: a replica that wakes alone asks for pre-votes after its election
timeout, which wakes its leader, whose heartbeats settle the matter. No clock and no I/O here: the
driver ticks, sends what `tick` returns, and passes in received beats.
"""

from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct, field

from kafkaesque.callbacks import ignore
from kafkaesque.config import RaftConfig
from kafkaesque.raft.raft import Raft
from kafkaesque.types import GroupId, Index, NodeId, Term

_NOTHING_HELD = -1


class Beat(Struct, frozen=True, kw_only=True):
    """A message from one node to another: I am here, and these groups rest under my lead."""

    source: NodeId
    target: NodeId
    session: int
    """A new number means that the sender restarted and forgot everything."""

    sequence: int
    heard_session: int
    heard_sequence: int
    """The newest of the receiver's beats that the sender has seen, and its session."""

    holds: int
    """The version of the receiver's table that the sender has; -1 for none."""

    since: int
    """`rested` and `woken` are the changes since this version; -1 means the whole table."""

    version: int
    rested: tuple[tuple[GroupId, Term, Index], ...]
    woken: tuple[GroupId, ...]


class _Peer(Struct):
    """The state of another node, as far as it is known."""

    session: int = 0
    sequence: int = 0
    heard_of_us: int = 0
    """The newest of our beats that it has acknowledged."""

    held: dict[GroupId, Term] = field(default_factory=dict)
    """Our copy of its table: the groups that rest under its lead."""

    held_version: int = _NOTHING_HELD
    led: dict[GroupId, tuple[Term, Index]] = field(default_factory=dict)
    """Our table for it: the groups that rest under our lead and have it as a member."""

    led_version: int = 0
    changes: dict[GroupId, int] = field(default_factory=dict)
    """The version at which each group last entered or left our table."""

    acknowledged: int = _NOTHING_HELD
    is_lost: bool = False
    """Whether its silence was reported; also before it was first heard."""


class Roster:
    """The groups of one node, awake or at rest."""

    def __init__(self, node: NodeId, config: RaftConfig, session: int) -> None:
        assert session > 0
        self.awake: dict[GroupId, Raft] = {}
        self.resting: dict[GroupId, Raft] = {}
        self.on_lost: Callable[[NodeId], None] = ignore
        """Called when a reachable node becomes unreachable or has restarted."""
        self._node = node
        self._config = config
        self._session = session
        self._sequence = 0
        self._ticks = 0
        self._idle_ticks: dict[GroupId, int] = {}
        self._peers: dict[NodeId, _Peer] = {}

    def add(self, group: GroupId, raft: Raft) -> None:
        """Add a replica that was just opened; it replaces an earlier one of its group."""
        self.wake(group)
        self.awake[group] = raft
        raft.on_wake = partial(self._woken, group)

    @property
    def reachable(self) -> frozenset[NodeId]:
        """The nodes with which a beat and its echo were exchanged within an election timeout."""
        return frozenset(
            node for node, peer in self._peers.items() if peer.session and self._is_reachable(peer)
        )

    def meet(self, nodes: Iterable[NodeId]) -> None:
        """Start to exchange beats with these nodes, whether or not they share a resting group."""
        for node in nodes:
            self._peer(node)

    def forget(self, nodes: Iterable[NodeId]) -> None:
        """Stop exchanging beats with these nodes; they no longer vouch for resting groups."""
        for node in nodes:
            peer = self._peers.pop(node, None)
            if peer is not None:
                self._wake_all([*peer.held, *peer.led])

    def remove(self, group: GroupId) -> None:
        """Forget a replica that was stopped; its group no longer rests."""
        self.wake(group)
        self.awake.pop(group, None)
        self._idle_ticks.pop(group, None)

    def wake(self, group: GroupId) -> None:
        """Give a group ticks again."""
        raft = self.resting.get(group)
        if raft is not None:
            raft.wake()

    def _woken(self, group: GroupId) -> None:
        """Take a group off the tables: whatever woke it, it needs ticks now."""
        self.awake[group] = self.resting.pop(group)
        self._idle_ticks.pop(group, None)
        for peer in self._peers.values():
            if peer.led.pop(group, None) is not None:
                _note_change(peer, group)

    def tick(self) -> list[Beat]:
        """Advance one tick; the driver ticks the replicas in `awake` and sends these beats."""
        self._ticks += 1
        self._look_for_lost()
        if self._ticks % self._config.heartbeat_ticks:
            return []
        self._rest_idle()
        self._sequence += 1
        return [self._beat(node, peer) for node, peer in self._peers.items()]

    def _look_for_lost(self) -> None:
        lost = []
        for node, peer in self._peers.items():
            if self._is_reachable(peer):
                peer.is_lost = False
                continue
            self._wake_all([*peer.held, *peer.led])
            peer.held.clear()
            peer.held_version = _NOTHING_HELD
            if not peer.is_lost:
                peer.is_lost = True
                lost.append(node)
        for node in lost:
            self.on_lost(node)

    def is_reachable(self, node: NodeId) -> bool:
        """Whether a node is heard and hears us, as far as we know; always true of this node."""
        peer = self._peers.get(node)
        return node == self._node or (peer is not None and self._is_reachable(peer))

    def suspect(self, node: NodeId) -> None:
        """Consider a node gone until it beats again."""
        peer = self._peers.get(node)
        if peer is not None:
            peer.heard_of_us = min(peer.heard_of_us, self._sequence - self._config.election_ticks)
            self._look_for_lost()

    def receive(self, beat: Beat) -> None:
        """Handle another node's beat."""
        peer = self._peer(beat.source)
        if beat.session != peer.session:
            self._wake_all([*peer.held, *peer.led])
            is_new = peer.session == 0
            self._peers[beat.source] = peer = _Peer(session=beat.session, is_lost=True)
            if not is_new:
                self.on_lost(beat.source)
        elif beat.sequence <= peer.sequence:
            return  # outdated: a newer beat overtook it
        peer.sequence = beat.sequence
        if beat.heard_session == self._session:
            peer.heard_of_us = max(peer.heard_of_us, beat.heard_sequence)
            peer.acknowledged = beat.holds
        if beat.since in (peer.held_version, _NOTHING_HELD):
            self._take_table(peer, beat)

    def _take_table(self, peer: _Peer, beat: Beat) -> None:
        listed = {group: term for group, term, _ in beat.rested}
        if beat.since == _NOTHING_HELD:
            self._wake_all([group for group in peer.held if group not in listed])
            peer.held.clear()
        for group in beat.woken:
            if peer.held.pop(group, None) is not None:
                self._wake_all([group])
        for group, term, commit in beat.rested:
            peer.held[group] = term
            self._rest_follower(group, beat.source, term, commit)
        peer.held_version = beat.version

    def _rest_follower(self, group: GroupId, leader: NodeId, term: Term, commit: Index) -> None:
        raft = self.awake.get(group)
        if raft is None or raft.leader != leader or raft.term != term:
            return
        if raft.leadership is None and raft.commit == raft.end == commit:
            self._put_to_rest(group, raft)

    def _rest_idle(self) -> None:
        """Put groups to rest whose leader has been idle for a whole election timeout."""
        for group, raft in list(self.awake.items()):
            leadership = raft.leadership
            if leadership is None or not leadership.is_idle:
                self._idle_ticks.pop(group, None)
                continue
            idle = self._idle_ticks.get(group, 0) + self._config.heartbeat_ticks
            self._idle_ticks[group] = idle
            peers = [self._peer(node) for node in leadership.progress]
            if idle >= self._config.election_ticks and all(map(self._is_reachable, peers)):
                self._put_to_rest(group, raft)
                for peer in peers:
                    peer.led[group] = raft.term, raft.commit
                    _note_change(peer, group)

    def _put_to_rest(self, group: GroupId, raft: Raft) -> None:
        del self.awake[group]
        self._idle_ticks.pop(group, None)
        self.resting[group] = raft
        raft.rest()

    def _wake_all(self, groups: list[GroupId]) -> None:
        for group in groups:
            self.wake(group)

    def _is_reachable(self, peer: _Peer) -> bool:
        """Whether beats went both ways within an election timeout."""
        unseen = (self._sequence - peer.heard_of_us) * self._config.heartbeat_ticks
        return unseen < self._config.election_ticks + self._config.heartbeat_ticks

    def _beat(self, node: NodeId, peer: _Peer) -> Beat:
        since = peer.acknowledged
        if since == _NOTHING_HELD:
            rested = [(group, *fact) for group, fact in peer.led.items()]
            woken: list[GroupId] = []
        else:
            peer.changes = {g: at for g, at in peer.changes.items() if at > since}
            rested = [(g, *peer.led[g]) for g in peer.changes if g in peer.led]
            woken = [g for g in peer.changes if g not in peer.led]
        return Beat(
            source=self._node,
            target=node,
            session=self._session,
            sequence=self._sequence,
            heard_session=peer.session,
            heard_sequence=peer.sequence,
            holds=peer.held_version,
            since=since,
            version=peer.led_version,
            rested=tuple(rested),
            woken=tuple(woken),
        )

    def _peer(self, node: NodeId) -> _Peer:
        return self._peers.setdefault(node, _Peer(heard_of_us=self._sequence))


def _note_change(peer: _Peer, group: GroupId) -> None:
    peer.led_version += 1
    peer.changes[group] = peer.led_version
