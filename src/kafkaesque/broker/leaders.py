"""Who leads which group, and who is in sync, as far as this broker was told: soft state, in no log.

Every broker tells all others which groups it serves, in which term, and which replicas are in sync
with it. Of two stories the one of the higher term holds, and of two that one broker tells in a term
the newer, so that whatever arrives late or twice does no harm. Only changes are told:

    a broker's own facts have versions; a message carries those after what its receiver has, and
    what the sender has of the receiver's; one that is not acknowledged is told again.

A broker that starts anew has a new *session*: others then forget that it led anything, because a
replica that was just opened leads nothing, and tell it everything from the beginning. When nothing
changes nothing is said. No clock and no I/O here: `tick` returns what is to be sent.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from kafkaesque.types import NO_TERM, GroupId, NodeId, Term

FACTS_MAX = 1000
"""Facts in one message; the rest comes with the next ones."""


class Leader(NamedTuple):
    """The newest term of a group that anybody told of, and who leads it, if it is still led."""

    term: Term
    node: NodeId | None


NOBODY = Leader(NO_TERM, None)


class Life(Struct, frozen=True, kw_only=True):
    """What a broker claims of its run, and what it has heard of the receiver's; see `lives.py`."""

    run: int
    """Which start of the sender this is; 0 while that is not durable."""

    opened: int
    """The round of its journal when the run began."""

    round: int
    """The round of its journal that is durable."""

    heard_run: int
    heard_session: int
    heard_round: int
    term: Term = NO_TERM
    """The sender's term in the group of the catalog: one that has forgotten its terms goes on far
    beyond it."""


class LeadersTold(Struct, frozen=True, kw_only=True):
    """One broker's word to another: these groups I lead, or lead no more."""

    source: NodeId
    target: NodeId
    session: int
    heard_session: int
    """The session of the receiver that the sender knows; 0 for none."""

    holds: int
    """The version of the receiver's facts, in that session, that the sender has."""

    since: int
    version: int
    """`facts` are those that changed after `since`, up to here."""

    facts: tuple[tuple[GroupId, Term, bool, tuple[NodeId, ...]], ...]
    """Group, term, whether the sender leads it, and which replicas are in sync with it then."""
    life: Life | None = None
    """None from brokers that do not tell it."""


class _Own(NamedTuple):
    term: Term
    is_leading: bool
    in_sync: tuple[NodeId, ...]
    version: int


class _Peer(Struct):
    """What is known of another broker."""

    session: int = 0
    held: int = 0
    """The version of its facts that we have."""

    acknowledged: int = 0
    """The version of our facts that it has."""

    knows_us: bool = False
    """Whether it has answered in our present session."""

    is_owed: bool = False
    """Whether it told something that we have not yet acknowledged."""


class Leaders:
    """What one broker knows of leaders. `on_change` is told of groups whose leader changed."""

    def __init__(self, node: NodeId, session: int) -> None:
        assert session > 0
        self.on_change: Callable[[GroupId], None] = _ignore
        self._node = node
        self._session = session
        self._version = 0
        self._own: dict[GroupId, _Own] = {}
        self._known: dict[GroupId, Leader] = {}
        self._in_sync: dict[GroupId, tuple[NodeId, ...]] = {}
        self._peers: dict[NodeId, _Peer] = {}

    def of(self, group: GroupId) -> Leader:
        """Return who leads a group."""
        return self._known.get(group, NOBODY)

    def in_sync(self, group: GroupId) -> tuple[NodeId, ...]:
        """Return which replicas are in sync, as the leader of a group last told; none without."""
        return self._in_sync.get(group, ())

    @property
    def known(self) -> Mapping[GroupId, Leader]:
        """Every group that anybody told of."""
        return self._known

    def lead(self, group: GroupId, term: Term, in_sync: tuple[NodeId, ...] = ()) -> None:
        """Note that this broker serves a group from now on, and who is in sync with it."""
        self._note(group, term, in_sync, is_leading=True)

    def cease(self, group: GroupId) -> None:
        """Note that this broker serves a group no more."""
        own = self._own.get(group)
        if own is not None and own.is_leading:
            self._note(group, own.term, (), is_leading=False)

    def forget(self, group: GroupId) -> None:
        """Forget a group that is no more; everybody learns that from the catalog."""
        self._own.pop(group, None)
        self._known.pop(group, None)
        self._in_sync.pop(group, None)
        self.on_change(group)

    def tick(
        self, peers: Iterable[NodeId], owed: Container[NodeId] = frozenset()
    ) -> list[LeadersTold]:
        """Return what is to be told now; called once per heartbeat.

        Those in `owed` are told although there is nothing new of leaders.
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
        """Take another broker's word."""
        peer = self._peers.setdefault(told.source, _Peer())
        if told.session != peer.session:
            self._begin_anew(told, peer)
        # What it has may also have become less: a late word of its former session made it forget.
        peer.knows_us = told.heard_session == self._session
        peer.acknowledged = told.holds if peer.knows_us else 0
        if not peer.knows_us or told.version != peer.held:
            peer.is_owed = True
        if told.since > peer.held:
            return  # something between was lost: it will be told again from what we hold
        if told.version <= peer.held:
            return  # an older one, overtaken: what has changed since must not come back
        peer.held = told.version
        for group, term, is_leading, in_sync in told.facts:
            self._take(group, term, told.source, in_sync, is_leading=is_leading)

    def _begin_anew(self, told: LeadersTold, peer: _Peer) -> None:
        """The other broker has restarted: it leads nothing that it led, and knows nothing."""
        for group in [g for g, known in self._known.items() if known.node == told.source]:
            self._set(group, Leader(self._known[group].term, None))
        peer.session = told.session
        peer.held = 0

    def _note(
        self, group: GroupId, term: Term, in_sync: tuple[NodeId, ...], *, is_leading: bool
    ) -> None:
        self._version += 1
        self._own.pop(group, None)  # so that facts are in the order of their versions
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


def _ignore(_: GroupId) -> None:
    """Nobody waits for leaders."""
