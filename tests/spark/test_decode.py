"""The compiled decoder agrees exactly with the plain one."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import KafkaesqueError
from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.crc import crc32c
from kafkaesque.record.errors import CorruptBatch, MalformedBatch
from kafkaesque.record.limits import RecordLimits
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import CRC_FROM, BatchView, Codec
from kafkaesque.spark.decode import ARROW_TYPES, Decoder, Target, chunks

pytestmark = pytest.mark.spark

EVERYTHING = Target(topic="t", partition=3, first=0, end=1 << 62, columns=tuple(ARROW_TYPES))

NULLABLE = st.none() | st.binary(max_size=300)
HEADERS = st.lists(st.tuples(st.text(max_size=5), NULLABLE), max_size=3).map(tuple)
TIMES = st.integers(-1, 4_000_000_000_000)


@st.composite
def batches(draw: st.DrawFn) -> list[BatchView]:
    found = []
    offset = draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(1, 3))):
        records = []
        for _ in range(draw(st.integers(1, 5))):
            records.append(
                Record(
                    offset=offset,
                    timestamp_ms=draw(TIMES),
                    key=draw(NULLABLE),
                    value=draw(NULLABLE),
                    headers=draw(HEADERS),
                )
            )
            offset += draw(st.integers(1, 3))
        traits = BatchTraits(is_log_append_time=draw(st.booleans()))
        built = build_batch(records, codec=draw(st.sampled_from(Codec)), traits=traits)
        found.append(BatchView(bytes(built)))
    return found


def decoded(views: list[BatchView], target: Target = EVERYTHING) -> list[dict[str, Any]]:
    decoder = Decoder(target)
    return [
        row for group in chunks(views, RecordLimits()) for row in decoder.decode(group).to_pylist()
    ]


def plain(views: list[BatchView]) -> list[dict[str, Any]]:
    return [
        {
            "key": record.key,
            "value": record.value,
            "topic": "t",
            "partition": 3,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "timestampType": int(view.is_log_append_time),
            "headers": [{"key": key, "value": value} for key, value in record.headers] or None,
        }
        for view in views
        for record in read_records(view)
    ]


def in_ms(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**row, "timestamp": round(row["timestamp"].timestamp() * 1000)} for row in rows]


@given(views=batches())
def test_the_compiled_decoder_agrees_with_the_plain_one(views: list[BatchView]) -> None:
    assert in_ms(decoded(views)) == plain(views)


@given(views=batches(), first=st.integers(0, 10), size=st.integers(0, 10))
def test_only_the_offsets_of_the_window_are_decoded(
    views: list[BatchView], first: int, size: int
) -> None:
    start = views[0].base_offset + first
    target = dataclasses.replace(EVERYTHING, first=start, end=start + size)
    wanted = [row for row in plain(views) if start <= row["offset"] < start + size]
    assert in_ms(decoded(views, target)) == wanted


def renewed(data: bytearray) -> BatchView:
    data[17:21] = crc32c(bytes(data[CRC_FROM:])).to_bytes(4, "big")
    return BatchView(bytes(data))


@given(views=batches(), data=st.data())
def test_damaged_records_are_refused_by_both_or_read_alike(
    views: list[BatchView], data: st.DataObject
) -> None:
    damaged = bytearray(views[0].data)
    place = data.draw(st.integers(61, len(damaged) - 1))
    damaged[place] = data.draw(st.integers(0, 255))
    view = renewed(damaged)
    try:
        wanted = plain([view])
    except KafkaesqueError:
        with pytest.raises(KafkaesqueError):
            decoded([view])
    else:
        got = decoded([view])
        assert [row["offset"] for row in got] == [row["offset"] for row in wanted]
        assert [row["value"] for row in got] == [row["value"] for row in wanted]


def a_batch(value: bytes = b"v", **more: Any) -> bytearray:
    record = Record(offset=5, timestamp_ms=1_700_000_000_000, key=b"k", value=value)
    return build_batch([record], **more)


def test_a_wrong_checksum_is_refused() -> None:
    damaged = a_batch()
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="offset 5"):
        decoded([BatchView(bytes(damaged))])


def test_a_malformed_batch_is_named_with_the_reason() -> None:
    damaged = a_batch()
    damaged[61] = 4  # the record's length
    with pytest.raises(MalformedBatch, match="offset 5: a record of 2 bytes"):
        decoded([renewed(damaged)])


def test_only_the_requested_columns_are_built() -> None:
    target = dataclasses.replace(EVERYTHING, columns=("offset",))
    assert decoded([BatchView(a_batch())], target) == [{"offset": 5}]


def test_large_batches_become_several_arrow_batches() -> None:
    views = [BatchView(a_batch(bytes(9 << 20))) for _ in range(3)]
    assert [len(group) for group in chunks(views, RecordLimits())] == [1, 1, 1]


def test_batches_without_records_for_a_consumer_are_skipped() -> None:
    assert decoded([marker(7, ControlType.COMMIT, 5)]) == []


def marker(producer: int, kind: ControlType, offset: int) -> BatchView:
    return BatchView(
        build_control_batch(
            kind=kind,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=0,
            base_offset=offset,
            term=0,
        )
    )


def transactional(producer: int, offset: int) -> BatchView:
    return BatchView(
        build_batch(
            [Record(offset=offset, timestamp_ms=0, key=None, value=b"x")],
            producer=ProducerStamp(producer_id=producer, producer_epoch=0, base_sequence=0),
            traits=BatchTraits(is_transactional=True),
        )
    )


def test_an_aborted_transaction_is_left_out_up_to_its_marker() -> None:
    log = [
        transactional(1, 0),
        transactional(2, 1),
        transactional(1, 2),
        marker(1, ControlType.ABORT, 3),
        transactional(1, 4),
        marker(1, ControlType.COMMIT, 6),
        marker(2, ControlType.COMMIT, 7),
    ]
    aborted = AbortedBatches([(1, 0)])
    kept = [view for view in log if not aborted.leaves_out(view)]
    assert [row["offset"] for row in decoded(kept)] == [1, 4]
