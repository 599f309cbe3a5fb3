"""How a topic's settings change a batch: only its header, unless a setting needs more."""

import pytest

from kafkaesque.broker.partition.admission import Admission
from kafkaesque.broker.partition.partition_errors import BatchTooLarge, RecordsRefused, TimeRefused
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.crc import crc32c
from kafkaesque.record.errors import CorruptBatch, MalformedBatch, OversizedBatch, UnsupportedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES, BatchView, Codec
from kafkaesque.topic_settings import resolve

NOW_MS = 1_800_000_000_000
STAMP = ProducerStamp(producer_id=7, producer_epoch=1, base_sequence=5)
RECORDS = [
    Record(offset=0, timestamp_ms=5, key=b"a", value=b"x" * 100),
    Record(offset=1, timestamp_ms=9, key=b"b", value=None, headers=(("h", b"v"),)),
]


def a_batch(
    codec: Codec = Codec.NONE, traits: BatchTraits | None = None, records: list[Record] = RECORDS
) -> bytes:
    traits = traits or BatchTraits()
    return bytes(build_batch(records, codec=codec, producer=STAMP, traits=traits))


def admitted(
    batch: bytes | bytearray, limits: RecordLimits | None = None, **overrides: str
) -> BatchView:
    """Check and prepare a batch for a topic with these settings, written with `_` for dots."""
    settings = resolve({name.replace("_", "."): text for name, text in overrides.items()})
    admission = Admission(settings, limits)
    return admission.prepare(admission.check(memoryview(batch)), NOW_MS)


def test_by_default_a_batch_stays_as_it_is_and_can_be_stamped() -> None:
    batch = a_batch(Codec.ZSTD)
    view = admitted(batch)
    assert view.data == batch
    assert not view.data.readonly


def test_a_writable_batch_is_not_copied() -> None:
    batch = bytearray(a_batch())
    view = admitted(batch)
    view.data[0] = 0x7F
    assert batch[0] == 0x7F


def test_records_are_only_decoded_when_a_setting_needs_it() -> None:
    batch = build_batch(RECORDS)
    batch[HEADER_BYTES:] = bytes(len(batch) - HEADER_BYTES)
    sealed = bytearray(batch)
    sealed[17:21] = _checksum(sealed)
    assert admitted(bytes(sealed)).data == sealed
    with pytest.raises(MalformedBatch):
        admitted(bytes(sealed), cleanup_policy="compact")


def _checksum(batch: bytearray) -> bytes:
    return crc32c(memoryview(batch)[21:]).to_bytes(4, "big")


@pytest.mark.parametrize("extra", [b"\0", a_batch()])
def test_anything_after_the_batch_is_refused(extra: bytes) -> None:
    with pytest.raises(MalformedBatch, match="one batch"):
        admitted(a_batch() + extra)


@pytest.mark.setting("max.message.bytes")
def test_a_batch_larger_than_the_topics_limit_is_refused() -> None:
    batch = a_batch()
    assert admitted(batch, max_message_bytes=str(len(batch))).data == batch
    with pytest.raises(BatchTooLarge):
        admitted(batch, max_message_bytes=str(len(batch) - 1))


def test_a_damaged_batch_is_refused() -> None:
    batch = bytearray(a_batch())
    batch[-1] ^= 1
    with pytest.raises(CorruptBatch):
        admitted(batch)


def test_an_old_format_is_refused() -> None:
    batch = bytearray(a_batch())
    batch[16] = 1
    with pytest.raises(UnsupportedBatch):
        admitted(batch)


def test_a_recompressed_transactional_batch_stays_transactional() -> None:
    view = admitted(a_batch(traits=BatchTraits(is_transactional=True)), compression_type="gzip")
    assert view.is_transactional
    assert view.codec is Codec.GZIP


@pytest.mark.parametrize(
    "traits",
    [
        BatchTraits(is_control=True),
        BatchTraits(is_control=True, is_transactional=True),
        BatchTraits(is_log_append_time=True),
    ],
)
def test_batches_that_only_brokers_may_write_are_refused(traits: BatchTraits) -> None:
    with pytest.raises(MalformedBatch, match="only a broker"):
        admitted(a_batch(traits=traits))


@pytest.mark.setting("message.timestamp.type")
@pytest.mark.parametrize("codec", Codec)
def test_log_append_time_replaces_the_producers_timestamps(codec: Codec) -> None:
    view = admitted(a_batch(codec), message_timestamp_type="LogAppendTime")
    view.check()
    assert view.codec is codec
    assert view.max_timestamp_ms == NOW_MS
    assert [record.timestamp_ms for record in read_records(view)] == [NOW_MS, NOW_MS]
    assert [record.value for record in read_records(view)] == [r.value for r in RECORDS]


@pytest.mark.setting("compression.type")
@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_with_the_topics_codec(codec: Codec, wanted: str) -> None:
    batch = a_batch(codec)
    view = admitted(batch, compression_type=wanted)
    view.check()
    assert view.codec is Codec["NONE" if wanted == "uncompressed" else wanted.upper()]
    assert read_records(view) == RECORDS
    assert (view.producer_id, view.producer_epoch, view.base_sequence) == (7, 1, 5)
    if view.codec is codec:
        assert view.data == batch


@pytest.mark.setting("compression.gzip.level", "compression.lz4.level", "compression.zstd.level")
@pytest.mark.parametrize(
    ("wanted", "fast", "small"), [("gzip", 1, 9), ("lz4", 9, 12), ("zstd", -5, 19)]
)
def test_a_topic_sets_its_compression_level(wanted: str, fast: int, small: int) -> None:
    text = b"".join(b'{"id":%d,"at":%d}' % (one, one * 7919 % 1_000) for one in range(2_000))
    batch = a_batch(records=[Record(offset=0, timestamp_ms=5, key=b"a", value=text)])

    def packed(level: int) -> BatchView:
        codec = {"compression.type": wanted, f"compression.{wanted}.level": str(level)}
        admission = Admission(resolve(codec))
        return admission.prepare(admission.check(memoryview(batch)), NOW_MS)

    assert packed(small).size < packed(fast).size
    assert read_records(packed(small)) == read_records(packed(fast))


def test_a_batch_that_decompression_enlarges_is_checked_against_the_limit() -> None:
    record = Record(offset=0, timestamp_ms=0, key=None, value=bytes(100_000))
    batch = a_batch(Codec.GZIP, records=[record])
    with pytest.raises(BatchTooLarge, match="after packing"):
        admitted(batch, compression_type="uncompressed", max_message_bytes="50000")


def test_a_batch_that_decompresses_to_too_much_is_refused() -> None:
    record = Record(offset=0, timestamp_ms=0, key=None, value=bytes(100_000))
    limits = RecordLimits(decompressed_bytes_max=50_000, decompression_always_bytes=1000)
    with pytest.raises(OversizedBatch):
        admitted(a_batch(Codec.GZIP, records=[record]), limits, compression_type="zstd")


def test_timestamps_too_far_apart_to_re_encode_are_refused() -> None:
    first, last = -(1 << 63), (1 << 63) - 1
    records = [
        Record(offset=0, timestamp_ms=0, key=None, value=None),
        Record(offset=1, timestamp_ms=first, key=None, value=None),
        Record(offset=2, timestamp_ms=last, key=None, value=None),
    ]
    with pytest.raises(MalformedBatch, match="too far apart"):
        admitted(a_batch(records=records), compression_type="zstd")


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_lists_the_records_without_a_key(policy: str) -> None:
    records = [
        Record(offset=place, timestamp_ms=0, key=key, value=b"v")
        for place, key in enumerate([b"a", None, b"", None])
    ]
    with pytest.raises(RecordsRefused, match="2 of the batch's records") as caught:
        admitted(a_batch(records=records), cleanup_policy=policy)
    assert caught.value.places == [1, 3]
    assert admitted(a_batch(), cleanup_policy=policy).data == a_batch()


@pytest.mark.setting("message.timestamp.after.max.ms", "message.timestamp.before.max.ms")
@pytest.mark.parametrize(
    ("setting", "first_ms", "last_ms"),
    [
        ("message_timestamp_before_max_ms", NOW_MS - 1001, NOW_MS),
        ("message_timestamp_after_max_ms", NOW_MS, NOW_MS + 1001),
    ],
)
def test_a_topic_refuses_batches_with_timestamps_out_of_range(
    setting: str, first_ms: int, last_ms: int
) -> None:
    records = [
        Record(offset=place, timestamp_ms=at_ms, key=None, value=b"x")
        for place, at_ms in enumerate((first_ms, last_ms))
    ]
    batch = a_batch(records=records)
    assert not Admission(resolve({setting.replace("_", "."): "1000"})).is_plain
    with pytest.raises(TimeRefused):
        admitted(batch, None, **{setting: "1000"})
    admitted(batch, None, **{setting: "1001"})
    admitted(batch, None, **{setting: "1000", "message_timestamp_type": "LogAppendTime"})
    admitted(batch)


def test_a_batch_without_timestamps_is_never_out_of_range() -> None:
    batch = a_batch(records=[Record(offset=0, timestamp_ms=-1, key=None, value=b"x")])
    assert admitted(batch, None, message_timestamp_before_max_ms="1000").data == batch
