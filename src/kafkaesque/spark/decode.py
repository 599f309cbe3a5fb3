"""Decodes Kafka's batches straight into Arrow columns.

The columns are those of Spark's own Kafka connector. Several batches become one Arrow batch,
because each Arrow batch costs Spark far more than a record does. The plain reader
(`kafkaesque.record.read`) is the reference: tests compare the two, and if the compiled loop refuses
a batch, the plain reader gives the reason.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from kafkaesque.record.compression import decompress
from kafkaesque.record.errors import MalformedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.read import read_records
from kafkaesque.record.view import HEADER_BYTES, BatchView, Codec
from kafkaesque.spark.record_loops import MALFORMED, NO_APPEND_TIME, gather, measure, scan
from kafkaesque.types import Buffer, Offset

CHUNK_BYTES = 16 << 20
"""Batches are combined up to this many uncompressed bytes: some 64 batches of a busy topic."""

_RECORD_BYTES_MIN = 7
_HEADERS_TYPE = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]),
    )
)

ARROW_TYPES = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": _HEADERS_TYPE,
}
"""All columns, in the order of Spark's own connector."""

COLUMNS = tuple(name for name in ARROW_TYPES if name != "headers")
"""The columns without `includeHeaders`."""

_Bytes: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint8]]"
_Numbers: TypeAlias = "np.ndarray[tuple[int, int], np.dtype[np.int64]]"

_KEY, _VALUE = 0, 2
"""Where the positions of a field start in the tables of `scan`; headers have the same shape."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What to decode: the partition, the window of offsets and the columns."""

    topic: str
    partition: int
    first: Offset
    end: Offset
    columns: tuple[str, ...] = COLUMNS


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """A batch and its uncompressed records."""

    batch: BatchView
    data: Buffer


def chunks(batches: Iterable[BatchView], limits: RecordLimits) -> Iterator[list[Payload]]:
    """Yield uncompressed batches with records, in groups that become one Arrow batch each.


    Raises CorruptBatch for a wrong checksum, and the errors of decompression.
    """
    group: list[Payload] = []
    size = 0
    for batch in batches:
        if batch.is_control or batch.record_count == 0:
            continue
        batch.check_crc()
        payload = Payload(batch=batch, data=_unpacked(batch, limits))
        if group and size + len(payload.data) > CHUNK_BYTES:
            yield group
            group, size = [], 0
        group.append(payload)
        size += len(payload.data)
    if group:
        yield group


class Decoder:
    """Decodes groups of batches, all into the same columns.

    It keeps its working memory between groups and allocates columns from Arrow's pool, because
    fresh memory from the system costs more than everything done with it.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._schema = pa.schema([pa.field(name, ARROW_TYPES[name]) for name in target.columns])
        self._window = np.array([target.first, target.end], np.int64)
        self._data = np.empty(0, np.uint8)
        self._numbers = np.empty((0, 3), np.int64)
        self._places = np.empty((0, 5), np.int64)
        self._header_places = np.empty((0, 4), np.int64)

    def skip_to(self, offset: Offset) -> None:
        """Skip records before this offset from now on."""
        self._window[0] = offset

    def decode(self, payloads: Sequence[Payload]) -> pa.RecordBatch:
        """Return the columns of these batches' records that lie in the target's window.

        Raises MalformedBatch if the bytes are inconsistent.
        """
        table = _table(payloads)
        self._make_room(records=int(table[:, 6].sum()), size=int(table[-1, 1]))
        for one, (start, end) in zip(payloads, table[:, :2], strict=True):
            self._data[start:end] = np.frombuffer(one.data, np.uint8)
        rows, header_count = scan(
            self._data, table, self._window, self._numbers, self._places, self._header_places
        )
        if rows == MALFORMED:
            raise _reason(payloads)
        columns = _Columns(
            data=self._data,
            numbers=self._numbers[:rows],
            places=self._places[:rows],
            header_places=self._header_places[:header_count],
            target=self._target,
        )
        arrays = [columns.make(name) for name in self._target.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _make_room(self, *, records: int, size: int) -> None:
        if len(self._data) < size:
            self._data = np.empty(2 * size, np.uint8)
            if "headers" in self._target.columns:
                self._header_places = np.empty((size, 4), np.int64)  # at least two bytes each
        if len(self._numbers) < records:
            self._numbers = np.empty((2 * records, 3), np.int64)
            self._places = np.empty((2 * records, 5), np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Makes the columns."""

    data: _Bytes
    numbers: _Numbers
    places: _Numbers
    header_places: _Numbers
    target: Target

    def make(self, name: str) -> pa.Array:
        rows = len(self.places)
        match name:
            case "key":
                return self._bytes(self.places, _KEY, pa.binary())
            case "value":
                return self._bytes(self.places, _VALUE, pa.binary())
            case "topic":
                return pa.repeat(_text(self.target.topic), rows)
            case "partition":
                buffer, out = _allocate(rows, np.int32)
                out[:] = self.target.partition
                return pa.Array.from_buffers(pa.int32(), rows, [None, buffer])
            case "offset":
                return self._number(0, np.int64, ARROW_TYPES[name])
            case "timestamp":
                return self._number(1, np.int64, ARROW_TYPES[name])
            case "timestampType":
                return self._number(2, np.int32, ARROW_TYPES[name])
            case "headers":
                return self._headers()
            case _:
                raise AssertionError(f"unknown column {name}")

    def _number(self, column: int, dtype: type[np.signedinteger[Any]], kind: pa.DataType) -> Any:
        rows = len(self.numbers)
        buffer, out = _allocate(rows, dtype)
        out[:] = self.numbers[:, column]
        return pa.Array.from_buffers(kind, rows, [None, buffer])

    def _headers(self) -> pa.Array:
        keys = self._bytes(self.header_places, _KEY, pa.string())
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid:
            raise MalformedBatch("a header's key is not UTF-8") from None
        values = self._bytes(self.header_places, _VALUE, pa.binary())
        struct_type = _HEADERS_TYPE.value_type
        pairs = pa.StructArray.from_arrays([keys, values], fields=list(struct_type))
        rows = len(self.places)
        offsets = np.zeros(rows + 1, np.int32)
        np.cumsum(self.places[:, 4], out=offsets[1:])
        # As in Spark's own connector, a record without headers has null, not an empty list.
        is_there = np.packbits(self.places[:, 4] > 0, bitorder="little")
        buffers = [pa.py_buffer(is_there), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(_HEADERS_TYPE, rows, buffers, children=[pairs])

    def _bytes(self, places: _Numbers, column: int, kind: pa.DataType) -> pa.Array:
        rows = len(places)
        offsets_buffer, offsets = _allocate(rows + 1, np.int32)
        is_there = np.zeros(rows // 8 + 1, np.uint8)
        nulls = measure(places, column, rows, offsets, is_there)
        data_buffer, out = _allocate(int(offsets[rows]), np.uint8)
        gather(self.data, places, column, rows, out)
        mask = pa.py_buffer(is_there) if nulls else None
        buffers = [mask, offsets_buffer, data_buffer]
        return pa.Array.from_buffers(kind, rows, buffers, null_count=nulls)


def _allocate(count: int, dtype: Any) -> tuple[pa.Buffer, Any]:
    """Return a buffer of Arrow's pool, and an array over it for writing."""
    buffer = pa.allocate_buffer(count * np.dtype(dtype).itemsize)
    return buffer, np.frombuffer(buffer, dtype)


def _text(text: str) -> pa.StringScalar:
    """Return an Arrow string. `pa.scalar` would import pandas, which takes a second."""
    data = text.encode()
    ends = np.array([0, len(data)], np.int32)
    return pa.StringArray.from_buffers(1, pa.py_buffer(ends), pa.py_buffer(data))[0]


def _unpacked(batch: BatchView, limits: RecordLimits) -> Buffer:
    payload = batch.data[HEADER_BYTES:]
    if batch.codec is Codec.NONE:
        return payload
    return decompress(batch.codec, payload, limits)


def _table(payloads: Sequence[Payload]) -> _Numbers:
    rows = []
    start = 0
    for one in payloads:
        batch, end = one.batch, start + len(one.data)
        count, last = batch.record_count, batch.last_offset_delta
        if not 0 <= count <= last + 1 or count * _RECORD_BYTES_MIN > end - start:
            raise _reason([one])
        append_ms = batch.max_timestamp_ms if batch.is_log_append_time else NO_APPEND_TIME
        rows.append(
            (start, end, batch.base_offset, last, batch.base_timestamp_ms, append_ms, count)
        )
        start = end
    return np.array(rows, np.int64)


def _reason(payloads: Sequence[Payload]) -> MalformedBatch:
    """Let the plain reader find the reason."""
    for one in payloads:
        try:
            read_records(one.batch)
        except MalformedBatch as error:
            return MalformedBatch(f"the batch at offset {one.batch.base_offset}: {error}")
    return MalformedBatch(f"the batch at offset {payloads[0].batch.base_offset} cannot be decoded")
