import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.build import BatchTraits, build_batch
from kafkaesque.record.errors import MalformedBatch, OversizedBatch, UnsupportedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES, BatchView, Codec
from tests.record.builders import GOLDEN, GOLDEN_RECORDS, record_lists, with_field, with_payload

REFUSALS = (MalformedBatch, OversizedBatch, UnsupportedBatch)
TINY = RecordLimits(decompressed_bytes_max=1 << 16, decompression_always_bytes=1 << 16)


def records_in(batch: bytes | bytearray) -> list[Record]:
    return read_records(BatchView(batch))


def test_the_golden_batch_is_read() -> None:
    assert records_in(GOLDEN) == GOLDEN_RECORDS


def test_with_append_time_every_record_has_the_newest_timestamp() -> None:
    batch = build_batch(GOLDEN_RECORDS, traits=BatchTraits(is_log_append_time=True))
    assert {record.timestamp_ms for record in records_in(batch)} == {1_700_000_000_100}


def read_or_refused(batch: bytes | bytearray) -> None:
    """Check that there are as many damaged records as the header says, or one of our errors."""
    try:
        view = BatchView(batch)
        records = read_records(view, TINY)
    except REFUSALS as refused:
        assert str(refused)
    else:
        assert len(records) == view.record_count


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("position", range(23))
def test_any_value_of_any_byte_of_the_records_is_read_or_refused(
    codec: Codec, position: int
) -> None:
    good = build_batch(GOLDEN_RECORDS, codec=codec)
    position += HEADER_BYTES
    for byte in range(256):
        good[position] = byte
        read_or_refused(good)


@pytest.mark.parametrize("codec", Codec)
def test_truncated_records_are_malformed(codec: Codec) -> None:
    payload = bytes(build_batch(GOLDEN_RECORDS, codec=codec)[HEADER_BYTES:])
    header = build_batch(GOLDEN_RECORDS, codec=codec)[:HEADER_BYTES]
    for size in range(len(payload)):
        with pytest.raises(MalformedBatch):
            records_in(with_payload(header, payload[:size]))


@given(
    records=record_lists(),
    codec=st.sampled_from(Codec),
    changes=st.lists(st.tuples(st.integers(17, 1 << 12), st.integers(0, 255)), max_size=6),
)
def test_damage_anywhere_is_read_or_refused(
    records: list[Record], codec: Codec, changes: list[tuple[int, int]]
) -> None:
    batch = build_batch(records, codec=codec)
    for position, byte in changes:
        batch[max(17, position % len(batch))] = byte
    read_or_refused(batch)


@given(payload=st.binary(max_size=200), attributes=st.integers(0, 7), count=st.integers(-1, 9))
def test_arbitrary_bytes_are_read_or_refused(payload: bytes, attributes: int, count: int) -> None:
    batch = with_field(with_payload(GOLDEN, payload), "attributes", attributes)
    read_or_refused(with_field(batch, "record_count", count))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record_count", -1),
        ("record_count", 0),
        ("record_count", 1),
        ("record_count", 3),
        ("record_count", (1 << 31) - 1),
        ("last_offset_delta", -1),
        ("last_offset_delta", 0),
        ("base_timestamp_ms", (1 << 63) - 1),
    ],
)
def test_a_header_that_contradicts_the_records_is_malformed(field: str, value: int) -> None:
    with pytest.raises(MalformedBatch):
        records_in(with_field(GOLDEN, field, value))


def test_a_negative_count_is_malformed_even_without_records() -> None:
    with pytest.raises(MalformedBatch):
        records_in(with_field(with_payload(GOLDEN, b""), "record_count", -1))


def test_a_count_that_does_not_fit_the_bytes_is_refused_before_reading() -> None:
    batch = with_field(GOLDEN, "last_offset_delta", 999)
    with pytest.raises(MalformedBatch, match="1000 records do not fit in 23 bytes"):
        records_in(with_field(batch, "record_count", 1000))


def test_an_unknown_codec_is_unsupported() -> None:
    with pytest.raises(UnsupportedBatch):
        records_in(with_field(GOLDEN, "attributes", 7))


@pytest.mark.parametrize(
    ("what", "payload"),
    [
        ("a length that is negative", "01 00 00 00 01 01 00"),
        ("a length that is too small", "0a 00 00 00 01 01 00"),
        ("a length that is too large", "0e 00 00 00 01 01 00"),
        ("a byte after the last record", "0c 00 00 00 01 01 00 00"),
        ("a key of -2 bytes", "0c 00 00 00 03 01 00"),
        ("a value of -2 bytes", "0c 00 00 00 01 03 00"),
        ("a value longer than the batch", "0c 00 00 00 01 7e 00"),
        ("-1 headers", "0c 00 00 00 01 01 01"),
        ("more headers than bytes", "0c 00 00 00 01 01 7e"),
        ("a header without key", "10 00 00 00 01 01 02 01 01"),
        ("a header's value of -2 bytes", "10 00 00 00 01 01 02 00 03"),
        ("a header's key that is no UTF-8", "12 00 00 00 01 01 02 02 ff 01"),
        ("a header's key that ends inside a character", "12 00 00 00 01 01 02 02 c3 01"),
        ("a header's value beyond the end", "12 00 00 00 01 01 02 00 04 61"),
        ("an offset delta of -1", "0c 00 00 01 01 01 00"),
        ("an offset delta after the last", "0c 00 00 04 01 01 00"),
    ],
)
def test_a_record_with_a_false_length_is_malformed(what: str, payload: str) -> None:
    batch = with_field(with_payload(GOLDEN, bytes.fromhex(payload)), "record_count", 1)
    with pytest.raises(MalformedBatch):
        records_in(batch)


@pytest.mark.parametrize("deltas", ["0000", "0200", "0202"])
def test_decreasing_offsets_are_malformed(deltas: str) -> None:
    payload = "".join(f"0c0000{deltas[at : at + 2]}010100" for at in (0, 2))
    with pytest.raises(MalformedBatch, match="cannot follow"):
        records_in(with_payload(GOLDEN, bytes.fromhex(payload)))


def test_a_compacted_batch_may_have_fewer_records_than_offsets() -> None:
    payload = bytes.fromhex("0c 00 00 02 01 01 00")
    batch = with_field(with_payload(GOLDEN, payload), "record_count", 1)
    assert [record.offset for record in records_in(batch)] == [1001]


def test_unknown_attributes_of_a_record_are_ignored() -> None:
    payload = bytes.fromhex("0c ff 00 00 01 01 00")
    batch = with_field(with_payload(GOLDEN, payload), "record_count", 1)
    assert len(records_in(batch)) == 1


def test_more_records_than_the_limit_are_refused() -> None:
    view = BatchView(GOLDEN)
    assert len(read_records(view, RecordLimits(records_max=2))) == 2
    with pytest.raises(OversizedBatch):
        read_records(view, RecordLimits(records_max=1))


def test_headers_count_against_one_limit_for_the_whole_batch() -> None:
    records = [
        Record(offset=at, timestamp_ms=0, key=None, value=None, headers=(("h", None),) * 3)
        for at in range(3)
    ]
    view = BatchView(build_batch(records))
    assert read_records(view, RecordLimits(headers_max=9)) == records
    with pytest.raises(OversizedBatch):
        read_records(view, RecordLimits(headers_max=8))
