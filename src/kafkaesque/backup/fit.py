"""Adapts saved batches so that they can be produced again.

Most keep their records byte for byte and get another producer in the header. A batch is repacked if
a broker would not take it from a producer, or if not all of it is wanted:

- compaction removed records, so its offsets have gaps;
- it starts before the first kept offset, or ends after the last saved one;
- its timestamps are the broker's: the records then get that time, as all readers saw it.

A batch's sequence is the new offset of its first record. So the same batch has the same sequence in
every attempt, and the broker drops what a failed attempt has already written.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kafkaesque.client.producers import ProducerIdentity
from kafkaesque.record.build import ProducerStamp, build_batch, readdress_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.types import Buffer, Offset

SEQUENCES = 1 << 31
"""Sequences wrap around here."""


def kept_count(view: BatchView, start: Offset, end: Offset) -> int:
    """Return how many records of a batch are in the range; only edge batches are decoded."""
    if start <= view.base_offset and view.end_offset <= end:
        return view.record_count
    return len(_kept(view, start, end))


def fit(
    view: BatchView, start: Offset, end: Offset, producer: ProducerIdentity, new_offset: Offset
) -> Buffer:
    """Return the batch to produce, with the records from `start` to before `end`.

    There must be at least one. Raises BatchError for records that cannot be decoded.
    """
    stamp = ProducerStamp(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=new_offset % SEQUENCES,
    )
    is_whole = start <= view.base_offset and view.end_offset <= end
    is_dense = view.record_count == view.last_offset_delta + 1
    if is_whole and is_dense and not view.is_log_append_time:
        return readdress_batch(view, stamp)
    records = [
        replace(record, offset=number) for number, record in enumerate(_kept(view, start, end))
    ]
    return build_batch(records, codec=view.codec, producer=stamp)


def translate(
    batches: Iterable[BatchView], start: Offset, end: Offset, positions: Iterable[Offset]
) -> dict[Offset, Offset]:
    """Return for each position its offset after a restore, before the same records.

    That is the number of records before it. A position in a gap moves to the next record.
    """
    found: dict[Offset, Offset] = {}
    waiting = sorted(set(positions), reverse=True)
    count = 0
    for view in batches:
        while waiting and waiting[-1] <= view.base_offset:
            found[waiting.pop()] = count
        while waiting and waiting[-1] < view.end_offset:
            position = waiting.pop()
            found[position] = count + _count_before(view, start, end, position)
        if not waiting:
            return found
        count += kept_count(view, start, end)
    return found | dict.fromkeys(waiting, count)


def pieces(
    batches: Iterable[BatchView], start: Offset, end: Offset
) -> Iterator[tuple[BatchView, Offset, int]]:
    """Yield each batch with records to restore, its new offset and their number."""
    new_offset = 0
    for view in batches:
        count = kept_count(view, start, end)
        if count:
            yield view, new_offset, count
            new_offset += count


def _count_before(view: BatchView, start: Offset, end: Offset, position: Offset) -> int:
    is_dense = view.record_count == view.last_offset_delta + 1
    if is_dense and start <= view.base_offset:
        return min(position, end) - view.base_offset
    return sum(record.offset < position for record in _kept(view, start, end))


def _kept(view: BatchView, start: Offset, end: Offset) -> list[Record]:
    return [record for record in read_records(view) if start <= record.offset < end]
