"""Cuts one connection's input into frames, with hardly a copy and no buffer while idle.

All connections share one slab: between `buffer` and `received` of one connection nothing else runs,
and the rest of a small frame is copied out again. A frame over `LARGE_BYTES` gets its own buffer,
which the socket reads straight into. That buffer grows with the bytes received, not with the
claimed length, unless the peer is trusted with `claimed_bytes_max`. It is never reused: the
receiver of the frame owns it.
"""

from struct import Struct

from kafkaesque.errors import MalformedFrame

SLAB_BYTES = 256 << 10
"""One read from a socket: large enough for many small frames, small enough for the cache."""

LARGE_BYTES = 32 << 10
"""A longer frame gets its own buffer."""

GROWTH = 4
"""A buffer is at most this many times the bytes received: from a full slab to a request of 1 MB, as
librdkafka sends them, in one step. With 2 this class costs nearly half more; for its share of the
total, see docs/explanation/hot-path.md.
"""

LENGTH = Struct(">i")


class Receiver:
    """The bytes of one connection that are not a complete frame yet.

    After MalformedFrame the position in the stream is lost: close the connection.
    """

    __slots__ = (
        "_filled",
        "_large",
        "_large_size",
        "_rest",
        "_slab",
        "claimed_bytes_max",
        "frame_bytes_max",
        "usual_bytes_max",
    )

    begin_bytes = LENGTH.size + 1
    """How many bytes of a frame must arrive before it gets its own buffer."""

    def __init__(self, slab: memoryview, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.usual_bytes_max = min(LARGE_BYTES, frame_bytes_max)
        """Frames up to this size need no further check."""
        self.claimed_bytes_max = 0
        self._slab = slab
        self._rest = b""
        self._large: bytearray | None = None
        self._large_size = 0
        self._filled = 0

    @property
    def is_within_frame(self) -> bool:
        """Whether a part of a frame has arrived."""
        return bool(self._rest) or self._large is not None

    def buffer(self) -> memoryview:
        """Return the buffer for the next bytes; `received` must follow before others receive."""
        large = self._large
        if large is not None:
            if self._filled == len(large):
                # Not resized: a transport may still hold the old buffer.
                self._large = bytearray(min(self._large_size, GROWTH * len(large)))
                self._large[: len(large)] = large
                large = self._large
            return memoryview(large)[self._filled :]
        rest = self._rest
        if rest:
            self._slab[: len(rest)] = rest
            return self._slab[len(rest) :]
        return self._slab

    def received(self, count: int) -> list[memoryview]:
        """Accept this many bytes of the buffer; return the frames that are now complete.

        The caller owns them and may write to them: a batch is stamped in place.
        """
        large = self._large
        if large is None:
            return self._cut(len(self._rest) + count)
        self._filled += count
        if self._filled < self._large_size:
            return []
        self._large = None
        return [memoryview(large)]

    def forget(self) -> None:
        """Drop the incomplete frame; the owner of this may stay in memory for long."""
        self._rest = b""
        self._large = None

    def _cut(self, end: int) -> list[memoryview]:
        slab = self._slab
        position = 0
        frames = []
        while end - position >= LENGTH.size:  # terminates: every frame advances the position
            start = position + LENGTH.size
            (size,) = LENGTH.unpack_from(slab, position)
            if not 0 <= size <= self.usual_bytes_max:
                self._check(size, position, end)
            stop = start + size
            if stop > end:
                if size > LARGE_BYTES and end - position >= self.begin_bytes:
                    self._begin_large(slab[start:end], size)
                    position = end
                break
            frames.append(memoryview(bytearray(slab[start:stop])))
            position = stop
        self._rest = bytes(slab[position:end]) if position < end else b""
        return frames

    def _begin_large(self, data: memoryview, size: int) -> None:
        self._filled = len(data)
        self._large_size = size
        self._large = bytearray(min(size, max(GROWTH * len(data), self.claimed_bytes_max)))
        self._large[: len(data)] = data

    def _check(self, size: int, position: int, end: int) -> None:
        """Raise unless the frame at a position of the slab may have its claimed size."""
        if not 0 <= size <= self.frame_bytes_max:
            raise MalformedFrame(f"a frame of {size} bytes, the limit is {self.frame_bytes_max}")
