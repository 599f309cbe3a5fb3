"""Batches with false fields, and batches that are far larger than they look."""

import pytest

from kafkaesque.record.compression import compress
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.view import Codec
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafkaesque.wire.varint import write_varint
from tests.hostile.peers import Hostile, a_batch, with_fields

DECODING = ("packed", "compacted")
"""The topics whose settings make the broker decode batches."""

PACKED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
KEPT = [("packed", Codec.GZIP)]
"""A batch that already has the topic's compression is not decoded."""
SMALLEST_RECORD = b"\x0c\0\0\0\1\1\0"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"magic": 0}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"magic": 1}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"magic": 3}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"record_count": 3}, ErrorCode.INVALID_RECORD),
        ({"record_count": 0}, ErrorCode.INVALID_RECORD),
        ({"record_count": -1}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 0}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 2**31 - 1}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"attributes": 7}, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        ({"length": 2**31 - 1}, ErrorCode.INVALID_RECORD),
        ({"length": -1}, ErrorCode.INVALID_RECORD),
        ({"producer_id": -2}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5, "producer_epoch": -1}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
    ],
)
def test_a_false_header_is_refused(
    hostile: Hostile, fields: dict[str, int], code: ErrorCode
) -> None:
    assert hostile.produce(with_fields(a_batch(), **fields)) == code


def test_a_wrong_checksum_is_refused(hostile: Hostile) -> None:
    batch = a_batch()
    batch[-1] ^= 1
    assert hostile.produce(bytes(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_an_impossible_number_of_records_is_refused_unread(hostile: Hostile) -> None:
    for count, code in ((2**31 - 1, ErrorCode.MESSAGE_TOO_LARGE), (9, ErrorCode.INVALID_RECORD)):
        lie = with_fields(a_batch(), record_count=count, last_offset_delta=count - 1)
        assert hostile.produce(lie) == code


@pytest.mark.parametrize("topic", DECODING)
@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_record_count_is_refused_where_records_are_read(
    hostile: Hostile, topic: str, count: int
) -> None:
    lie = with_fields(a_batch(), record_count=count, last_offset_delta=count - 1)
    assert hostile.produce(lie, topic) == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("topic", "codec"),
    [(topic, codec) for topic in DECODING for codec in PACKED if (topic, codec) not in KEPT],
    ids=str,
)
def test_a_compression_bomb_is_refused_where_it_would_be_decompressed(
    hostile: Hostile, topic: str, codec: Codec
) -> None:
    zeros = compress(codec, bytes(100 << 20))
    bomb = with_fields(a_batch(), zeros[:1_000_000], attributes=int(codec))
    assert hostile.produce(bomb, topic) in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
    )


@pytest.mark.parametrize("topic", DECODING)
def test_a_flood_of_records_in_a_few_bytes_is_refused(hostile: Hostile, topic: str) -> None:
    count = RecordLimits().records_max
    packed = compress(Codec.ZSTD, SMALLEST_RECORD * count)
    flood = with_fields(
        a_batch(), packed, attributes=4, record_count=count, last_offset_delta=count - 1
    )
    assert hostile.produce(flood, topic) in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
    )


@pytest.mark.parametrize("topic", DECODING)
def test_a_flood_of_headers_in_a_few_bytes_is_refused(hostile: Hostile, topic: str) -> None:
    count = RecordLimits().headers_max + 1
    body = b"\0\0\0\2k\1" + write_varint(2 * count) + b"\0\1" * count
    packed = compress(Codec.ZSTD, write_varint(2 * len(body)) + body)
    flood = with_fields(a_batch(count=1), packed, attributes=4)
    assert hostile.produce(flood, topic) == ErrorCode.MESSAGE_TOO_LARGE


def test_a_lookup_by_time_reads_no_more_than_its_share_of_a_flood(hostile: Hostile) -> None:
    count = RecordLimits().records_max
    packed = compress(Codec.ZSTD, SMALLEST_RECORD * count)
    lie = {"record_count": count, "last_offset_delta": count - 1, "max_timestamp": 2**62}
    flood = with_fields(a_batch(), packed, attributes=4, **lie)
    for _ in range(5):
        assert hostile.produce(flood, "strict") == ErrorCode.NONE
    for timestamp in (0, 2**61, -3):
        (found,) = hostile.ask(_lookup("strict", timestamp), 7).topics[0].partitions
        assert found.error_code in (ErrorCode.NONE, ErrorCode.INVALID_RECORD)


def test_a_bomb_on_a_plain_topic_is_left_to_readers_and_not_decompressed_by_lookups(
    hostile: Hostile,
) -> None:
    zeros = compress(Codec.GZIP, bytes(100 << 20))
    assert hostile.produce(with_fields(a_batch(), zeros, attributes=1)) == ErrorCode.NONE
    (found,) = hostile.ask(_lookup("plain", 0), 7).topics[0].partitions
    assert found.error_code in (ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE)


def test_a_partition_named_twice_is_not_looked_up(hostile: Hostile) -> None:
    asked = ListOffsetsPartition(partition_index=0, timestamp=0)
    topic = ListOffsetsTopic(name="plain", partitions=(asked,) * 50_000)
    answer = hostile.ask(ListOffsetsRequest(replica_id=-1, topics=(topic,)), 7)
    codes = {one.error_code for one in answer.topics[0].partitions}
    assert codes == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("timestamp_ms", [2**62, -(2**62), -1, 2**63 - 1, -(2**63)])
def test_extreme_timestamps_are_stored_and_looked_up(hostile: Hostile, timestamp_ms: int) -> None:
    for topic in ("plain", "packed", "compacted", "strict"):
        assert hostile.produce(bytes(a_batch(timestamp_ms=timestamp_ms)), topic) == ErrorCode.NONE
        hostile.ask(_lookup(topic, max(0, timestamp_ms)), 7)


@pytest.mark.parametrize("acks", [2, -2, 127, -(2**15), 2**15 - 1])
def test_unknown_acks_are_refused(hostile: Hostile, acks: int) -> None:
    code = hostile.produce(bytes(a_batch()), acks=acks)
    assert code == ErrorCode.INVALID_REQUIRED_ACKS


@pytest.mark.parametrize("timeout_ms", [-1, -(2**31), 2**31 - 1])
def test_any_timeout_is_accepted(hostile: Hostile, timeout_ms: int) -> None:
    code = hostile.produce(bytes(a_batch()), timeout_ms=timeout_ms)
    assert code in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)


def test_extreme_sequences_and_epochs_are_accepted_in_order(hostile: Hostile) -> None:
    last = 2**31 - 1
    stamp = {"producer_id": 2**63 - 1, "producer_epoch": 2**15 - 1}
    assert hostile.produce(with_fields(a_batch(), base_sequence=last, **stamp)) == 0
    assert hostile.produce(with_fields(a_batch(), base_sequence=1, **stamp)) == 0
    gap = hostile.produce(with_fields(a_batch(), base_sequence=last, **stamp))
    assert gap in (ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)


def _lookup(topic: str, timestamp: int) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),)
    )
