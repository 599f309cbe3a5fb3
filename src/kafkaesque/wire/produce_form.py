"""A fast path for produce requests that differ from an earlier one only in partition and batch.

A client that sends one batch at a time repeats everything around it: client id, acks, topic. What
the codec has decoded once need only be compared the next time, and in the response only numbers
change. For a small request that saves half of the work (`bench/requests.py`). Everything else,
errors included, goes through the codec, which the tests compare this with.
"""

from struct import Struct

from kafkaesque.types import Offset
from kafkaesque.wire.codec import encode
from kafkaesque.wire.header import encode_response_header, response_header_version
from kafkaesque.wire.messages.produce import (
    API,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkaesque.wire.varint import BYTES_MAX, write_varint

FIRST_VERSION = 5
"""Responses include the first offset since this version."""

_START = Struct(">ii")
"""Key and version of a request as one number, and its correlation id."""
_INT32 = Struct(">i")
_ANSWERED = Struct(">ihqqq")
"""A partition's number, error, base offset, append time and first offset."""

_MARKED = (-2, -2, -2, -2, -2)
"""Placeholders that locate these numbers in a response: no name contains such bytes."""


class ProduceForm:
    """The bytes around partition and batch in requests to one topic, and in their responses."""

    __slots__ = (
        "_answer",
        "_answer_around",
        "_before",
        "_behind",
        "_between",
        "_kind",
        "_partition_at",
        "_records_at",
        "_size",
    )

    def __init__(self, frame: memoryview, version: int, request: ProduceRequest) -> None:
        """Take a request that `form_of` accepts, and the frame that it came in."""
        topic = request.topic_data[0]
        records = topic.partition_data[0].records
        assert records is not None
        self._behind = _behind(version)
        self._size = len(frame)
        self._records_at = self._size - len(self._behind) - len(records)
        length_at = self._records_at - len(_length(version, len(records)))
        self._partition_at = length_at - _INT32.size
        self._kind: int = _START.unpack_from(frame)[0]
        self._before = bytes(frame[_START.size : self._partition_at])
        self._between = bytes(frame[length_at : self._records_at])
        marked = PartitionProduceResponse(
            index=-2, error_code=-2, base_offset=-2, log_append_time_ms=-2, log_start_offset=-2
        )
        answer = TopicProduceResponse(
            topic_id=topic.topic_id, name=topic.name, partition_responses=(marked,)
        )
        head = encode_response_header(0, response_header_version(API, version))[_INT32.size :]
        body = head + encode(ProduceResponse(responses=(answer,)), version)
        before, numbers, behind = body.partition(_ANSWERED.pack(*_MARKED))
        assert numbers
        self._answer = Struct(f">ii{len(before)}sihqqq{len(behind)}s")
        self._answer_around = before, behind

    def read(self, frame: memoryview) -> tuple[int, int, memoryview] | None:
        """Return correlation id, partition and records; None for a request of another form."""
        size, partition_at = len(frame), self._partition_at
        if size != self._size and not self._fit(size):
            return None
        kind, correlation_id = _START.unpack_from(frame)
        records_at, records_end = self._records_at, size - len(self._behind)
        if (
            kind != self._kind
            or frame[_START.size : partition_at] != self._before
            or frame[partition_at + _INT32.size : records_at] != self._between
            or frame[records_end:] != self._behind
        ):
            return None
        (partition,) = _INT32.unpack_from(frame, partition_at)
        return correlation_id, partition, frame[records_at:records_end]

    def answer(
        self, correlation_id: int, partition: int, numbers: tuple[Offset, int, Offset]
    ) -> bytes:
        """Return the success response, as a frame.

        The numbers are base offset, append time and first offset.
        """
        before, behind = self._answer_around
        answer = self._answer
        return answer.pack(
            answer.size - _INT32.size, correlation_id, before, partition, 0, *numbers, behind
        )

    def _fit(self, size: int) -> bool:
        """Adapt to another frame size; return False if no frame of this form can have it."""
        length_at = self._partition_at + _INT32.size
        version = self._kind & 0xFFFF
        for length_bytes in range(1, BYTES_MAX + 1):
            count = size - len(self._behind) - length_at - length_bytes
            between = _length(version, count) if count > 0 else b""
            if len(between) == length_bytes:
                self._size, self._between = size, between
                self._records_at = length_at + length_bytes
                return True
        return False


def form_of(
    frame: memoryview, start: int, version: int, request: ProduceRequest
) -> ProduceForm | None:
    """Return the form of a request whose body starts at `start` of its frame.

    None if it has anything but one batch for one partition, or is not written as the codec would
    write it: with unknown tags, say, or with bytes after its end.
    """
    is_single = (
        version >= FIRST_VERSION
        and len(request.topic_data) == 1
        and len(request.topic_data[0].partition_data) == 1
        and request.topic_data[0].partition_data[0].records
    )
    if not is_single or frame[start:] != encode(request, version):
        return None
    return ProduceForm(frame, version, request)


def _behind(version: int) -> bytes:
    """Return what follows the records: the end of a partition, a topic and the request."""
    return b"\0\0\0" if API.flexible(version) else b""


def _length(version: int, count: int) -> bytes:
    """Return the encoded length of this many bytes of records."""
    return write_varint(count + 1) if API.flexible(version) else _INT32.pack(count)
