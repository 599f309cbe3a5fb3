"""Which broker leads each group, and which replicas are in sync: soft state, in no log.

Every broker sends all others the groups that it serves, the term of each, and the replicas in sync
with it. The higher term wins; within a term, a broker's newer message wins. So late or duplicate
messages do no harm. Only changes are sent:

    a broker's own facts have versions; a message carries those newer than what its receiver has,
    and the version of the receiver's facts that the sender has; unacknowledged facts are resent.

A broker that restarts has a new *session*. Others then forget that it led anything, because a
replica that was just opened leads nothing, and send it everything again. When nothing changes
nothing is sent. No clock and no I/O here: `tick` returns the messages to send.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from kafkaesque.callbacks import ignore
from kafkaesque.types import NO_TERM, GroupId, NodeId, Term

FACTS_MAX = 1000
"""Facts in one message; the rest follows in later ones."""


class Leader(NamedTuple):
    """The newest reported term of a group, and its leader if it still has one."""

    term: Term
    node: NodeId | None


NOBODY = Leader(NO_TERM, None)


class Life(Struct, frozen=True, kw_only=True):
    """A broker's claims about its run, and what it has heard of the receiver's; see
    `old_copies.py`.
    """

    run: int
    """The number of the sender's run (start); 0 until that is durable."""

    opened: int
    """The journal's round when the run began."""

    round: int
    """The journal's durable round."""

    heard_run: int
    heard_session: int
    heard_round: int
    term: Term = NO_TERM
    """The sender's term in the catalog's group; a broker that forgot its terms restarts far beyond
    it."""


class LeadersTold(Struct, frozen=True, kw_only=True):
    """A message between brokers: the groups that the sender leads, or no longer leads."""

    source: NodeId
    target: NodeId
    session: int
    heard_session: int
    """The receiver's session as the sender knows it; 0 for none."""

    holds: int
    """The version of the receiver's facts, in that session, that the sender has."""

    since: int
    version: int
    """`facts` are those changed after `since`, up to this version."""

    facts: tuple[tuple[GroupId, Term, bool, tuple[NodeId, ...]], ...]
    """Group, term, whether the sender leads it, and the replicas in sync if so."""
    life: Life | None = None
    """None from brokers that do not send it."""


class _Own(NamedTuple):
    term: Term
    is_leading: bool
    in_sync: tuple[NodeId, ...]
    version: int


class _Peer(Struct):
    """The state of another broker, as far as it is known."""

    session: int = 0
    held: int = 0
    """The version of its facts that we have."""

    acknowledged: int = 0
    """The version of our facts that it has."""

    knows_us: bool = False
    """Whether it has answered in our current session."""

    is_owed: bool = False
    """Whether it sent something that we have not acknowledged yet."""


class Leaders:
    """One broker's knowledge of leaders. Calls `on_change` for groups whose leader changed."""

    def __init__(self, node: NodeId, session: int) -> None:
        assert session > 0
        self.on_change: Callable[[GroupId], None] = ignore
        self._node = node
        self._session = session
        self._version = 0
        self._own: dict[GroupId, _Own] = {}
        self._known: dict[GroupId, Leader] = {}
        self._in_sync: dict[GroupId, tuple[NodeId, ...]] = {}
        self._peers: dict[NodeId, _Peer] = {}

    def of(self, group: GroupId) -> Leader:
        """Return a group's leader."""
        return self._known.get(group, NOBODY)

    def in_sync(self, group: GroupId) -> tuple[NodeId, ...]:
        """Return the in-sync replicas last reported by a group's leader; empty if there is none."""
        return self._in_sync.get(group, ())

    @property
    def known(self) -> Mapping[GroupId, Leader]:
        """Every group that was ever reported."""
        return self._known

    def lead(self, group: GroupId, term: Term, in_sync: tuple[NodeId, ...] = ()) -> None:
        """Note that this broker now serves a group, and which replicas are in sync with it."""
        self._note(group, term, in_sync, is_leading=True)

    def cease(self, group: GroupId) -> None:
        """Note that this broker no longer serves a group."""
        own = self._own.get(group)
        if own is not None and own.is_leading:
            self._note(group, own.term, (), is_leading=False)

    def forget(self, group: GroupId) -> None:
        """Forget a deleted group; other brokers learn of it from the catalog."""
        self._own.pop(group, None)
        self._known.pop(group, None)
        self._in_sync.pop(group, None)
        self.on_change(group)

    def tick(
        self, peers: Iterable[NodeId], owed: Container[NodeId] = frozenset()
    ) -> list[LeadersTold]:
        """Return the messages to send now; called once per heartbeat.

        Brokers in `owed` get one even without news of leaders.
        """
        told = []
        for node in peers:
            peer = self._peers.setdefault(node, _Peer())
            if (
                node in owed
                or peer.is_owed
                or not peer.knows_us
                or peer.acknowledged < self._version
            ):
                told.append(self._tell(node, peer))
                peer.is_owed = False
        return told

    def receive(self, told: LeadersTold) -> None:
        """Handle another broker's message."""
        peer = self._peers.setdefault(told.source, _Peer())
        if told.session != peer.session:
            self._start_over(told, peer)
        # Its version may also have dropped: a late message of its former session made it forget.
        peer.knows_us = told.heard_session == self._session
        peer.acknowledged = told.holds if peer.knows_us else 0
        if not peer.knows_us or told.version != peer.held:
            peer.is_owed = True
        if told.since > peer.held:
            return  # facts in between were lost; they are resent from the version that we hold
        if told.version <= peer.held:
            return  # an older message, overtaken: changed facts must not come back
        peer.held = told.version
        for group, term, is_leading, in_sync in told.facts:
            self._take(group, term, told.source, in_sync, is_leading=is_leading)

    def _start_over(self, told: LeadersTold, peer: _Peer) -> None:
        """Handle the other broker's restart: it no longer leads or knows anything."""
        for group in [g for g, known in self._known.items() if known.node == told.source]:
            self._set(group, Leader(self._known[group].term, None))
        peer.session = told.session
        peer.held = 0

    def _note(
        self, group: GroupId, term: Term, in_sync: tuple[NodeId, ...], *, is_leading: bool
    ) -> None:
        self._version += 1
        self._own.pop(group, None)  # keeps facts in the order of their versions
        self._own[group] = _Own(term, is_leading, in_sync, self._version)
        self._take(group, term, self._node, in_sync, is_leading=is_leading)

    def _take(
        self,
        group: GroupId,
        term: Term,
        node: NodeId,
        in_sync: tuple[NodeId, ...],
        *,
        is_leading: bool,
    ) -> None:
        known = self._known.get(group, NOBODY)
        if term < known.term:
            return
        if is_leading:
            self._in_sync[group] = in_sync
            if known != Leader(term, node):
                self._set(group, Leader(term, node))
        elif term > known.term or known.node == node:
            self._set(group, Leader(term, None))

    def _set(self, group: GroupId, leader: Leader) -> None:
        self._known[group] = leader
        if leader.node is None:
            self._in_sync.pop(group, None)
        self.on_change(group)

    def _tell(self, node: NodeId, peer: _Peer) -> LeadersTold:
        new: list[tuple[GroupId, _Own]] = []
        if peer.acknowledged < self._version:
            new = [item for item in self._own.items() if item[1].version > peer.acknowledged]
        version = self._version if len(new) <= FACTS_MAX else new[FACTS_MAX - 1][1].version
        facts = [(group, own.term, own.is_leading, own.in_sync) for group, own in new[:FACTS_MAX]]
        return LeadersTold(
            source=self._node,
            target=node,
            session=self._session,
            heard_session=peer.session,
            holds=peer.held,
            since=peer.acknowledged,
            version=version,
            facts=tuple(facts),
        )
