"""Aborted records are not restored."""

import pytest

from kafkaesque.backup.committed import committed
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.wire.messages.fetch import AbortedTransaction

pytestmark = pytest.mark.requirement("LOG-5")


def data(offset: int, producer: int, *, transactional: bool = True) -> BatchView:
    records = [Record(offset=offset, timestamp_ms=0, key=None, value=b"v")]
    stamp = ProducerStamp(producer_id=producer, producer_epoch=0, base_sequence=0)
    traits = BatchTraits(is_transactional=transactional)
    return BatchView(build_batch(records, producer=stamp, traits=traits))


def end(offset: int, producer: int, kind: ControlType) -> BatchView:
    batch = build_control_batch(
        kind=kind,
        producer_id=producer,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=0,
        base_offset=offset,
        term=1,
    )
    return BatchView(batch)


def offsets(batches: list[BatchView], *aborted: tuple[int, int]) -> list[int]:
    rows = [AbortedTransaction(producer_id=who, first_offset=where) for who, where in aborted]
    return [view.base_offset for view in committed(batches, rows)]


def test_an_aborted_transaction_and_its_marker_are_left_out() -> None:
    batches = [data(0, 1), data(1, 1), end(2, 1, ControlType.ABORT), data(3, 1)]
    assert offsets(batches, (1, 0)) == [3]


def test_a_committed_transaction_stays_and_its_marker_is_left_out() -> None:
    assert offsets([data(0, 1), end(1, 1, ControlType.COMMIT)]) == [0]


def test_interleaved_producers_are_kept_apart() -> None:
    batches = [
        data(0, 1),
        data(1, 2),
        data(2, 1),
        end(3, 1, ControlType.ABORT),
        data(4, 2),
        end(5, 2, ControlType.COMMIT),
    ]
    assert offsets(batches, (1, 0)) == [1, 4]


def test_records_outside_transactions_of_the_same_producer_stay() -> None:
    batches = [data(0, 1, transactional=False), data(1, 1), end(2, 1, ControlType.ABORT)]
    assert offsets(batches, (1, 0)) == [0]


def test_a_producer_that_aborts_twice_loses_both() -> None:
    batches = [
        data(0, 1),
        end(1, 1, ControlType.ABORT),
        data(2, 1),
        end(3, 1, ControlType.COMMIT),
        data(4, 1),
        end(5, 1, ControlType.ABORT),
    ]
    assert offsets(batches, (1, 4), (1, 0)) == [2]


def test_a_transaction_that_began_before_the_fetched_range_is_left_out() -> None:
    assert offsets([data(7, 1), end(8, 1, ControlType.ABORT)], (1, 3)) == []
