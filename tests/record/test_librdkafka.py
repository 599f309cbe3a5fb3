"""We read what librdkafka sends, and it reads what we build."""

from typing import cast

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from msgspec.structs import replace

from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES, BatchView, Codec
from tests.record.librdkafka_capture import PRODUCER_ID, TOPIC, stub

RECORDS = [
    Record(offset=0, timestamp_ms=1_700_000_000_123, key=b"a", value=b"x" * 300),
    Record(offset=1, timestamp_ms=1_700_000_000_001, key=None, value=b"y" * 40_000),
    Record(offset=2, timestamp_ms=1_700_000_009_999, key=b"", value=None),
    Record(
        offset=3,
        timestamp_ms=1_700_000_000_500,
        key=b"k",
        value=b"",
        headers=(("trace", b"\x00\xff"), ("trace", None), ("gr\u00fc\u00dfe", b"")),
    ),
]


def produced_by_librdkafka(codec: Codec, *, idempotent: bool = False) -> bytes:
    with stub() as server:
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{server.port}",
                "compression.codec": codec.name.lower(),
                "enable.idempotence": idempotent,
                "linger.ms": 30,
            }
        )
        for record in RECORDS:
            producer.produce(
                TOPIC,
                key=record.key,
                value=record.value,
                partition=0,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        assert producer.flush(5) == 0
        [batch] = server.produced
    return batch


@pytest.mark.requirement("CORE-7")
@pytest.mark.parametrize("codec", Codec)
def test_a_batch_of_librdkafka_is_read(codec: Codec) -> None:
    view = BatchView(produced_by_librdkafka(codec))
    view.check()
    assert view.codec is codec
    assert read_records(view) == RECORDS


def test_librdkafka_sends_snappy_as_one_bare_block() -> None:
    view = BatchView(produced_by_librdkafka(Codec.SNAPPY))
    assert b"SNAPPY" not in bytes(view.data[HEADER_BYTES:])


def test_our_plain_batch_equals_librdkafkas_byte_for_byte() -> None:
    theirs = produced_by_librdkafka(Codec.NONE)
    assert build_batch(RECORDS, term=BatchView(theirs).term) == theirs


def test_an_idempotent_producers_batch_is_rebuilt_byte_for_byte() -> None:
    theirs = produced_by_librdkafka(Codec.NONE, idempotent=True)
    stamp = ProducerStamp(producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0)
    assert build_batch(RECORDS, term=BatchView(theirs).term, producer=stamp) == theirs


@pytest.mark.requirement("CORE-7")
@pytest.mark.parametrize("codec", Codec)
def test_librdkafka_reads_our_batch(codec: Codec) -> None:
    records = [replace(record, offset=record.offset + 7) for record in RECORDS]
    with stub(bytes(build_batch(records, codec=codec, term=3))) as server:
        consumer = Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{server.port}",
                "group.id": "g",
                "enable.auto.commit": False,
                "check.crcs": True,
            }
        )
        consumer.assign([TopicPartition(TOPIC, 0, 7)])
        messages = consumer.consume(len(records), timeout=5)
        consumer.close()
    assert [_seen(message) for message in messages] == records


def _seen(message: Message) -> Record:
    offset, headers = message.offset(), message.headers() or []
    assert offset is not None
    assert isinstance(headers, list)
    return Record(
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple((key, cast(bytes | None, value)) for key, value in headers),
    )
