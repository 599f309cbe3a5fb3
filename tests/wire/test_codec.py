"""The codec against kio, and against malformed bytes."""

import io
import random
import tracemalloc
from typing import Any

import pytest
from kio.serial import entity_reader, entity_writer

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import decode, encode, encode_parts, lenient_decoder
from kafkaesque.wire.errors import UnencodableMessage, UnsupportedVersion
from kafkaesque.wire.messages.fetch import FetchResponse
from kafkaesque.wire.messages.metadata import MetadataRequest
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkaesque.wire.varint import write_varint
from tests.wire.values import (
    EVERY_MESSAGE,
    different_defaults,
    kio_class,
    random_message,
    title,
    to_kio,
)

EXAMPLES = 8
CUTS_MAX = 200
every_message = pytest.mark.parametrize(("cls", "version"), EVERY_MESSAGE, ids=title)


def examples(cls: type[Any], version: int, count: int = EXAMPLES) -> list[Any]:
    """Return random messages, the same ones in every run."""
    chance = random.Random(f"{cls.__name__} {version}")
    return [random_message(cls, version, chance) for _ in range(count)]


@every_message
def test_kio_reads_what_we_write_and_writes_it_byte_by_byte(cls: type[Any], version: int) -> None:
    twin = kio_class(cls, version)
    read, write = entity_reader(twin), entity_writer(twin)
    for message in examples(cls, version):
        data = encode(message, version)
        theirs, size = read(data, 0)
        assert size == len(data)
        assert theirs == to_kio(message, version, twin)
        out = io.BytesIO()
        write(out, theirs)
        assert out.getvalue() == data


@every_message
def test_we_read_what_kio_writes(cls: type[Any], version: int) -> None:
    twin = kio_class(cls, version)
    write = entity_writer(twin)
    for message in examples(cls, version):
        out = io.BytesIO()
        write(out, to_kio(message, version, twin))
        assert decode(cls, version, out.getvalue()) == message


@every_message
def test_a_truncated_message_is_refused(cls: type[Any], version: int) -> None:
    chance = random.Random(version)
    for message in examples(cls, version, 2):
        data = encode(message, version)
        # Long ones are cut in other places in every version, so that the test stays short.
        for size in chance.sample(range(len(data)), min(len(data), CUTS_MAX)):
            with pytest.raises(MalformedFrame):
                decode(cls, version, data[:size])


@every_message
def test_changed_bytes_are_read_or_refused_and_nothing_else(cls: type[Any], version: int) -> None:
    chance = random.Random(version)
    for message in examples(cls, version, 2):
        for _ in range(30):
            data = bytearray(encode(message, version)) or bytearray(1)
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            try:
                read = decode(cls, version, data)
            except MalformedFrame:
                continue
            assert isinstance(read, cls)


@every_message
def test_a_field_has_kafkas_default(cls: type[Any], version: int) -> None:
    assert different_defaults(cls, version, kio_class(cls, version)) == []


@pytest.mark.parametrize("row", APIS.values(), ids=lambda row: row.api.name)
def test_a_version_outside_the_range_is_refused(row: Any) -> None:
    for version in (-1, row.api.first - 1, row.api.last + 1, 32_767):
        with pytest.raises(UnsupportedVersion, match=rf"{row.api.name} version {version} is not"):
            decode(row.request, version, b"")
        with pytest.raises(UnsupportedVersion):
            decode(row.response, version, b"")


def a_request() -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=b"batch")
    topic = TopicProduceData(name="orders", partition_data=(partition,))
    return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(topic,))


def test_a_message_is_encoded_as_kafka_documents_it() -> None:
    assert encode(a_request(), 9).hex(" ") == (
        "00 "  # no transactional id
        "ff ff 00 00 03 e8 "  # acks of all, 1,000 ms
        "02 07 6f 72 64 65 72 73 "  # one topic, orders
        "02 00 00 00 00 06 62 61 74 63 68 "  # one partition, 0, five bytes of records
        "00 00 00"  # no tagged fields: partition, topic, request
    )


def test_unknown_tagged_fields_are_skipped_at_every_level() -> None:
    data = encode(a_request(), 9)
    unknown = b"\x02\x05\x03abc" + write_varint(300) + b"\x00"
    for kept in (0, 1, 2):
        sections = [b"\0"] * kept + [unknown] * (3 - kept)
        assert decode(ProduceRequest, 9, data[:-3] + b"".join(sections)) == a_request()


def test_unknown_tagged_fields_are_skipped_beside_known_ones() -> None:
    version = 16
    empty = FetchResponse(responses=())
    known = b"\x00\x01\x01"  # tag 0: an array without elements
    unknown = b"\x63\x02zz"
    data = encode(empty, version)[:-1]
    assert decode(FetchResponse, version, data + b"\x02" + known + unknown) == empty
    assert decode(FetchResponse, version, data + b"\x02" + unknown + known) == empty


def test_a_known_tagged_field_must_fill_the_length_that_it_claims() -> None:
    data = encode(FetchResponse(responses=()), 16)[:-1]
    for claimed in (0, 2):
        with pytest.raises(MalformedFrame):
            decode(FetchResponse, 16, data + bytes([1, 0, claimed, 1, 0]))


@pytest.mark.parametrize("version", [3, 9])
def test_a_false_length_allocates_nothing(version: int) -> None:
    null, acks_and_timeout = (b"\xff\xff", bytes(6)) if version == 3 else (b"\0", bytes(6))
    claim = b"\x7f\xff\xff\xff" if version == 3 else b"\xff\xff\xff\xff\x0f"
    lying = [null + acks_and_timeout + claim + bytes(50)]  # so many topics
    one = b"\0\0\0\x01" if version == 3 else b"\x02"
    name = b"\0\x01t" if version == 3 else b"\x02t"
    lying.append(null + acks_and_timeout + one + name + claim + bytes(50))  # partitions
    lying.append(null + acks_and_timeout + one + name + one + bytes(4) + claim + bytes(50))
    for data in lying:
        with pytest.raises(MalformedFrame):
            decode(ProduceRequest, version, data)
        tracemalloc.start()
        with pytest.raises(MalformedFrame, match="longer than the frame"):
            decode(ProduceRequest, version, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000


def test_trailing_bytes_after_a_message_are_refused() -> None:
    with pytest.raises(MalformedFrame, match="1 bytes too many"):
        decode(ProduceRequest, 9, encode(a_request(), 9) + b"\0")


def test_trailing_bytes_after_a_request_can_be_ignored() -> None:
    """librdkafka 2.16 asks for all topics with these bytes, three too many."""
    decode_one = lenient_decoder(MetadataRequest, 13)
    assert decode_one(memoryview(bytes.fromhex("00000000010000")), 0).topics is None
    with pytest.raises(MalformedFrame):
        decode_one(memoryview(b""), 0)


def test_a_null_is_refused_where_the_version_does_not_allow_it() -> None:
    with pytest.raises(MalformedFrame, match="topics is null"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")
    with pytest.raises(UnencodableMessage, match="topics is null"):
        encode(MetadataRequest(topics=None), 0)
    assert decode(MetadataRequest, 1, encode(MetadataRequest(topics=None), 1)).topics is None


def test_a_number_out_of_the_fields_range_is_not_written() -> None:
    with pytest.raises(UnencodableMessage, match="ProduceRequest version 9"):
        encode(ProduceRequest(acks=2**15, timeout_ms=0, topic_data=()), 9)


def test_text_that_is_not_utf8_is_refused() -> None:
    data = encode(a_request(), 9).replace(b"orders", b"order\xff")
    with pytest.raises(MalformedFrame, match="utf-8"):
        decode(ProduceRequest, 9, data)


def test_records_are_neither_copied_when_read_nor_when_written() -> None:
    data = bytearray(encode(a_request(), 9))
    request = decode(ProduceRequest, 9, data)
    data[data.index(b"batch")] = ord("c")
    records = request.topic_data[0].partition_data[0].records
    assert records == b"catch"
    assert any(part is records for part in encode_parts(request, 9))


def test_a_message_may_start_after_its_header() -> None:
    assert decode(ProduceRequest, 9, b"header" + encode(a_request(), 9), 6) == a_request()


def test_a_field_missing_in_the_version_is_left_out_and_read_as_its_default() -> None:
    topic = TopicProduceData(name="orders", topic_id=b"i" * 16, partition_data=())
    request = ProduceRequest(acks=1, timeout_ms=0, topic_data=(topic,))
    (by_name,) = decode(ProduceRequest, 12, encode(request, 12)).topic_data
    (by_id,) = decode(ProduceRequest, 13, encode(request, 13)).topic_data
    assert (by_name.name, by_name.topic_id) == ("orders", bytes(16))
    assert (by_id.name, by_id.topic_id) == ("", b"i" * 16)
