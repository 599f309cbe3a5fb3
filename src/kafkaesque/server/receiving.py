"""Cuts what one connection receives into requests, with hardly a copy and no buffer while idle.

All connections share one slab: between `buffer` and `received` of one connection nothing else runs,
and what is left over of a small request moves out again. A request over `LARGE_BYTES` gets a buffer
of its own that the socket is read straight into. That one grows with the bytes that come, never by
the length that was only claimed, and it is never used again: whoever gets the request owns it.
"""

from struct import Struct

from kafkaesque.config import LimitsConfig
from kafkaesque.errors import MalformedFrame

SLAB_BYTES = 256 << 10
"""One read from a socket: large enough for many small requests, small enough for the cache."""

LARGE_BYTES = 32 << 10
"""A longer request has a buffer of its own."""

PRODUCE_KEY = 0
"""The one API whose requests may be large: its bytes are batches, which are not unpacked."""

_LENGTH = Struct(">i")
_LENGTH_AND_KEY = Struct(">ih")


class Receiver:
    """The bytes of one connection that are no whole request yet.

    After MalformedFrame the position in the stream is lost: close the connection.
    """

    __slots__ = ("_filled", "_large", "_large_size", "_limits", "_rest", "_slab")

    def __init__(self, slab: memoryview, limits: LimitsConfig) -> None:
        self._slab = slab
        self._limits = limits
        self._rest = b""
        self._large: bytearray | None = None
        self._large_size = 0
        self._filled = 0

    @property
    def is_within_frame(self) -> bool:
        """Whether a part of a request has come."""
        return bool(self._rest) or self._large is not None

    def buffer(self) -> memoryview:
        """Return where the next bytes shall go; tell `received` before any other's are received."""
        large = self._large
        if large is not None:
            if self._filled == len(large):
                # Not resized: a transport may still hold on to what it was given before.
                self._large = bytearray(min(self._large_size, 2 * len(large)))
                self._large[: len(large)] = large
                large = self._large
            return memoryview(large)[self._filled :]
        rest = self._rest
        if rest:
            self._slab[: len(rest)] = rest
            return self._slab[len(rest) :]
        return self._slab

    def received(self, count: int) -> list[memoryview]:
        """Take so many bytes of the buffer; return the requests that are whole now.

        They are the caller's own and can be written to: a batch is stamped where it lies.
        """
        large = self._large
        if large is None:
            return self._cut(len(self._rest) + count)
        self._filled += count
        if self._filled < self._large_size:
            return []
        self._large = None
        return [memoryview(large)]

    def _cut(self, end: int) -> list[memoryview]:
        slab = self._slab
        position = 0
        frames = []
        while end - position >= _LENGTH.size:  # ends: every request moves the position on
            start = position + _LENGTH.size
            size = self._size(position, end)
            stop = start + size
            if stop > end:
                if size > LARGE_BYTES and end - position >= _LENGTH_AND_KEY.size:
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
        self._large = bytearray(min(size, 2 * len(data)))
        self._large[: len(data)] = data

    def _size(self, position: int, end: int) -> int:
        size: int
        (size,) = _LENGTH.unpack_from(self._slab, position)
        bytes_max = self._limits.frame_bytes_max
        if not 0 <= size <= bytes_max:
            raise MalformedFrame(f"a request of {size} bytes, at most {bytes_max} are taken")
        bytes_max = self._limits.request_bytes_max
        if size > bytes_max and end - position >= _LENGTH_AND_KEY.size:
            _, key = _LENGTH_AND_KEY.unpack_from(self._slab, position)
            if key != PRODUCE_KEY:
                raise MalformedFrame(
                    f"a request of {size} bytes for API {key}, at most {bytes_max} are taken"
                )
        return size
