"""Links with limited bandwidth: the real queue, frames and pieces over a simulated wire.

Each direction between two nodes is a connection that carries a fixed number of bytes per
millisecond, in order. Messages go through the production outbox, codec and receiver, so queueing
behind a large record is the same as in production.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial

from kafkaesque.net.codec import Decoder, ForGroup, encode_beat, encode_message
from kafkaesque.net.config import LinkConfig
from kafkaesque.net.frame_reader import SLAB_BYTES, Receiver
from kafkaesque.net.handshake import PIECES_SINCE
from kafkaesque.net.outbox import Outbox, Sort, sort_of
from kafkaesque.net.pieces import Gathering
from kafkaesque.raft.messages import Message
from kafkaesque.raft.roster import Beat
from kafkaesque.sim.settings import Narrow
from kafkaesque.types import GroupId, NodeId

Deliver = Callable[[GroupId, Message | Beat], None]
Schedule = Callable[[int, Callable[[], None]], object]


class NarrowWays:
    """All connections of one world."""

    def __init__(self, narrow: Narrow, delay: int, schedule: Schedule, deliver: Deliver) -> None:
        self.sent_bytes: Counter[tuple[NodeId, NodeId]] = Counter()
        """Bytes sent from one node to another."""
        self._narrow = narrow
        self._delay = delay
        self._schedule = schedule
        self._deliver = deliver
        self._slab = memoryview(bytearray(SLAB_BYTES))
        self._ways: dict[tuple[NodeId, NodeId], _Way] = {}

    def send(self, group: GroupId, message: Message | Beat) -> None:
        """Accept a message and deliver it in its turn."""
        self._way(message.source, message.target).send(group, message)

    def is_sending(self, group: GroupId, source: NodeId, target: NodeId) -> bool:
        """Return whether a bulky message of a group still waits to be written."""
        return self._way(source, target).outbox.holds(group)

    def cut(self, source: NodeId, target: NodeId) -> None:
        """Lose everything in flight from one node to another: the next connection is new."""
        way = self._ways.pop((source, target), None)
        if way is not None:
            way.is_lost = True

    def _way(self, source: NodeId, target: NodeId) -> "_Way":
        way = self._ways.get((source, target))
        if way is None:
            receiver = Receiver(self._slab, self._narrow.links.frame_bytes_max)
            ends = source, target
            write = partial(self._write, ends)
            way = _Way(self._narrow.links, ends, receiver, write, self._deliver)
            self._ways[ends] = way
        return way

    def _write(self, ends: tuple[NodeId, NodeId], data: bytes, way: "_Way") -> None:
        """Transmit bytes; later writes arrive later."""
        self.sent_bytes[ends] += len(data)
        takes_ms = -(-len(data) // self._narrow.bytes_per_ms)
        self._schedule(takes_ms, way.written)
        self._schedule(takes_ms + self._delay, partial(way.arrived, data))


class _Way:
    """One direction of one connection."""

    def __init__(
        self,
        links: LinkConfig,
        ends: tuple[NodeId, NodeId],
        receiver: Receiver,
        write: Callable[[bytes, "_Way"], None],
        deliver: Deliver,
    ) -> None:
        self.is_lost = False
        self.outbox = Outbox(links)
        self._version = links.version_max
        self.outbox.cuts = links.version_max >= PIECES_SINCE
        self._turn_bytes = links.piece_bytes
        self._write = write
        self._deliver = deliver
        self._receiver = receiver
        gathering = Gathering(links.frame_bytes_max, links.claimed_bytes_max)
        self._decoder = Decoder(*ends, gathering if self.outbox.cuts else None)
        self._is_busy = False

    def send(self, group: GroupId, message: Message | Beat) -> None:
        """Queue a message; start writing it if nothing else is being written."""
        if isinstance(message, Beat):
            self.outbox.put(encode_beat(message), Sort.BEAT)
        else:
            sort = sort_of(message)
            stream = group if sort is Sort.BULK else None
            self.outbox.put(encode_message(group, message, self._version), sort, stream)
        if not self._is_busy:
            self.written()

    def written(self) -> None:
        """Continue writing: everything written before has been transmitted."""
        self._is_busy = bool(self.outbox) and not self.is_lost
        if self._is_busy:
            parts, _ = self.outbox.take(self._turn_bytes)
            self._write(b"".join(parts), self)

    def arrived(self, data: bytes) -> None:
        """Receive written bytes, unless the connection was lost meanwhile."""
        if self.is_lost:
            return
        position = 0
        while position < len(data):  # terminates: a buffer takes at least a byte
            buffer = self._receiver.buffer()
            count = min(len(buffer), len(data) - position)
            buffer[:count] = data[position : position + count]
            position += count
            for frame in self._receiver.received(count):
                self._hand_over(frame)

    def _hand_over(self, frame: memoryview) -> None:
        item = self._decoder.decode(frame)
        if isinstance(item, ForGroup):
            self._deliver(item.group, item.message)
        elif isinstance(item, Beat):
            self._deliver("", item)
        else:
            assert item is None, "replicas send nothing else"
