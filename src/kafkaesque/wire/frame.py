"""Frames: every request and response is preceded by its length in four bytes.

The splitter takes what a connection received, in pieces of any size, and returns whole frames. It
does no I/O, so the broker, the client and the tests share it.
"""

from collections.abc import Sequence
from struct import Struct

from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer

SMALL_FRAME_BYTES = 4 << 10
"""A smaller frame is faster copied than passed on in a dozen pieces: `bench/requests.py`."""

_LENGTH = Struct(">i")


class FrameSplitter:
    """Cuts one connection's bytes into frames of at most `frame_bytes_max`.

    Memory grows with the bytes received, never with a merely claimed length. After MalformedFrame
    the position in the stream is lost: close the connection.
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._rest = bytearray()
        self._wanted = _LENGTH.size

    def feed(self, data: Buffer) -> list[memoryview]:
        """Take received bytes and return the frames now complete, without their lengths.

        Frames that lie within `data` are views of it: the caller must not write to `data` while
        using them.
        """
        view = memoryview(data)
        position = 0
        frames = []
        if self._rest:
            position = self._complete(view)
            if len(self._rest) < self._wanted:
                return []
            frames.append(memoryview(self._rest)[_LENGTH.size :])
            self._rest = bytearray()
            self._wanted = _LENGTH.size
        size = len(view)
        while size - position >= _LENGTH.size:  # ends: every frame advances the position
            start = position + _LENGTH.size
            end = start + self._length(view, position)
            if end > size:
                self._wanted = end - position
                break
            frames.append(view[start:end])
            position = end
        self._rest += view[position:]
        return frames

    def _complete(self, view: memoryview) -> int:
        """Add to the incomplete frame; return how much of `view` it took."""
        taken = 0
        if len(self._rest) < _LENGTH.size:
            taken = min(_LENGTH.size - len(self._rest), len(view))
            self._rest += view[:taken]
            if len(self._rest) < _LENGTH.size:
                return taken
            self._wanted = _LENGTH.size + self._length(self._rest, 0)
        end = min(taken + self._wanted - len(self._rest), len(view))
        self._rest += view[taken:end]
        return end

    def _length(self, data: Buffer, position: int) -> int:
        (length,) = _LENGTH.unpack_from(data, position)
        if not 0 <= length <= self._frame_bytes_max:
            raise MalformedFrame(f"a frame of {length} bytes, at most {self._frame_bytes_max}")
        assert isinstance(length, int)
        return length


def frame(parts: Sequence[Buffer]) -> list[Buffer]:
    """Return a frame in one piece if it is small, else the length of `parts` and then `parts`."""
    size = sum(map(len, parts))
    if size < SMALL_FRAME_BYTES:
        return [b"".join((_LENGTH.pack(size), *parts))]
    return [_LENGTH.pack(size), *parts]
