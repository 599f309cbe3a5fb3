"""A topic is deleted and recreated, over and over, while clients keep using it."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from kafkaesque.clock import SystemClock
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.server.admins import Admin, named
from tests.server.test_connection import SECONDS_MAX, running

GONE = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}


class Load:
    """A producer and a consumer that identify topics by id, until they are stopped."""

    def __init__(self) -> None:
        self.topic_id = b""
        self.is_over = False
        self.codes: Counter[int] = Counter()
        self.records_read = 0
        self.has_read = asyncio.Event()

    async def produce(self, admin: Admin) -> None:
        """Send records that contain the id of their topic."""
        while not self.is_over:
            topic_id = self.topic_id
            now_ms = SystemClock().now_ms()  # an old record would be deleted at once
            batch = build_batch([Record(offset=0, timestamp_ms=now_ms, key=None, value=topic_id)])
            share = PartitionProduceData(index=0, records=bytes(batch))
            data = TopicProduceData(topic_id=topic_id, partition_data=(share,))
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,))
            answer = await admin.ask(request, ProduceResponse, 13)
            self._count(answer.responses[0].partition_responses[0].error_code)

    async def consume(self, admin: Admin) -> None:
        """Read the topic from its beginning, waiting for the first record."""
        while not self.is_over:
            topic_id = self.topic_id
            share = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
            request = FetchRequest(
                max_wait_ms=1000,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=(FetchTopic(topic_id=topic_id, partitions=(share,)),),
            )
            answer = await admin.ask(request, FetchResponse, 13)
            (found,) = answer.responses[0].partitions
            self._count(found.error_code)
            for view in split_batches(found.records or b""):
                for record in read_records(view):
                    assert record.value == topic_id, "a record of an earlier topic"
                    self.records_read += 1
                    if topic_id == self.topic_id:
                        self.has_read.set()

    def _count(self, code: int) -> None:
        assert code == 0 or code in GONE, ErrorCode(code).name
        self.codes[code] += 1


@pytest.mark.parametrize("rounds", [40, pytest.param(200, marks=pytest.mark.long)])
def test_a_topic_is_recreated_many_times_under_load(rounds: int, tmp_path: Path) -> None:
    async def go() -> None:
        load = Load()
        async with running(tmp_path / "data") as connect:
            admin = Admin(await connect())
            load.topic_id = (await admin.create("orders", 2)).topic_id
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(load.produce(Admin(await connect())))
                tasks.create_task(load.consume(Admin(await connect())))
                for _ in range(rounds):
                    assert await admin.delete(named("orders")) == [0]
                    made = await admin.create("orders", 2)
                    assert made.error_code == 0
                    load.has_read.clear()
                    load.topic_id = made.topic_id
                    async with asyncio.timeout(SECONDS_MAX):
                        await load.has_read.wait()
                load.is_over = True
            assert (await admin.metadata("orders")).topics[0].topic_id == load.topic_id
        assert load.codes[0] > rounds
        assert any(load.codes[code] for code in GONE)
        assert load.records_read >= rounds

    asyncio.run(go())
    asyncio.run(_open_and_close(tmp_path / "data"))


async def _open_and_close(data: Path) -> None:
    async with running(data) as connect:
        (topic,) = (await Admin(await connect()).metadata("orders")).topics
        assert (topic.error_code, len(topic.partitions)) == (0, 2)
