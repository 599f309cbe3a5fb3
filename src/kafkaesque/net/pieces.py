"""Sends a large frame in pieces, so that small ones need not wait for all of it.

Each piece is a frame of its own, with the size of the large frame and the piece's position in it.
Only one frame of a link is in pieces at a time, and its pieces come in order: so pieces of
different frames need not be distinguished, and a reader holds the parts of at most one frame. Any
number of whole frames may come between two pieces.
"""

from collections import deque

from kafkaesque.net.config import PIECE_BYTES_MAX
from kafkaesque.net.errors import MalformedLink
from kafkaesque.net.frame_reader import GROWTH, LENGTH
from kafkaesque.net.heads import PieceHead
from kafkaesque.net.link_frame import frame
from kafkaesque.types import Buffer

PIECE_TAG = 34


class Cutter:
    """Cuts one frame into pieces; its bytes must not change until the last one is written."""

    def __init__(self, parts: list[Buffer]) -> None:
        """`parts` are those of a frame, with its length, which the pieces do not repeat."""
        views = [memoryview(part) for part in parts]
        views[0] = views[0][LENGTH.size :]
        self._views = deque(views)
        self._size = sum(map(len, views))
        self._position = 0

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        return self._position == self._size

    def next(self, bytes_max: int) -> list[Buffer]:
        """Return the parts of the next piece, which carries at most this many bytes."""
        body: list[Buffer] = []
        start = self._position
        end = min(start + bytes_max, self._size)
        while self._position < end:  # terminates: the views hold all bytes up to the size
            view = self._views.popleft()
            room = end - self._position
            if len(view) > room:
                self._views.appendleft(view[room:])
                view = view[:room]
            body.append(view)
            self._position += len(view)
        return frame((PIECE_TAG, self._size, start), body)


class Gathering:
    """Reassembles the pieces of one frame; memory grows with the bytes received."""

    def __init__(self, frame_bytes_max: int, claimed_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._claimed_bytes_max = claimed_bytes_max
        self._buffer: bytearray | None = None
        self._size = 0
        self._filled = 0

    def take(self, head: PieceHead, body: memoryview) -> memoryview | None:
        """Add a piece; return the frame once it is complete. Raises MalformedLink."""
        self._check(head, len(body))
        end = head.position + len(body)
        buffer = self._buffer
        if buffer is None or len(buffer) < end:
            buffer = self._buffer = self._grown(head.size, end)
        buffer[head.position : end] = body
        self._size, self._filled = head.size, end
        if end < head.size:
            return None
        self._buffer = None
        self._size = self._filled = 0
        return memoryview(buffer)

    def _check(self, head: PieceHead, length: int) -> None:
        if not 0 < length <= PIECE_BYTES_MAX:
            raise MalformedLink(f"a piece of {length} bytes, 1 to {PIECE_BYTES_MAX} are allowed")
        if head.size > self._frame_bytes_max:
            raise MalformedLink(
                f"a frame of {head.size} bytes in pieces, the limit is {self._frame_bytes_max}"
            )
        if head.position != self._filled or (self._filled and head.size != self._size):
            raise MalformedLink(
                f"a piece at byte {head.position} of {head.size} where byte {self._filled} "
                f"of {self._size or 'another frame'} was due"
            )
        if head.position + length > head.size:
            raise MalformedLink(
                f"a piece ends at byte {head.position + length} of a frame of {head.size}"
            )

    def _grown(self, size: int, end: int) -> bytearray:
        old = self._buffer or b""
        new = bytearray(min(size, max(GROWTH * len(old), end, self._claimed_bytes_max)))
        new[: len(old)] = old
        return new
