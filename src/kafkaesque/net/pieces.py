"""A large frame goes in pieces, so that a small one need not wait until all of it has gone.

Each piece is a frame of its own: it says how long the large frame is and where the piece belongs.
Of all frames of a link only one is in pieces at a time, and its pieces come in order: so nothing
has to tell two of them apart, and a reader holds the parts of one frame at most. Between two pieces
any number of whole frames may come.
"""

from collections import deque

from kafkaesque.cluster_config import PIECE_BYTES_MAX
from kafkaesque.errors import MalformedLink
from kafkaesque.net.framing import frame
from kafkaesque.net.heads import PieceHead
from kafkaesque.net.receiving import GROWTH, LENGTH
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
        """Return the parts of the next piece, which carries so many bytes at most."""
        body: list[Buffer] = []
        start = self._position
        end = min(start + bytes_max, self._size)
        while self._position < end:  # ends: the views hold all bytes up to the size
            view = self._views.popleft()
            room = end - self._position
            if len(view) > room:
                self._views.appendleft(view[room:])
                view = view[:room]
            body.append(view)
            self._position += len(view)
        return frame((PIECE_TAG, self._size, start), body)


class Gathering:
    """Puts the pieces of one frame together; memory is given for bytes that came."""

    def __init__(self, frame_bytes_max: int, claimed_bytes_max: int) -> None:
        self._frame_bytes_max = frame_bytes_max
        self._claimed_bytes_max = claimed_bytes_max
        self._buffer: bytearray | None = None
        self._size = 0
        self._filled = 0

    def take(self, head: PieceHead, body: memoryview) -> memoryview | None:
        """Take a piece; return the frame once it is whole. Raises MalformedLink."""
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
            raise MalformedLink(f"a piece of {length} bytes, 1 to {PIECE_BYTES_MAX} are taken")
        if head.size > self._frame_bytes_max:
            raise MalformedLink(
                f"a frame of {head.size} bytes in pieces, at most {self._frame_bytes_max} are taken"
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
