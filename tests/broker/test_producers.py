"""Sequences: what is new, what is a duplicate, and what is refused."""

import pytest

from kafkaesque.ages import Ages
from kafkaesque.broker.partition.partition_errors import (
    OutOfOrderSequence,
    SequenceReused,
    StaleProducerEpoch,
)
from kafkaesque.broker.partition.producers import BATCHES_REMEMBERED, Producers
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import NewerFormat
from kafkaesque.machines.transactions.transaction_commands import Producer
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.errors import MalformedBatch
from kafkaesque.record.view import BatchView
from tests.broker.partitions import PRODUCER, build, numbered
from tests.broker.transactional import transactional

LAST = (1 << 31) - 1
NOW_MS = 1_700_000_000_000


def view(
    sequence: int, count: int = 1, *, producer_id: int = PRODUCER, epoch: int = 0
) -> BatchView:
    values = [b"x"] * count
    return BatchView(numbered(sequence, *values, producer_id=producer_id, epoch=epoch))


def written(sequence: int, count: int = 1) -> BatchView:
    """A batch of a transaction."""
    return BatchView(transactional(sequence, *[b"x"] * count, producer=Producer(PRODUCER, 0)))


class Log:
    """Producer state that sees every accepted batch, at dense offsets."""

    def __init__(self, config: ProducerConfig | None = None) -> None:
        self.config = config or ProducerConfig()
        self.producers = Producers(self.config)
        self.end = 0
        self.now_ms = NOW_MS

    def send(self, batch: BatchView) -> int:
        """Append a batch unless it is a duplicate; return its offset."""
        repeated = self.producers.check(batch)
        if repeated is not None:
            return repeated.base_offset
        offset = self.end
        self.end += batch.last_offset_delta + 1
        self.producers.apply(batch, offset, self.now_ms)
        return offset

    def end_transaction(self, kind: ControlType, epoch: int = 0) -> None:
        """Append a marker."""
        marker = build_control_batch(
            kind=kind,
            producer_id=PRODUCER,
            producer_epoch=epoch,
            coordinator_epoch=1,
            timestamp_ms=self.now_ms,
            base_offset=self.end,
            term=1,
        )
        self.producers.apply(BatchView(marker), self.end, self.now_ms)
        self.end += 1

    def restart(self) -> None:
        """Continue with what is on disk."""
        state = self.producers.state()
        self.producers = Producers.from_state(state, self.config, self.now_ms)


def test_batches_in_sequence_are_accepted() -> None:
    log = Log()
    assert [log.send(view(0, 3)), log.send(view(3)), log.send(view(4, 2))] == [0, 3, 4]


def test_a_duplicate_batch_gets_its_first_offset_and_is_not_appended() -> None:
    log = Log()
    offsets = [log.send(view(sequence)) for sequence in range(BATCHES_REMEMBERED)]
    assert [log.send(view(sequence)) for sequence in range(BATCHES_REMEMBERED)] == offsets
    assert log.end == BATCHES_REMEMBERED


def test_a_batch_no_longer_remembered_is_not_called_a_duplicate() -> None:
    log = Log()
    for sequence in range(BATCHES_REMEMBERED + 1):
        log.send(view(sequence))
    with pytest.raises(OutOfOrderSequence):
        log.send(view(0))
    assert log.send(view(1)) == 1


@pytest.mark.parametrize(("base", "count"), [(0, 1), (1, 1), (1, 2), (2, 2), (0, 3)])
def test_only_an_equal_batch_is_a_duplicate(base: int, count: int) -> None:
    log = Log()
    log.send(view(0, 2))
    log.send(view(2))
    with pytest.raises(OutOfOrderSequence, match="3 comes next"):
        log.send(view(base, count))
    assert [log.send(view(2)), log.send(view(3))] == [2, 3]


def test_a_duplicate_in_an_open_transaction_is_recognized() -> None:
    log = Log()
    assert [log.send(written(0, 2)), log.send(written(2))] == [0, 2]
    assert [log.send(written(0, 2)), log.send(written(2))] == [0, 2]


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("kind", ControlType)
def test_sequences_of_an_ended_transaction_cannot_be_reused(
    kind: ControlType, count: int, *, is_open: bool
) -> None:
    # The client lost the answer, gave the batch up and aborted: these are other records.
    log = Log()
    log.send(written(0, 5))
    log.send(written(5, 2))
    log.end_transaction(kind)
    if is_open:
        assert log.send(written(7)) == 8
    for _ in range(2):
        with pytest.raises(SequenceReused):
            log.send(written(5, count))
        log.restart()
    assert log.send(written(8 if is_open else 7)) == (9 if is_open else 8)


def test_a_gap_within_a_transaction_is_refused() -> None:
    log = Log()
    log.send(written(0, 2))
    with pytest.raises(OutOfOrderSequence):
        log.send(written(3))


def test_reused_sequences_are_distinguished_from_a_gap_at_the_wrap_around() -> None:
    log = Log()
    log.send(written(LAST - 1, 4))
    log.end_transaction(ControlType.ABORT)
    with pytest.raises(SequenceReused):
        log.send(written(LAST))
    with pytest.raises(OutOfOrderSequence):
        log.send(written(3))
    assert log.send(written(2)) == 5


def test_a_batch_after_a_gap_is_refused() -> None:
    log = Log()
    log.send(view(0, 2))
    with pytest.raises(OutOfOrderSequence, match="sent sequence 3, 2 comes next"):
        log.send(view(3))
    assert log.send(view(2)) == 2


def test_a_batch_that_overlaps_the_last_one_is_refused() -> None:
    log = Log()
    log.send(view(0, 2))
    with pytest.raises(OutOfOrderSequence):
        log.send(view(1, 2))


def test_a_batch_older_than_all_remembered_ones_is_not_called_a_duplicate() -> None:
    # Clients treat "duplicate" as success: it must not be answered for records that may be lost.
    log = Log()
    log.send(view(10))
    with pytest.raises(OutOfOrderSequence):
        log.send(view(9))


def test_an_unknown_producer_may_start_at_any_sequence() -> None:
    log = Log()
    assert log.send(view(41)) == 0
    assert log.send(view(42)) == 1


@pytest.mark.parametrize("count", [1, 4])
def test_sequences_wrap_around_to_zero(count: int) -> None:
    log = Log()
    log.send(view(LAST - 1, 2))
    assert log.send(view(0, count)) == 2
    assert log.send(view(LAST - 1, 2)) == 0


def test_a_batch_may_span_the_wrap_around() -> None:
    log = Log()
    log.send(view(LAST, 3))
    assert log.send(view(2)) == 3
    assert log.send(view(LAST, 3)) == 0
    with pytest.raises(OutOfOrderSequence):
        log.send(view(4))


def test_a_newer_epoch_starts_at_zero() -> None:
    log = Log()
    log.send(view(0, 5))
    with pytest.raises(OutOfOrderSequence):
        log.send(view(5, epoch=1))
    assert log.send(view(0, epoch=1)) == 5


def test_an_older_epoch_is_refused() -> None:
    log = Log()
    log.send(view(0, epoch=3))
    with pytest.raises(StaleProducerEpoch):
        log.send(view(1, epoch=2))


def test_batches_of_an_earlier_epoch_are_not_duplicates() -> None:
    log = Log()
    log.send(view(0))
    assert log.send(view(0, epoch=1)) == 1


def test_producers_do_not_affect_each_other() -> None:
    log = Log()
    assert [log.send(view(0, producer_id=number)) for number in range(4)] == [0, 1, 2, 3]
    assert [log.send(view(0, producer_id=number)) for number in range(4)] == [0, 1, 2, 3]


def test_batches_without_a_producer_are_all_new() -> None:
    log = Log()
    batch = BatchView(build(b"a"))
    assert [log.send(batch), log.send(batch)] == [0, 1]
    assert len(log.producers) == 0


@pytest.mark.parametrize(("producer_id", "epoch", "sequence"), [(-2, 0, 0), (1, -1, 0), (1, 0, -1)])
def test_negative_numbers_are_refused(producer_id: int, epoch: int, sequence: int) -> None:
    with pytest.raises(MalformedBatch):
        Log().send(view(sequence, producer_id=producer_id, epoch=epoch))


def test_a_control_batch_has_no_sequence() -> None:
    log = Log()
    log.send(view(0))
    log.producers.apply(view(-1), 1, NOW_MS)
    assert log.send(view(1)) == 1


def test_an_idle_producer_is_forgotten() -> None:
    log = Log(ProducerConfig(expiration_ms=1000))
    log.send(view(0, producer_id=1))
    log.now_ms += 600
    log.send(view(0, producer_id=2))
    log.producers.expire(Ages(now_ms=log.now_ms + 600))
    assert len(log.producers) == 1
    assert log.send(view(0, producer_id=2)) == 1


def test_a_timestamp_in_the_future_does_not_keep_a_producer_alive() -> None:
    log = Log(ProducerConfig(expiration_ms=1000))
    log.send(BatchView(numbered(0, at_ms=1 << 60)))
    log.producers.expire(Ages(now_ms=NOW_MS + 1001))
    assert len(log.producers) == 0


def test_a_flood_of_producers_evicts_those_idle_longest() -> None:
    log = Log(ProducerConfig(producers_max=100))
    log.send(view(0, producer_id=1))
    for number in range(1000, 1099):
        log.send(view(0, producer_id=number))
    log.send(view(1, producer_id=1))
    for number in range(2000, 2099):
        log.send(view(0, producer_id=number))
    assert len(log.producers) == 100
    assert log.send(view(1, producer_id=1)) == 100


def test_the_state_is_restored_completely() -> None:
    log = Log()
    for sequence in range(8):
        log.send(view(sequence))
    log.send(view(0, 2, producer_id=9, epoch=4))
    state = log.producers.state()
    log.producers = Producers.from_state(state, log.config, NOW_MS)
    assert log.producers.state() == state
    assert [log.send(view(4)), log.send(view(8)), log.send(view(0, 2, producer_id=9, epoch=4))] == [
        4,
        10,
        8,
    ]


@pytest.mark.parametrize("first", [0, LAST - 6], ids=["low", "around the wrap"])
def test_the_restored_batches_are_enough_to_check_sequences(first: int) -> None:
    """Neither the last sequence nor a marker's position is stored: both follow from the batches."""

    def of_two(number: int) -> BatchView:
        return written((first + 2 * number) & LAST, 2)

    log = Log()
    for number in range(3):
        log.send(of_two(number))
    log.end_transaction(ControlType.COMMIT)
    log.restart()
    with pytest.raises(SequenceReused):
        log.send(of_two(2))  # the newest batch, from before the marker
    for number in range(3, 3 + BATCHES_REMEMBERED):
        log.send(of_two(number))
        log.restart()
    repeated = [log.send(of_two(number)) for number in range(3, 3 + BATCHES_REMEMBERED)]
    assert repeated == [7, 9, 11, 13, 15]
    with pytest.raises(SequenceReused):
        log.send(of_two(2))
    with pytest.raises(OutOfOrderSequence):
        log.send(of_two(9))
    assert log.send(of_two(8)) == 17


def test_a_raised_epoch_without_batches_starts_at_zero_also_after_a_restart() -> None:
    log = Log()
    log.send(written(0, 2))
    log.end_transaction(ControlType.ABORT, epoch=1)
    log.restart()
    with pytest.raises(OutOfOrderSequence):
        log.send(view(2, epoch=1))
    assert log.send(view(0, epoch=1)) == 3


def test_the_state_has_the_documented_format() -> None:
    log = Log()
    log.end = 70
    log.send(view(5, 2, epoch=1))
    wanted = "02 00000001 0000000000000007 0001 0000018bcfe56800 00000000 01"
    wanted += "00000005 00000006 0000000000000046 0000018bcfe56800"
    wanted += "ffffffff ffffffffffffffff 00000000"
    assert log.producers.state() == bytes.fromhex(wanted)


def test_a_state_written_before_the_clock_was_set_back_still_expires() -> None:
    log = Log()
    log.now_ms = NOW_MS + 10**12
    log.send(view(0))
    back = Producers.from_state(log.producers.state(), ProducerConfig(expiration_ms=10), NOW_MS)
    back.expire(Ages(now_ms=NOW_MS + 11))
    assert len(back) == 0


def test_a_state_of_a_later_version_is_refused() -> None:
    with pytest.raises(NewerFormat):
        Producers.from_state(b"\x03\x00\x00\x00\x00", ProducerConfig(), NOW_MS)


def test_a_state_from_before_transactions_can_be_read() -> None:
    old = "01 00000001 0000000000000007 0001 0000018bcfe56800 00000002 01"
    old += "00000005 00000006 0000000000000046 0000018bcfe56800"
    log = Log()
    log.producers = Producers.from_state(bytes.fromhex(old), log.config, NOW_MS)
    log.end = 72
    assert log.send(view(5, 2, epoch=1)) == 70
    assert log.send(view(7, epoch=1)) == 72
    assert log.producers.transactions.open_count == 0
