"""Which offsets of a piece of log a share group hands out, and which batches go with them."""

from kafkaesque.broker.queues.share_spans import Batches
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches
from tests.log.logs import START_MS


def batch(base: int, count: int = 1, *, producer: int | None = None) -> bytes:
    records = [
        Record(offset=base + place, timestamp_ms=START_MS, key=None, value=b"v")
        for place in range(count)
    ]
    if producer is None:
        return bytes(build_batch(records, base_offset=base))
    stamp = ProducerStamp(producer_id=producer, producer_epoch=0, base_sequence=0)
    traits = BatchTraits(is_transactional=True)
    return bytes(build_batch(records, base_offset=base, producer=stamp, traits=traits))


def marker(offset: int, producer: int, kind: ControlType) -> bytes:
    return bytes(
        build_control_batch(
            kind=kind,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=START_MS,
            base_offset=offset,
            term=1,
        )
    )


def read(*pieces: bytes, first: int = 0, aborted: tuple[tuple[int, int], ...] = ()) -> Batches:
    return Batches(memoryview(b"".join(pieces)), first, aborted)


def bases(data: memoryview) -> list[int]:
    return [view.base_offset for view in split_batches(data)]


def test_nothing_read_is_nothing() -> None:
    found = read(first=7)
    assert (found.spans, found.end) == ([], 7)


def test_a_read_within_a_batch_starts_there() -> None:
    found = read(batch(0, 5), batch(5, 2), first=3)
    assert found.spans == [(3, 4), (5, 6)]
    assert found.end == 7


def test_offsets_that_compaction_removed_are_in_no_span() -> None:
    found = read(batch(2, 2), batch(10, 3), first=0)
    assert found.spans == [(2, 3), (10, 12)]
    assert found.end == 13


def test_markers_are_no_records() -> None:
    found = read(
        batch(0, 2, producer=7),
        marker(2, 7, ControlType.COMMIT),
        batch(3),
        marker(4, 8, ControlType.ABORT),
    )
    assert found.spans == [(0, 1), (3, 3)]
    assert found.end == 5


def test_aborted_batches_are_left_out_up_to_their_marker() -> None:
    found = read(
        batch(0, 2, producer=7),
        batch(2, 1, producer=8),
        batch(3, 1, producer=7),
        marker(4, 7, ControlType.ABORT),
        batch(5, 2, producer=7),
        aborted=((7, 0),),
    )
    assert found.spans == [(2, 2), (5, 6)]
    assert found.end == 7


def test_a_read_within_an_aborted_transaction_leaves_the_rest_of_it_out() -> None:
    found = read(
        batch(3, 1, producer=7),
        marker(4, 7, ControlType.ABORT),
        batch(5),
        first=3,
        aborted=((7, 0),),
    )
    assert found.spans == [(5, 5)]


def test_a_cut_has_whole_batches_and_no_more_than_needed() -> None:
    found = read(batch(0, 3), batch(3, 3), batch(8, 2), batch(10))
    assert bases(found.cut(4, 4)) == [3]
    assert bases(found.cut(2, 3)) == [0, 3]
    assert bases(found.cut(5, 8)) == [3, 8]
    assert bases(found.cut(0, 10)) == [0, 3, 8, 10]
