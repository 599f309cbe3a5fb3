"""Messages between brokers, encoded as frames of a link and decoded.

A frame is a head, which is msgpack (`heads`), and a body: the batches of an append or the data of a
call, back to back. Batches are neither unpacked nor copied: outgoing they are separate parts,
incoming they are views of the frame. The handshake proved who the two ends are, so frames do not
repeat it; the decoder fills it in.
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.net import heads
from kafkaesque.net.errors import MalformedLink
from kafkaesque.net.handshake import MATCHED_SINCE, VERSION_LAST
from kafkaesque.net.link_frame import HEAD_LENGTH, frame
from kafkaesque.net.pieces import Gathering
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    AppendRequest,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    Message,
    StateOffer,
    StatePiece,
    StateRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.roster import Beat
from kafkaesque.types import Buffer, GroupId, Index, NodeId

_DECODE = msgspec.msgpack.Decoder(heads.AnyHead).decode


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A request from one broker to another; the number links the reply to it."""

    number: int
    kind: int
    data: Buffer


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to the call of this number."""

    number: int
    data: Buffer


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The call of this number failed; the reason is a sentence for operators."""

    number: int
    reason: str


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A one-way message from one broker to another."""

    kind: int
    data: Buffer


class ForGroup(msgspec.Struct, frozen=True):
    """A received message for a replica of a group."""

    group: GroupId
    message: Message


Received: TypeAlias = ForGroup | Beat | Call | Reply | Failure | Note


def encode_message(group: GroupId, message: Message, version: int = VERSION_LAST) -> list[Buffer]:
    """Return the parts of a frame with a message for a group's replica, for a link version.

    The batches are parts without copying: they must not change until the frame is written.
    """
    match message:
        case AppendRequest():
            return _encode_append(group, message)
        case AppendAccepted(term=term):
            return frame((4, group, term, message.match, message.commit))
        case Heartbeat(term=term):
            more = () if version < MATCHED_SINCE else (message.matched,)
            return frame((6, group, term, message.commit, message.low, *more))
        case HeartbeatResponse(term=term):
            return frame((7, group, term, message.commit, message.low))
        case AppendRejected(term=term):
            return frame((5, group, term, message.prev_end, message.hint))
        case VoteRequest(term=term):
            flags = message.is_pre, message.is_forced
            return frame((1, group, term, message.last_term, message.end, *flags))
        case VoteResponse(term=term):
            return frame((2, group, term, message.is_pre, message.is_granted))
        case InstallRequest(term=term, start=start):
            place = start.offset, start.marks_before, start.prev_term
            members = start.voters.voters, start.voters.learners
            offer = message.state
            state = None if offer is None else (offer.kind, offer.size, offer.crc)
            rest = start.visible_offset, state, start.voters.move
            return frame((8, group, term, *place, *members, *rest))
        case StateRequest(term=term):
            return frame((10, group, term, message.offset, message.crc, message.position))
        case StatePiece(term=term):
            where = message.offset, message.crc, message.position
            return frame((11, group, term, *where), [message.data])
        case TimeoutNow(term=term):
            return frame((9, group, term))


def encode_beat(beat: Beat) -> list[Buffer]:
    """Return the parts of a frame with a beat."""
    heard = beat.heard_session, beat.heard_sequence
    table = beat.holds, beat.since, beat.version, beat.rested, beat.woken
    return frame((20, beat.session, beat.sequence, *heard, *table))


def encode_exchange(item: Call | Reply | Failure | Note) -> list[Buffer]:
    """Return the parts of a frame with a call, a reply, a failure or a note."""
    match item:
        case Note(kind=kind, data=data):
            return frame((33, kind), [data])
        case Call(number=number, kind=kind, data=data):
            return frame((30, number, kind), [data])
        case Reply(number=number, data=data):
            return frame((31, number), [data])
        case Failure(number=number, reason=reason):
            return frame((32, number, reason[: heads.SENTENCE_CHARS_MAX]))


def _encode_append(group: GroupId, message: AppendRequest) -> list[Buffer]:
    assert len(message.entries) <= heads.ENTRIES_MAX
    places: list[tuple[object, ...]] = []
    body: list[Buffer] = []
    for first, end, term, payload in message.entries:
        match payload:
            case TermOpened():
                places.append((1, first, term))
            case Voters(voters=voters, learners=learners, move=move):
                places.append((2, first, term, voters, learners, move))
            case _:
                places.append((0, first, end, term, len(payload)))
                body.append(payload)
    facts = message.term, message.prev_end, message.prev_term, message.commit
    return frame((3, group, *facts, places), body)


class Decoder:
    """Decodes the frames that `source` sends to `target` over one link.

    Anything that `encode_…` would not produce raises MalformedLink and nothing else.
    """

    def __init__(self, source: NodeId, target: NodeId, gathering: Gathering | None = None) -> None:
        """Without `gathering`, as under version 1, pieces of frames are refused."""
        self._source = source
        self._target = target
        self._gathering = gathering

    def decode(self, data: memoryview) -> Received | None:
        """Return the content of a frame, without its length; batches and data are views of it.

        None for a piece, unless it is the last: then all pieces form the frame.
        """
        head, body = _split(data)
        if not isinstance(head, heads.PieceHead):
            return self._received(head, body)
        if self._gathering is None:
            raise MalformedLink("a piece of a frame, which this link version does not support")
        whole = self._gathering.take(head, body)
        if whole is None:
            return None
        head, body = _split(whole)
        if isinstance(head, heads.PieceHead):
            raise MalformedLink("a piece within pieces")
        return self._received(head, body)

    def _received(self, head: heads.WholeHead, body: memoryview) -> Received:
        match head:
            case heads.AppendRequestHead():
                return ForGroup(head.group, self._append(head, body))
            case heads.StatePieceHead():
                return ForGroup(head.group, self._piece(head, body))
            case heads.CallHead():
                return Call(number=head.number, kind=head.kind, data=body)
            case heads.ReplyHead():
                return Reply(number=head.number, data=body)
            case heads.NoteHead():
                return Note(kind=head.kind, data=body)
        if body:
            raise MalformedLink(f"{len(body)} bytes follow a head without a body")
        match head:
            case heads.BeatHead():
                return self._beat(head)
            case heads.FailureHead():
                return Failure(number=head.number, reason=head.reason)
            case _:
                return ForGroup(head.group, self._message(head))

    def _message(
        self,
        head: heads.AppendAcceptedHead
        | heads.AppendRejectedHead
        | heads.HeartbeatHead
        | heads.HeartbeatResponseHead
        | heads.InstallRequestHead
        | heads.StateRequestHead
        | heads.TimeoutNowHead
        | heads.VoteRequestHead
        | heads.VoteResponseHead,
    ) -> Message:
        ends = {"source": self._source, "target": self._target, "term": head.term}
        match head:
            case heads.AppendAcceptedHead():
                return AppendAccepted(**ends, match=head.match, commit=head.commit)
            case heads.HeartbeatHead():
                return Heartbeat(**ends, commit=head.commit, low=head.low, matched=head.matched)
            case heads.HeartbeatResponseHead():
                return HeartbeatResponse(**ends, commit=head.commit, low=head.low)
            case heads.AppendRejectedHead():
                return AppendRejected(**ends, prev_end=head.prev_end, hint=head.hint)
            case heads.VoteRequestHead():
                return VoteRequest(
                    **ends,
                    last_term=head.last_term,
                    end=head.end,
                    is_pre=head.is_pre,
                    is_forced=head.is_forced,
                )
            case heads.VoteResponseHead():
                return VoteResponse(**ends, is_pre=head.is_pre, is_granted=head.is_granted)
            case heads.InstallRequestHead():
                state = None if head.state is None else _offer(*head.state)
                return InstallRequest(**ends, start=_start(head), state=state)
            case heads.StateRequestHead():
                where = {"offset": head.offset, "crc": head.crc, "position": head.position}
                return StateRequest(**ends, **where)
            case heads.TimeoutNowHead():
                return TimeoutNow(**ends)

    def _append(self, head: heads.AppendRequestHead, body: memoryview) -> AppendRequest:
        return AppendRequest(
            source=self._source,
            target=self._target,
            term=head.term,
            prev_end=head.prev_end,
            prev_term=head.prev_term,
            commit=head.commit,
            entries=_entries(head.prev_end, head.entries, body),
        )

    def _piece(self, head: heads.StatePieceHead, body: memoryview) -> StatePiece:
        return StatePiece(
            source=self._source,
            target=self._target,
            term=head.term,
            offset=head.offset,
            crc=head.crc,
            position=head.position,
            data=body,
        )

    def _beat(self, head: heads.BeatHead) -> Beat:
        return Beat(
            source=self._source,
            target=self._target,
            session=head.session,
            sequence=head.sequence,
            heard_session=head.heard_session,
            heard_sequence=head.heard_sequence,
            holds=head.holds,
            since=head.since,
            version=head.version,
            rested=head.rested,
            woken=head.woken,
        )


def _split(data: memoryview) -> tuple[heads.AnyHead, memoryview]:
    """Return the head and the body of a frame."""
    if len(data) < HEAD_LENGTH.size:
        raise MalformedLink(f"a frame of {len(data)} bytes has no head")
    end = HEAD_LENGTH.size + HEAD_LENGTH.unpack_from(data)[0]
    if end > len(data):
        raise MalformedLink(f"a head ends at byte {end} of a frame of {len(data)}")
    try:
        head: heads.AnyHead = _DECODE(data[HEAD_LENGTH.size : end])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedLink(f"a head cannot be read: {error}") from None
    return head, data[end:]


def _entries(prev_end: Index, places: Sequence[heads.Place], body: memoryview) -> tuple[Entry, ...]:
    """Return the entries of an append; they increase, perhaps with holes, and fill the body."""
    entries = []
    position = 0
    for place in places:
        first = place.first
        if first < prev_end:
            raise MalformedLink(f"an entry at {first} follows one that ends at {prev_end}")
        match place:
            case heads.BatchPlace():
                end = position + place.size
                if place.end <= first or not position < end <= len(body):
                    raise MalformedLink(f"a batch at {first} does not match its head")
                entries.append(Entry(first, place.end, place.term, body[position:end]))
                position = end
            case heads.TermPlace():
                entries.append(Entry(first, first + 1, place.term, TermOpened()))
            case heads.VotersPlace():
                entries.append(Entry(first, first + 1, place.term, _voters(place)))
        prev_end = entries[-1].end
    if position != len(body):
        raise MalformedLink(f"{len(body) - position} bytes follow the last batch")
    return tuple(entries)


def _offer(kind: str, size: int, crc: int) -> StateOffer:
    return StateOffer(kind=kind, size=size, crc=crc)


def _start(head: heads.InstallRequestHead) -> LogStart:
    return LogStart(
        offset=head.offset,
        marks_before=head.marks_before,
        prev_term=head.prev_term,
        voters=_voters(head),
        visible_offset=head.visible_offset,
    )


def _voters(head: heads.VotersPlace | heads.InstallRequestHead) -> Voters:
    """Return a group's members; checked, because the value itself only asserts it."""
    for nodes in (head.voters, head.learners):
        if list(nodes) != sorted(set(nodes)):
            raise MalformedLink("voters or learners are not sorted, or not unique")
    if set(head.voters) & set(head.learners):
        raise MalformedLink("a node is both voter and learner")
    return Voters(voters=head.voters, learners=head.learners, move=head.move)
