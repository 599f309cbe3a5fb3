"""Finds records by time, among those that a consumer may see.

The log finds batches by the maximum timestamp in their headers. Only the records show which of them
matches, and whether it is visible: records may have been deleted in the middle of a batch, and a
header may claim a time that no record has.
"""

from kafkaesque.log.segments import Segments
from kafkaesque.record.read import iterate_records
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset

BATCHES_DECODED_MAX = 100
"""After this many false header timestamps, headers are trusted; honest ones match at once."""

RECORDS_DECODED_MAX = 50_000
"""Per lookup: under a tenth of a second, during which no other request is served. A few kilobytes
on the wire can unpack to a million."""


def find_time(
    segments: Segments, timestamp_ms: int, first: Offset, end: Offset
) -> tuple[Offset, int] | None:
    """Return offset and time of the first record in [first, end) that is not earlier."""
    left = RECORDS_DECODED_MAX
    for _ in range(BATCHES_DECODED_MAX):
        batch = segments.find_time(timestamp_ms, first)
        if batch is None:
            return None
        view = BatchView(batch)
        if view.base_offset >= end:
            return None
        left -= view.record_count
        if left < 0:
            first = max(first, view.base_offset)
            break
        found = _first_record(view, timestamp_ms, first, end)
        if found is not None:
            return found
        first = view.end_offset
        if first >= end:
            return None
    # A too-early result is harmless: a consumer that starts here misses nothing.
    return first, timestamp_ms


def newest_time(segments: Segments, first: Offset, end: Offset) -> tuple[Offset, int] | None:
    """Return offset and time of the record with the greatest time, if it is in [first, end)."""
    batch = segments.newest_time(first)
    if batch is None:
        return None
    view = BatchView(batch)
    if view.record_count > RECORDS_DECODED_MAX:
        return max(first, view.base_offset), view.max_timestamp_ms
    return _first_record(view, view.max_timestamp_ms, first, end)


def _first_record(
    view: BatchView, timestamp_ms: int, first: Offset, end: Offset
) -> tuple[Offset, int] | None:
    for record in iterate_records(view):
        if record.timestamp_ms >= timestamp_ms and first <= record.offset < end:
            return record.offset, record.timestamp_ms
    return None
