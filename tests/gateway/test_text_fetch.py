"""Reading: at most a hundred records, any batch of any client, and no aborted transaction."""

import asyncio
from pathlib import Path

import pytest

from kafkaesque.clock import SystemClock
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_fetch import visible_records
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import Codec
from kafkaesque.server_config import TextLimits
from kafkaesque.wire.messages.fetch import AbortedTransaction, PartitionData
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.gateway.text_clients import text_broker

NOW_MS = SystemClock().now_ms()  # otherwise retention would delete the records


def a_record(offset: int, value: bytes | None = b"x") -> Record:
    return Record(offset=offset, timestamp_ms=NOW_MS, key=None, value=value)


async def produce(desk: TextDesk, batch: bytearray) -> None:
    """Send a batch like a Kafka client."""
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name="t", partition_data=(data,)),),
    )
    answer = await desk.channel.call(request, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_an_answer_has_a_hundred_records_and_may_start_in_the_middle_of_a_batch(
    tmp_path: Path, codec: Codec
) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            for _ in range(3):
                records = [a_record(offset) for offset in range(70)]
                await produce(broker.desk, build_batch(records, codec=codec))
            (held,) = await client.data("SUBS t g")
            for start, end in ((0, 100), (35, 135), (150, 210), (209, 210), (210, 210)):
                found = await client.data(f"CONS t {held} {start}")
                assert [record["Offset"] for record in found] == list(range(start, end))

    asyncio.run(go())


def test_an_answer_is_limited_in_bytes_but_has_at_least_one_record(tmp_path: Path) -> None:
    async def go() -> None:
        limits = TextLimits(answer_bytes_max=1_000, fetch_bytes=500)
        async with text_broker(tmp_path, limits=limits) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            for size in (400, 400, 400, 5_000, 10):
                await produce(broker.desk, build_batch([a_record(0, b"x" * size)]))
            (held,) = await client.data("SUBS t g")
            assert len(await client.data(f"CONS t {held} 0")) == 2
            assert len(await client.data(f"CONS t {held} 3")) == 1

    asyncio.run(go())


def test_records_of_kafka_clients_are_shown_whatever_they_contain(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            headers = (("trace", b"1"), ("Header", b"h"), ("Header", b"again"), ("raw", b"\xff"))
            odd = Record(
                offset=0, timestamp_ms=NOW_MS, key=b"\xfe", value=b"\xff\x00", headers=headers
            )
            await produce(broker.desk, build_batch([odd, a_record(1, None), a_record(2, b"\r\n")]))
            (held,) = await client.data("SUBS t g")
            assert await client.data(f"CONS t {held} 0") == [
                {
                    "Header": "h",
                    "Body": {"Base64": "/wA="},
                    "Key": {"Base64": "/g=="},
                    "Offset": 0,
                    "Headers": [["trace", "1"], ["Header", "again"], ["raw", {"Base64": "/w=="}]],
                },
                {"Header": None, "Body": None, "Key": None, "Offset": 1},
                {"Header": None, "Body": "\r\n", "Key": None, "Offset": 2},
            ]

    asyncio.run(go())


def test_markers_and_aborted_transactions_are_skipped() -> None:
    def transactional(offset: int, producer: int) -> bytearray:
        stamp = ProducerStamp(producer_id=producer, producer_epoch=0, base_sequence=0)
        return build_batch(
            [a_record(offset)], producer=stamp, traits=BatchTraits(is_transactional=True)
        )

    def marker(offset: int, producer: int, kind: ControlType) -> bytearray:
        return build_control_batch(
            kind=kind,
            producer_id=producer,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=1,
            base_offset=offset,
            term=1,
        )

    batches = [
        transactional(0, 1),
        transactional(1, 2),
        marker(2, 1, ControlType.ABORT),
        transactional(3, 1),
        marker(4, 1, ControlType.COMMIT),
        marker(5, 2, ControlType.COMMIT),
        build_batch([a_record(6)]),
        marker(7, 1, ControlType.COMMIT),
    ]
    data = PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=8,
        aborted_transactions=(AbortedTransaction(producer_id=1, first_offset=0),),
        records=b"".join(batches),
    )
    found = visible_records(data, 0)
    assert [record.offset for record in found.records] == [1, 3, 6]
    assert found.end == 8
