"""Encodes Arrow columns as the records of Kafka's batches, partition by partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kafkaesque.client.producer import EncodedRecords
from kafkaesque.client.topics import Place
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.write_loops import encode_rows, partitions_of_keys

_RECORD_OVERHEAD = 40
"""An upper bound of the bytes for all numbers of a record."""
_HEADER_OVERHEAD = 10
_NOBODY = -1
_MICROSECONDS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The columns of one Arrow batch, ready for the loops."""

    count: int
    keys: tuple[Any, Any]
    values: tuple[Any, Any]
    headers: Any
    header_keys: tuple[Any, Any]
    header_values: tuple[Any, Any]
    bounds: Any
    """The maximum encoded size of each row."""
    times_ms: Any | None = None
    """The rows' own timestamps; without them, records get the time of writing."""


def rows_of(batch: pa.RecordBatch, *, with_times: bool = False) -> Rows:
    """Return the columns that the sink writes; missing ones count as null."""
    names = batch.schema.names
    nothing = pa.nulls(batch.num_rows, pa.binary())
    keys = _bytes(batch.column("key") if "key" in names else nothing)
    values = _bytes(batch.column("value"))
    headers = np.zeros(batch.num_rows + 1, np.int64)
    header_keys = header_values = _bytes(nothing[:0])
    bounds = np.maximum(keys[1][:, 1], 0) + np.maximum(values[1][:, 1], 0) + _RECORD_OVERHEAD
    if "headers" in names:
        column = batch.column("headers")
        headers[1:] = np.cumsum(np.nan_to_num(column.value_lengths().fill_null(0)))
        pairs = column.flatten()  # drops the values behind nulls
        if pairs.null_count or pairs.field("key").null_count:
            raise BadOption("column headers has a header without a key")
        header_keys = _bytes(pairs.field("key"))
        header_values = _bytes(pairs.field("value"))
        sizes = np.zeros(len(pairs) + 1, np.int64)
        both = header_keys[1][:, 1] + np.maximum(header_values[1][:, 1], 0) + _HEADER_OVERHEAD
        np.cumsum(both, out=sizes[1:])
        bounds += sizes[headers[1:]] - sizes[headers[:-1]]
    return Rows(
        count=batch.num_rows,
        keys=keys,
        values=values,
        headers=headers,
        header_keys=header_keys,
        header_values=header_values,
        bounds=bounds,
        times_ms=_times(batch.column("timestamp")) if with_times else None,
    )


def places_of_rows(
    batch: pa.RecordBatch,
    rows: Rows,
    topic: str | None,
    partition_counts: Mapping[str, int],
    keyless: int,
) -> Iterator[tuple[Place, Any]]:
    """Yield each partition that gets rows, with the rows' numbers in order.

    A row goes to the partition in its column `partition`, else to that of its key, else to
    partition `keyless` modulo the number of partitions.
    """
    by_topic = [(topic, np.arange(rows.count))] if topic is not None else _by_topic(batch)
    chosen = np.full(rows.count, _NOBODY, np.int64)
    if "partition" in batch.schema.names:
        column = batch.column("partition")
        chosen = column.fill_null(_NOBODY).to_numpy(zero_copy_only=False).astype(np.int64)
        if (chosen[column.is_valid().to_numpy(zero_copy_only=False)] < 0).any():
            raise BadOption("column partition has a number below 0")
    for name, numbers in by_topic:
        count = partition_counts[name]
        of_topic = chosen[numbers]
        if len(of_topic) and of_topic.max() >= count:
            raise BadOption(
                f"column partition has {of_topic.max()}, but the last partition of topic {name} is "
                f"{count - 1}"
            )
        partitions_of_keys(rows.keys[0], rows.keys[1][numbers], count, of_topic)
        of_topic[of_topic == _NOBODY] = keyless % count
        order = np.argsort(of_topic, kind="stable")
        cuts = np.searchsorted(of_topic[order], np.arange(count + 1))
        for partition in range(count):
            found = order[cuts[partition] : cuts[partition + 1]]
            if len(found):
                yield (name, partition), numbers[found]


def topics_of(batch: pa.RecordBatch) -> list[str]:
    """Return the topics that the column `topic` names."""
    return [name for name, _ in _by_topic(batch)]


def encode(rows: Rows, numbers: Any, batch_bytes: int, now_ms: int) -> Iterator[EncodedRecords]:
    """Yield rows as records, in batches of about `batch_bytes` at most and at least one row."""
    ends = np.cumsum(rows.bounds[numbers])
    start = 0
    # Ends: each pass takes at least one row.
    while start < len(numbers):
        before = ends[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(ends, before + batch_bytes, side="right")))
        out = np.empty(int(ends[end - 1] - before), np.uint8)
        own = numbers[start:end]
        times = np.full(end - start, now_ms) if rows.times_ms is None else rows.times_ms[own]
        size = encode_rows(
            (own, times - times[0]),
            rows.keys,
            rows.values,
            rows.headers,
            rows.header_keys,
            rows.header_values,
            out,
        )
        yield EncodedRecords(
            data=out[:size].data,
            count=end - start,
            timestamp_ms=int(times[0]),
            timestamp_ms_max=int(times.max()),
        )
        start = end


def _times(column: pa.Array) -> Any:
    if column.null_count:
        raise BadOption("column timestamp is null in a row, but keepTimestamps is true")
    return column.cast(pa.timestamp("us")).cast(pa.int64()).to_numpy() // _MICROSECONDS


def _by_topic(batch: pa.RecordBatch) -> list[tuple[str, Any]]:
    column = batch.column("topic")
    if column.null_count:
        raise BadOption("column topic is null in a row: every record needs a topic")
    encoded = column.dictionary_encode()
    codes = encoded.indices.to_numpy()
    return [
        (name, np.flatnonzero(codes == code))
        for code, name in enumerate(encoded.dictionary.to_pylist())
    ]


def _bytes(column: pa.Array) -> tuple[Any, Any]:
    """Return a column's bytes, and start and length of each row's, -1 for null."""
    array = column.cast(pa.binary())
    _, offsets_buffer, data_buffer = array.buffers()
    places = np.zeros((len(array), 2), np.int64)
    if len(array):
        offsets = np.frombuffer(offsets_buffer, np.int32)[array.offset :][: len(array) + 1]
        places[:, 0] = offsets[:-1]
        places[:, 1] = np.diff(offsets)
        if array.null_count:
            places[array.is_null().to_numpy(zero_copy_only=False), 1] = -1
    is_empty = data_buffer is None or data_buffer.size == 0
    data = np.zeros(1, np.uint8) if is_empty else np.frombuffer(data_buffer, np.uint8)
    return data, places
