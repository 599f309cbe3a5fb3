"""One task's work: fetches a range of offsets from its leader and yields Arrow batches."""

from collections.abc import Iterator

import pyarrow as pa

from kafkaesque.client.admin import Admin
from kafkaesque.client.batches import Fetched
from kafkaesque.client.errors import Refused
from kafkaesque.client.topics import EARLIEST
from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.view import BatchView
from kafkaesque.spark.clients import admin_of
from kafkaesque.spark.decode import Decoder, Target, chunks
from kafkaesque.spark.options import ReadOptions
from kafkaesque.spark.ranges import OffsetRange, report_loss
from kafkaesque.types import Offset

_WAIT_MS = 500
_EMPTY_FETCHES_MAX = 20
"""Consecutive empty responses before records count as lost: elections take some seconds."""

_OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"


def read_range(
    options: ReadOptions, part: OffsetRange, columns: tuple[str, ...]
) -> Iterator[pa.RecordBatch]:
    """Yield the records of the range, in order.

    Raises DataLost if some are gone, unless the options say to continue.
    """
    admin = admin_of(options.cluster)
    target = Target(
        topic=part.topic,
        partition=part.partition,
        first=part.start,
        end=part.end,
        columns=columns,
    )
    decoder = Decoder(target)
    limits = RecordLimits()
    offset = part.start
    empty = 0
    # Ends: each pass advances the offset, or counts an empty response.
    while offset < part.end:
        fetched = _fetch(admin, options, part, offset)
        if fetched is None:
            offset = _skip_lost(admin, options, part, offset)
            decoder.skip_to(offset)
            continue
        if not fetched.batches:
            empty += 1
            if empty > _EMPTY_FETCHES_MAX:
                report_loss(options, f"{_where(part)} no longer has offset {offset}")
                return
            continue
        empty = 0
        offset = fetched.batches[-1].end_offset
        for group in chunks(_committed(fetched, part.end, options), limits):
            rows = decoder.decode(group)
            if rows.num_rows:
                yield rows


def _fetch(admin: Admin, options: ReadOptions, part: OffsetRange, offset: Offset) -> Fetched | None:
    """Return the records at an offset; None if the partition now ends before it."""
    try:
        return admin.batches.fetch(
            part.topic,
            part.partition,
            offset,
            wait_ms=_WAIT_MS,
            is_committed=options.is_committed,
        )
    except Refused as error:
        if error.code != _OUT_OF_RANGE:
            raise
        return None


def _skip_lost(admin: Admin, options: ReadOptions, part: OffsetRange, offset: Offset) -> Offset:
    place = (part.topic, part.partition)
    first = admin.topics.offsets([place], EARLIEST)[place]
    report_loss(options, f"{_where(part)} has lost offset {offset}; it starts at {first}")
    return first if first > offset else part.end


def _committed(fetched: Fetched, end: Offset, options: ReadOptions) -> Iterator[BatchView]:
    aborted = AbortedBatches(
        (one.producer_id, one.first_offset) for one in fetched.aborted if options.is_committed
    )
    for batch in fetched.batches:
        if batch.base_offset >= end:
            return
        if not aborted.leaves_out(batch):
            yield batch


def _where(part: OffsetRange) -> str:
    return f"partition {part.partition} of topic {part.topic}"
