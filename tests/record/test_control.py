import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from kafkaesque.record.build import BatchTraits, build_batch
from kafkaesque.record.control import Control, ControlType, build_control_batch, read_control
from kafkaesque.record.errors import MalformedBatch, UnsupportedBatch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView


def a_control_batch(kind: ControlType) -> BatchView:
    return BatchView(
        build_control_batch(
            kind=kind,
            producer_id=12,
            producer_epoch=3,
            coordinator_epoch=77,
            timestamp_ms=1000,
            base_offset=50,
            term=2,
        )
    )


def a_batch_of(key: str, value: str) -> BatchView:
    record = Record(offset=0, timestamp_ms=0, key=bytes.fromhex(key), value=bytes.fromhex(value))
    return BatchView(build_batch([record], traits=BatchTraits(is_control=True)))


@pytest.mark.parametrize("kind", ControlType)
def test_a_control_batch_says_how_the_transaction_ended(kind: ControlType) -> None:
    view = a_control_batch(kind)
    view.check()
    assert view.is_control
    assert view.is_transactional
    assert (view.base_offset, view.term, view.max_timestamp_ms) == (50, 2, 1000)
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (12, 3, -1)
    assert read_control(view) == Control(kind=kind, coordinator_epoch=77)


def test_aiokafka_reads_our_markers() -> None:
    for kind, marker in ((ControlType.ABORT, ABORT_MARKER), (ControlType.COMMIT, COMMIT_MARKER)):
        [record] = read_records(a_control_batch(kind))
        assert record.key is not None
        assert ControlRecord.parse(record.key) == marker


def test_the_record_has_kafkas_layout() -> None:
    [record] = read_records(a_control_batch(ControlType.COMMIT))
    assert record.key == bytes.fromhex("0000 0001")
    assert record.value == bytes.fromhex("0000 0000004d")


def test_a_later_version_may_have_more_fields() -> None:
    view = a_batch_of("00010001ff", "000100000005ff")
    assert read_control(view) == Control(kind=ControlType.COMMIT, coordinator_epoch=5)


def test_an_unknown_type_is_unsupported() -> None:
    with pytest.raises(UnsupportedBatch):
        read_control(a_batch_of("00000002", "000000000005"))


@pytest.mark.parametrize(
    ("key", "value"),
    [("", ""), ("000000", "000000000005"), ("00000001", "0000"), ("ffff0001", "000000000005")],
)
def test_a_truncated_marker_is_malformed(key: str, value: str) -> None:
    with pytest.raises(MalformedBatch):
        read_control(a_batch_of(key, value))


def test_an_ordinary_batch_is_not_a_marker() -> None:
    record = Record(offset=0, timestamp_ms=0, key=b"\0\0\0\1", value=b"\0\0\0\0\0\1")
    with pytest.raises(MalformedBatch):
        read_control(BatchView(build_batch([record])))


def test_a_marker_is_one_record() -> None:
    records = [Record(offset=at, timestamp_ms=0, key=b"\0\0\0\1", value=None) for at in range(2)]
    batch = build_batch(records, traits=BatchTraits(is_control=True))
    with pytest.raises(MalformedBatch):
        read_control(BatchView(batch))
