"""Detects a broker that runs on an old copy of its data folder.

Each start of a broker is a *run*, counted in its journal. Brokers send each other their run, its
session, the journal's round at the start of the run and the round that is durable now. Each stores
the newest values heard of every other broker in its own journal, and sends them back. So a broker
restored from a machine image learns that others know more of it than it does itself: it has
forgotten votes and records that it once vouched for. It notes that and stops. When it starts again
its replicas start empty (`broker/storage/old_copy_restart.py`).

Until it has heard what a peer remembers, a broker neither votes for that peer nor counts its vote:
an old copy could vote twice in a term, or for a candidate that lacks what the copy acknowledged.

Some loss goes undetected: what was written after the last message that a peer received, and
everything if all peers are new or were restored too.
"""

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from kafkaesque.broker.replication.leader_table import LeadersTold, Life
from kafkaesque.broker.storage.storage_errors import OldCopy
from kafkaesque.errors import LogError
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import OldCopyFound, PeerHeard, RunNamed
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import NO_TERM, NodeId

_UNHEARD = PeerHeard(group="", node=0, run=0, session=0, round=0)

PATIENCE_LOOKS = 5
"""Heartbeats after its start in which a broker votes with no peer until all were heard: a late one
may be the one that remembers. Peers that are down stay silent for longer."""


class OldCopyDetector:
    """One broker's claims about its own run, and what it has heard of the others'."""

    def __init__(self, session: int, journal: Journal, flusher: Flusher) -> None:
        self._session = session
        self._journal = journal
        self._flusher = flusher
        self._has_begun = False
        self._is_durable = False
        self._told: dict[NodeId, tuple[int, int]] = {}
        """The run and round last sent to each peer; lost messages are not resent."""
        self._asked: set[NodeId] = set()
        """Peers that have reported in this run what they remember of earlier ones."""
        self._looks = 0
        self._is_complete = False
        """Whether all peers have reported, or were waited for long enough."""

    def tick(self, others: Collection[NodeId]) -> None:
        """Start the run, and wait for what these peers remember."""
        self._begin()
        self._looks += 1
        if self._looks > PATIENCE_LOOKS or self._asked.issuperset(others):
            self._is_complete = True

    def may_vote_with(self, peer: NodeId) -> bool:
        """Return whether votes may be exchanged with a peer."""
        return self._is_complete and peer in self._asked

    def _begin(self) -> None:
        """Number this run; the number is claimed once it is durable."""
        if self._has_begun:
            return
        self._has_begun = True
        run = self._journal.run + 1
        self._journal.add(RunNamed(group="", run=run, session=self._session))
        self._flusher.after_next_round(self._named)

    def _named(self) -> None:
        self._is_durable = True

    def owed(self, peers: Iterable[NodeId]) -> frozenset[NodeId]:
        """Return the peers that were not sent the journal's current position."""
        now = self._now()
        return frozenset(node for node in peers if self._told.get(node) != now)

    def _now(self) -> tuple[int, int]:
        return self._journal.run if self._is_durable else 0, self._journal.durable_round

    def stamp(self, told: LeadersTold) -> LeadersTold:
        """Add this broker's claims about itself, and what it knows of the receiver."""
        journal = self._journal
        heard = journal.heard.get(told.target, _UNHEARD)
        run, number = self._told[told.target] = self._now()
        catalog = journal.groups.get(CATALOG_GROUP)
        life = Life(
            run=run,
            opened=journal.opened_round,
            round=number,
            heard_run=heard.run,
            heard_session=heard.session,
            heard_round=heard.round,
            term=NO_TERM if catalog is None else catalog.hard_state.term,
        )
        return replace(told, life=life)

    def takes(self, told: LeadersTold) -> bool:
        """Return whether the sender can be who it says; not if it claims less than before.

        If it knows more of this broker than the journal does, this broker stops.
        """
        life = told.life
        if life is None:  # from an earlier version
            self._asked.add(told.source)
            return True
        self._begin()
        self._look_at_own(told.source, life)
        if life.run == 0:
            self._asked.add(told.source)
            return True
        heard = self._journal.heard.get(told.source, _UNHEARD)
        if _is_older(life.run, told.session, life.opened, heard):
            self._told.pop(told.source, None)  # it must hear what we know of it
            self._asked.discard(told.source)
            return False
        self._asked.add(told.source)
        number = max(life.round, heard.round)
        now = PeerHeard(
            group="", node=told.source, run=life.run, session=told.session, round=number
        )
        if now != heard:
            self._journal.hear(now)
        return True

    def _look_at_own(self, peer: NodeId, life: Life) -> None:
        heard = PeerHeard(
            group="",
            node=peer,
            run=life.heard_run,
            session=life.heard_session,
            round=life.heard_round,
        )
        journal = self._journal
        if journal.old_copy is not None:
            return
        if not _is_older(journal.run, self._session, journal.opened_round, heard):
            return
        error: LogError = OldCopy(peer)
        found = OldCopyFound(group="", peer=peer, run=heard.run, round=heard.round, term=life.term)
        journal.add(found)
        try:
            journal.write_now()
        except LogError as failure:  # the next start finds it again
            error = failure
        self._flusher.fail(error)


def _is_older(run: int, session: int, opened: int, heard: PeerHeard) -> bool:
    """Return whether a run is neither the one that was heard nor a possible successor."""
    if run == heard.run:
        return run > 0 and session != heard.session
    return run < heard.run or opened < heard.round
