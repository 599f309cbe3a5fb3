"""The bytes of a journal: its initial state, twice, and the frames of its rounds.

    file  = state padding state frame*
    state = header frame
    frame = marker 4 | length 4 | crc 4 | round 8 | msgpack array of records

The state is durable before the file gets its name, so damage there is never a torn tail. Its two
copies are the same bytes on different pages: either is enough, and neither is older. Files of
format 1 have one state and no copy.
"""

import struct
from collections.abc import Iterator, Sequence

import msgspec

from kafkaesque.errors import NewerFormat
from kafkaesque.log.errors import CorruptLog, ForeignFile
from kafkaesque.log.journal_records import JournalRecord
from kafkaesque.record.crc import crc32c
from kafkaesque.types import NodeId

FORMAT = 2
PATH = "journal"
COPY_ALIGN_BYTES = 4096
"""The second state starts at a multiple of this, so one bad page damages at most one copy."""

_FORMAT_WITHOUT_COPY = 1
_MAGIC = b"KFKQJRNL"
_MARKER = b"KJFR"
_HEADER = struct.Struct(">8sHqI")
_FRAME = struct.Struct(">4sIIQ")
_CHECKED_FROM = 12
_FRAME_BYTES_MAX = 1 << 30
_LOST = "its initial state is unreadable, and it has no good copy"

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[JournalRecord])

Frame = tuple[int, list[JournalRecord], int]
"""The round, the records, and where the frame ends."""


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The state at the start of a journal."""

    node: NodeId
    round: int
    records: list[JournalRecord]
    end: int
    """Where the frames of later rounds start."""

    is_whole: bool
    """Whether it has two good copies, as this version writes them."""

    damaged: str = ""
    """Which copy is bad: `first`, `second`, or neither."""


def frame_bytes(number: int, records: Sequence[JournalRecord]) -> bytearray:
    """Return the frame of one round."""
    body = _encoder.encode(records)
    frame = bytearray(_FRAME.size + len(body))
    _FRAME.pack_into(frame, 0, _MARKER, len(body), 0, number)
    frame[_FRAME.size :] = body
    struct.pack_into(">I", frame, 8, crc32c(memoryview(frame)[_CHECKED_FROM:]))
    return frame


def state_bytes(node: NodeId, number: int, records: Sequence[JournalRecord]) -> bytes:
    """Return the start of a new journal: header and frame, both twice."""
    head = _HEADER.pack(_MAGIC, FORMAT, node, 0)[:-4]
    state = head + struct.pack(">I", crc32c(head)) + frame_bytes(number, records)
    return state.ljust(_copy_at(len(state)), b"\x00") + state


def read_state(data: bytes) -> State:
    """Return the state at the start of a journal, from either good copy.

    Raises CorruptLog if both are bad, ForeignFile and NewerFormat.
    """
    try:
        version, node, (number, records, end) = _state_at(data, 0)
    except (CorruptLog, ForeignFile):
        state = _second_copy(data)
        if state is None:
            raise
        return state
    is_whole, damaged = version > _FORMAT_WITHOUT_COPY, ""
    if is_whole:
        copy_at, state_end = _copy_at(end), end
        end += copy_at
        if len(data) < end:
            raise CorruptLog(PATH, len(data), "it is shorter than when it was synced")
        is_whole = data[copy_at:end] == data[:state_end]
        damaged = "" if is_whole else "second"
    return State(
        node=node, round=number, records=records, end=end, is_whole=is_whole, damaged=damaged
    )


def frames(data: bytes, position: int) -> Iterator[Frame]:
    """Yield the good frames starting at a position, up to the first bad one."""
    while position < len(data):
        frame = _frame_at(data, position)
        if frame is None:
            return
        yield frame
        position = frame[2]


def refuse_damage(data: bytes, position: int, *, is_same_boot: bool) -> None:
    """Raise CorruptLog unless the bytes after the good frames can be the last round, torn.

    A later good frame proves that this one was synced. While the machine runs, everything that a
    killed process wrote is there: then a frame can be short, but its bytes are right.
    """
    place = data.find(_MARKER, position + 1)
    while place != -1:
        if _frame_at(data, place) is not None:
            raise CorruptLog(PATH, position, "a frame is damaged and later ones are whole")
        place = data.find(_MARKER, place + 1)
    if is_same_boot and not _may_be_short(data, position):
        reason = "its last frame is damaged, and the machine has not lost power since"
        raise CorruptLog(PATH, position, reason)


def _may_be_short(data: bytes, position: int) -> bool:
    left = len(data) - position
    if left < _FRAME.size:
        return _MARKER.startswith(data[position : position + len(_MARKER)])
    marker, length, crc, _ = _FRAME.unpack_from(data, position)
    if crc32c(memoryview(data)[position + _CHECKED_FROM :]) == crc:
        return False  # it is complete, so its header is damaged
    is_short: bool = marker == _MARKER and left - _FRAME.size < length <= _FRAME_BYTES_MAX
    return is_short


def _copy_at(state_bytes_count: int) -> int:
    return -(-state_bytes_count // COPY_ALIGN_BYTES) * COPY_ALIGN_BYTES


def _second_copy(data: bytes) -> State | None:
    for place in range(COPY_ALIGN_BYTES, len(data), COPY_ALIGN_BYTES):
        if not data.startswith(_MAGIC, place):
            continue
        try:
            _, node, (number, records, end) = _state_at(data, place)
        except CorruptLog:
            continue
        if _copy_at(end - place) == place:  # otherwise it is not a copy of the initial state
            return State(
                node=node, round=number, records=records, end=end, is_whole=False, damaged="first"
            )
    return None


def _state_at(data: bytes, position: int) -> tuple[int, NodeId, Frame]:
    version, node = _read_header(data, position)
    frame = _frame_at(data, position + _HEADER.size)
    if frame is None:
        raise CorruptLog(PATH, position + _HEADER.size, _LOST)
    return version, node, frame


def _read_header(data: bytes, position: int) -> tuple[int, NodeId]:
    if len(data) - position < _HEADER.size:
        raise CorruptLog(PATH, len(data), "it ends inside its header")
    magic, version, node, crc = _HEADER.unpack_from(data, position)
    if magic != _MAGIC:
        raise ForeignFile(PATH, "it does not start with a journal header")
    if crc != crc32c(data[position : position + _HEADER.size - 4]):
        raise CorruptLog(PATH, position, "the checksum of its header is wrong")
    if version > FORMAT:
        raise NewerFormat(PATH, version, FORMAT)
    return version, NodeId(node)


def _frame_at(data: bytes, position: int) -> Frame | None:
    if len(data) - position < _FRAME.size:
        return None
    marker, length, crc, number = _FRAME.unpack_from(data, position)
    end = position + _FRAME.size + length
    if marker != _MARKER or length > _FRAME_BYTES_MAX or end > len(data):
        return None
    if crc32c(memoryview(data)[position + _CHECKED_FROM : end]) != crc:
        return None
    try:
        return number, _decoder.decode(data[position + _FRAME.size : end]), end
    except msgspec.ValidationError as error:
        raise NewerFormat(PATH, FORMAT + 1, FORMAT) from error
