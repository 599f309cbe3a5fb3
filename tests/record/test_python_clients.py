"""Comparison with the batch code of aiokafka and kafka-python, in both directions.

kafka-python reads only gzip here; the other codecs would need libraries that we have no use for.
"""

import warnings
from typing import Any

import pytest
from aiokafka.record import default_records as aiokafka_records
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView, Codec
from tests.record.builders import headers, maybe_bytes

with warnings.catch_warnings():
    # kafka-python loads its schemas by a call that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import default_records as kafka_python_records

CLIENTS = {"aiokafka": aiokafka_records, "kafka-python": kafka_python_records}
CODECS = [("aiokafka", codec) for codec in Codec]
CODECS += [("kafka-python", Codec.NONE), ("kafka-python", Codec.GZIP)]
STAMP = ProducerStamp(producer_id=123_456_789_012, producer_epoch=7, base_sequence=99)

RECORDS = [
    Record(offset=0, timestamp_ms=1_700_000_000_123, key=b"a", value=b"x" * 9000),
    Record(offset=1, timestamp_ms=1_700_000_000_001, key=None, value=b"y"),
    Record(offset=2, timestamp_ms=1_700_000_009_999, key=b"", value=None),
    Record(
        offset=3,
        timestamp_ms=1_700_000_000_500,
        key=b"k",
        value=b"",
        headers=(("trace", b"\x00\xff"), ("trace", None), ("gr\u00fc\u00dfe", b"")),
    ),
]


def built_by(client: str, records: list[Record], codec: Codec, producer: ProducerStamp) -> bytes:
    builder = CLIENTS[client].DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=True,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=producer.base_sequence,
        batch_size=1 << 20,
    )
    for record in records:
        appended = builder.append(
            record.offset, record.timestamp_ms, record.key, record.value, list(record.headers)
        )
        assert appended is not None
    return bytes(builder.build())


def read_by(client: str, batch: bytes | bytearray) -> tuple[Any, list[Record]]:
    theirs = CLIENTS[client].DefaultRecordBatch(bytes(batch))
    assert theirs.validate_crc()
    records = [
        Record(
            offset=record.offset,
            timestamp_ms=record.timestamp,
            key=record.key,
            value=record.value,
            headers=tuple(record.headers),
        )
        for record in theirs
    ]
    return theirs, records


@st.composite
def produced_records(draw: st.DrawFn) -> list[Record]:
    """Draw records numbered like a producer's, from 0 without a gap."""
    return [
        Record(
            offset=offset,
            timestamp_ms=draw(st.integers(1, 1 << 45)),
            key=draw(maybe_bytes),
            value=draw(maybe_bytes),
            headers=draw(headers),
        )
        for offset in range(draw(st.integers(1, 6)))
    ]


@pytest.mark.parametrize("client", CLIENTS)
@given(records=produced_records())
def test_a_plain_batch_equals_theirs_byte_for_byte(client: str, records: list[Record]) -> None:
    theirs = built_by(client, records, Codec.NONE, STAMP)
    traits = BatchTraits(is_transactional=True)
    # aiokafka writes -1 where no term is known yet, the others 0.
    term = BatchView(theirs).term
    assert build_batch(records, term=term, producer=STAMP, traits=traits) == theirs
    assert read_records(BatchView(theirs)) == records


@pytest.mark.requirement("CORE-7")
@pytest.mark.parametrize(("client", "codec"), CODECS)
def test_we_read_what_they_build(client: str, codec: Codec) -> None:
    view = BatchView(built_by(client, RECORDS, codec, STAMP))
    view.check()
    assert view.codec is codec
    assert view.is_transactional
    assert read_records(view) == RECORDS


@pytest.mark.requirement("CORE-7")
@pytest.mark.parametrize(("client", "codec"), CODECS)
def test_they_read_what_we_build(client: str, codec: Codec) -> None:
    theirs, records = read_by(client, build_batch(RECORDS, codec=codec, term=3, producer=STAMP))
    assert records == RECORDS
    assert theirs.compression_type == codec
    assert theirs.producer_id == STAMP.producer_id


@pytest.mark.parametrize("client", CLIENTS)
def test_they_see_append_time_as_we_do(client: str) -> None:
    batch = build_batch(RECORDS, traits=BatchTraits(is_log_append_time=True))
    theirs, records = read_by(client, batch)
    assert theirs.timestamp_type == 1
    assert records == read_records(BatchView(batch))


@pytest.mark.parametrize("client", CLIENTS)
def test_they_read_a_batch_with_gaps_and_a_base_offset(client: str) -> None:
    records = [
        Record(offset=1 << 40, timestamp_ms=5, key=b"a", value=b"1"),
        Record(offset=(1 << 40) + 70, timestamp_ms=5, key=b"b", value=b"2"),
    ]
    _, seen = read_by(client, build_batch(records, base_offset=(1 << 40) - 3))
    assert seen == records
