"""Transfers the state that replaces entries which the leader no longer has.

The core only decides that a follower must restart at a later start. The state built from the
entries before that start (of a machine, or of producers) is fetched here, before the follower's
core learns of it:

    leader    InstallRequest, with an offer: kind, size, checksum      (with each heartbeat)
    follower  StateRequest for the next piece, one at a time           (again if nothing came)
    leader    StatePiece
    follower  complete, checksum right, durably named --> the core takes the install

The order makes a crash harmless. The state is durable before the journal says that the log starts
behind it: a crash in between leaves a snapshot beyond the end of the old log, which the next
opening removes, and the install starts over. In the reverse order a crash would leave a log whose
starting state is nowhere. The fetched state is built from committed entries only, so it is valid
whatever happens to the term in which it was offered.

The follower requests pieces, so it sets the pace; the leader keeps no state per follower.
"""

from collections.abc import Callable
from typing import Protocol

from msgspec.structs import replace

from kafkaesque.entry import LogStart
from kafkaesque.errors import LogError
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.snapshot import SnapshotKind
from kafkaesque.log.snapshot_pieces import IncomingSnapshot
from kafkaesque.raft.messages import (
    InstallRequest,
    Message,
    StateOffer,
    StatePiece,
    StateRequest,
)
from kafkaesque.types import Buffer, NodeId, Offset


class StateSource(Protocol):
    """Provides the state built from the entries before the start of a log."""

    @property
    def kind(self) -> SnapshotKind:
        """The kind of the state, on which both ends must agree."""
        ...

    def offer(self) -> tuple[LogStart, StateOffer | None] | None:
        """Return where a follower can start, and the state it needs; None if not available now."""
        ...

    def piece(self, offset: Offset, crc: int, position: int, bytes_max: int) -> Buffer | None:
        """Return some bytes of the offered state; None if that is gone."""
        ...


class Giving:
    """The leader's half."""

    def __init__(self, send: Callable[[Message], None], piece_bytes_max: int) -> None:
        self.source: StateSource | None = None
        self._send = send
        self._piece_bytes_max = piece_bytes_max

    def complete(self, request: InstallRequest) -> InstallRequest | None:
        """Add the state to the core's request; None if there is none now."""
        if self.source is None:
            return request
        try:
            found = self.source.offer()
        except LogError:  # damaged or unreadable: another replica may do better as a leader
            return None
        if found is None:
            return None
        start, offer = found
        assert start.index >= request.start.index, "what precedes the log cannot be sent"
        return replace(request, start=start, state=offer)

    def give(self, request: StateRequest) -> None:
        """Answer with a piece; if it is gone, the next offer names another state."""
        if self.source is None:
            return
        data = self.source.piece(
            request.offset, request.crc, request.position, self._piece_bytes_max
        )
        if data:
            self._send(
                StatePiece(
                    source=request.target,
                    target=request.source,
                    term=request.term,
                    offset=request.offset,
                    crc=request.crc,
                    position=request.position,
                    data=data,
                )
            )


class Taking:
    """The follower's half; `install` is called when the core may take the install."""

    def __init__(
        self,
        log: PartitionLog,
        node: NodeId,
        send: Callable[[Message], None],
        install: Callable[[InstallRequest], None],
    ) -> None:
        self.kind: SnapshotKind | None = None
        self._log = log
        self._node = node
        self._send = send
        self._install = install
        self._request: InstallRequest | None = None
        self._incoming: IncomingSnapshot | None = None
        self._is_finishing = False
        self._has_moved = False
        """Whether a piece came since the last offer: then the next one is already requested."""

    def take_offer(self, request: InstallRequest) -> None:
        """Fetch the offered state, or continue with it."""
        offer = request.state
        assert offer is not None
        if self.kind is None or offer.kind != self.kind.suffix or self._is_finishing:
            return
        begun = self._request
        if begun is None or (begun.start, begun.state) != (request.start, offer):
            self._begin(request, offer)
        elif self._has_moved:
            self._request, self._has_moved = request, False
            return
        if self._incoming is not None:
            self._request = request
            self._ask()

    def take_piece(self, piece: StatePiece) -> None:
        """Keep the next piece; others are late or duplicates."""
        request, incoming = self._request, self._incoming
        if request is None or incoming is None or self._is_finishing or request.state is None:
            return
        where = request.start.offset, request.state.crc, incoming.position
        if (piece.offset, piece.crc, piece.position) != where or not piece.data:
            return
        try:
            incoming.write(piece.data)
        except LogError:  # no room, or worse: the next offer starts over
            self._give_up()
            return
        self._has_moved = True
        if not incoming.is_complete:
            self._ask()
        elif incoming.is_right:
            self._is_finishing = True
            incoming.finish(self._finished)
        else:
            self._give_up()

    def stop(self) -> None:
        """Stop; a write in progress ends without effect."""
        self._request = self._incoming = None

    def _begin(self, request: InstallRequest, offer: StateOffer) -> None:
        assert self.kind is not None
        self._give_up()
        segments = self._log.segments
        incoming = IncomingSnapshot(
            segments.disk,
            segments.folder,
            request.start.offset,
            self.kind,
            offer.size,
            offer.crc,
        )
        try:
            incoming.begin()
        except LogError:
            return
        self._request, self._incoming, self._has_moved = request, incoming, False

    def _ask(self) -> None:
        request, incoming = self._request, self._incoming
        assert request is not None
        assert incoming is not None
        assert request.state is not None
        self._send(
            StateRequest(
                source=self._node,
                target=request.source,
                term=request.term,
                offset=request.start.offset,
                crc=request.state.crc,
                position=incoming.position,
            )
        )

    def _finished(self, error: OSError | None) -> None:
        request, incoming = self._request, self._incoming
        self._request = self._incoming = None
        self._is_finishing = False
        if request is None or incoming is None or error is not None:
            return
        # A cut in progress removes snapshots beyond its offset, and this one would be among them.
        if self._log.is_settled and incoming.is_there:
            self._install(request)

    def _give_up(self) -> None:
        incoming = self._incoming
        self._request = self._incoming = None
        if incoming is not None:
            incoming.abandon()
