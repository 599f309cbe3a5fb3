"""Bounded queue of the messages to one peer, with priorities.

There are three lanes. The first has small and urgent messages: beats, heartbeats, votes, answers,
calls and notes. The second has appends and pieces of states, and the third large frames, which are
cut into pieces if the peer can reassemble them. Each turn takes the small ones, then some of the
second lane, then one piece: so small frames never wait behind large ones, and every lane makes
progress under any load.

Frames of one *stream* never overtake each other: an append follows a large one of its group into
the third lane, and a large one waits there for those before it in the second. The appends of a
group are a stream, because a follower rejects an append that arrives before its predecessor.

A slow peer must not fill our memory, and Raft tolerates loss. So when there is no room, the oldest
heartbeats go first: the next one has the same content. Appends are refused, the newest and not the
oldest, so that those under way still fit together. A beat replaces the beat before it, because it
carries everything that the receiver has not acknowledged.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable
from enum import Enum, auto

from kafkaesque.net.config import LinkConfig
from kafkaesque.net.pieces import Cutter
from kafkaesque.raft.messages import (
    AppendRequest,
    Heartbeat,
    HeartbeatResponse,
    Message,
    StatePiece,
)
from kafkaesque.types import Buffer


class Sort(Enum):
    """How a message is dropped when there is no room."""

    BEAT = auto()
    HEARTBEAT = auto()
    BULK = auto()
    SMALL = auto()


def sort_of(message: Message) -> Sort:
    """Return how a group's message is queued; even an append without entries is bulk.

    It follows those with entries, and would be rejected if it overtook them.
    """
    match message:
        case AppendRequest() | StatePiece():
            return Sort.BULK
        case Heartbeat() | HeartbeatResponse():
            return Sort.HEARTBEAT
        case _:
            return Sort.SMALL


_ITEM_BYTES = 200
"""Overhead of a message besides its parts, so that many small ones still count."""


class _Lane:
    """Bulky frames, in order, with their streams."""

    def __init__(self, config: LinkConfig) -> None:
        self.bytes = 0
        self.frames: deque[tuple[list[Buffer], int, Hashable]] = deque()
        self.streams: dict[Hashable, int] = {}
        """How many frames of each stream wait."""
        self._bytes_max = config.queue_bytes_max
        self._messages_max = config.queue_messages_max

    def put(self, parts: list[Buffer], size: int, stream: Hashable) -> bool:
        """Queue a frame if there is room; an empty lane takes a frame of any size.

        Otherwise it would never be sent.
        """
        frames = self.frames
        if frames and (self.bytes + size > self._bytes_max or len(frames) >= self._messages_max):
            return False
        frames.append((parts, size, stream))
        self.bytes += size
        if stream is not None:
            self.streams[stream] = self.streams.get(stream, 0) + 1
        return True

    def pop(self) -> tuple[list[Buffer], int]:
        """Remove the oldest frame; return its parts and its size."""
        parts, size, stream = self.frames.popleft()
        self.bytes -= size
        if stream is not None:
            left = self.streams[stream] - 1
            if left:
                self.streams[stream] = left
            else:
                del self.streams[stream]
        return parts, size


class Outbox:
    """The messages for one peer, first in, first out in each lane."""

    def __init__(self, config: LinkConfig) -> None:
        self.dropped = 0
        """Messages that were refused, or dropped later."""
        self.cuts = False
        """Whether the peer reassembles pieces; if not, large frames go whole."""
        self._config = config
        self._small: OrderedDict[int, tuple[list[Buffer], int, Sort]] = OrderedDict()
        self._small_bytes = 0
        self._heartbeats: OrderedDict[int, None] = OrderedDict()
        self._beat: int | None = None
        self._number = 0
        self._bulk = _Lane(config)
        self._large = _Lane(config)
        self._cutter: Cutter | None = None
        """For the oldest frame in the large lane, once its first piece was taken."""

    def __len__(self) -> int:
        return len(self._small) + len(self._bulk.frames) + len(self._large.frames)

    @property
    def size(self) -> int:
        """Queued bytes; a frame being cut counts until its last piece is taken."""
        return self._small_bytes + self._bulk.bytes + self._large.bytes

    def holds(self, stream: Hashable) -> bool:
        """Return whether a bulky frame of a stream is still queued, at least in part."""
        return stream in self._bulk.streams or stream in self._large.streams

    def put(self, parts: list[Buffer], sort: Sort, stream: Hashable = None) -> bool:
        """Queue a message; False if it is dropped."""
        size = sum(map(len, parts)) + _ITEM_BYTES
        if size > self._config.whole_bytes_max or stream in self._large.streams:
            is_taken = self._put_large(parts, size, sort, stream)
        elif sort is Sort.BULK:
            is_taken = self._bulk.put(parts, size, stream)
        else:
            is_taken = self._put_small(parts, size, sort)
        if not is_taken:
            self.dropped += 1
        return is_taken

    def take(self, bytes_max: int) -> tuple[list[Buffer], int]:
        """Return parts of the next messages, about this many bytes, and how many messages ended."""
        out: list[Buffer] = []
        taken = count = 0
        while self._small and taken < bytes_max:  # terminates: each turn removes a message
            number, (parts, size, sort) = self._small.popitem(last=False)
            out += parts
            taken += size
            count += 1
            if sort is Sort.HEARTBEAT:
                del self._heartbeats[number]
            elif sort is Sort.BEAT:
                self._beat = None
        self._small_bytes -= taken
        bulk = self._bulk
        spent = 0
        while bulk.frames and (taken < bytes_max or not spent):  # terminates: as above
            parts, size = bulk.pop()
            out += parts
            taken += size
            spent += size
            count += 1
        if self._large.frames:
            count += self._take_pieces(out)
        return out, count

    def _take_pieces(self, out: list[Buffer]) -> int:
        """Add about one piece's worth of the large lane; return how many messages ended."""
        config, lane = self._config, self._large
        count = spent = 0
        while lane.frames and spent < config.piece_bytes:  # terminates: each turn spends or pops
            parts, size, stream = lane.frames[0]
            if self._cutter is None and stream in self._bulk.streams:
                break  # its predecessors are in the other lane
            if self.cuts and size > config.whole_bytes_max:
                if self._cutter is None:
                    self._cutter = Cutter(parts)
                out += self._cutter.next(config.piece_bytes)
                spent += config.piece_bytes
                if not self._cutter.is_done:
                    continue
                self._cutter = None
            else:
                out += parts
                spent += size
            lane.pop()
            count += 1
        return count

    def _put_large(self, parts: list[Buffer], size: int, sort: Sort, stream: Hashable) -> bool:
        if sort is Sort.BEAT:
            stream = Sort.BEAT
            if stream in self._large.streams:
                return False  # the next one has all of its content
        return self._large.put(parts, size, stream)

    def _put_small(self, parts: list[Buffer], size: int, sort: Sort) -> bool:
        if sort is Sort.BEAT and self._beat is not None:
            self._drop(self._beat)
        while self._heartbeats and not self._has_room(size):  # terminates: each turn drops one
            self._drop(next(iter(self._heartbeats)))
        if not self._has_room(size):
            return False
        self._number += 1
        self._small[self._number] = (parts, size, sort)
        self._small_bytes += size
        if sort is Sort.BEAT:
            self._beat = self._number
        elif sort is Sort.HEARTBEAT:
            self._heartbeats[self._number] = None
        return True

    def _has_room(self, size: int) -> bool:
        is_room = self._small_bytes + size <= self._config.queue_bytes_max
        return is_room and len(self._small) < self._config.queue_messages_max

    def _drop(self, number: int) -> None:
        _, size, _ = self._small.pop(number)
        self._small_bytes -= size
        self.dropped += 1
        self._heartbeats.pop(number, None)
        if number == self._beat:
            self._beat = None
