"""Which marker ends an aborted transaction; other cases are in the readers' own tests."""

from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView

ABORT = bytes.fromhex("00000000")
OTHER = bytes.fromhex("00000063")


def a_batch(offset: int, mark: bytes | None = None) -> BatchView:
    """A batch of producer 1 in a transaction, with a key for a marker."""
    value = b"v" if mark is None else bytes(6)
    return BatchView(
        build_batch(
            [Record(offset=offset, timestamp_ms=0, key=mark, value=value)],
            producer=ProducerStamp(producer_id=1, producer_epoch=0, base_sequence=0),
            traits=BatchTraits(is_transactional=True, is_control=mark is not None),
        )
    )


def test_another_control_record_ends_no_aborted_transaction() -> None:
    aborted = AbortedBatches([(1, 0)])
    batches = [a_batch(0), a_batch(1, OTHER), a_batch(2), a_batch(3, ABORT), a_batch(4)]
    kept = [batch.base_offset for batch in batches if not aborted.leaves_out(batch)]
    assert kept == [4]
