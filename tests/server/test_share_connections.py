"""Members of share groups over sockets: what they hold and wait for ends with their connection."""

import asyncio
import struct
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.wire.codec import decode
from kafkaesque.wire.header import decode_response_header, response_header_version
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaesque.wire.messages.metadata import MetadataResponse
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkaesque.wire.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kafkaesque.wire.messages.share_fetch import (
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from tests.server.share_members import GROUP, TOPIC, acquired
from tests.server.test_connection import Client, a_topic, running
from tests.server.test_groups import ask

GROUP_RESOURCE = 32
SET = 0
LONG_MS = 60_000
SECONDS_MAX = 120
T = TypeVar("T")
Connect = Callable[[], Coroutine[None, None, Client]]


class Sharer:
    """A member on a connection of its own."""

    def __init__(self, client: Client, name: str, topic_id: bytes) -> None:
        self.client = client
        self.name = name
        self._topic_id = topic_id
        self._epoch = 0

    def request(self, wait_ms: int) -> ShareFetchRequest:
        partition = ShareFetchPartition(partition_index=0, acknowledgement_batches=())
        self._epoch += 1
        return ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=self._epoch - 1,
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_records=100,
            batch_size=100,
            topics=(ShareFetchTopic(topic_id=self._topic_id, partitions=(partition,)),),
            forgotten_topics_data=(),
        )

    async def fetch(self, wait_ms: int = LONG_MS) -> list[tuple[int, int, int]]:
        return acquired(await ask(self.client, self.request(wait_ms), 1, ShareFetchResponse))

    def hang_up(self) -> None:
        self.client.writer.transport.abort()


async def answer(client: Client, version: int, kind: type[T]) -> T:
    """Read the next answer."""
    async with asyncio.timeout(SECONDS_MAX):
        (size,) = struct.unpack(">i", await client.reader.readexactly(4))
        data = await client.reader.readexactly(size)
    _, start = decode_response_header(data, response_header_version(api_of(kind), version))
    return decode(kind, version, data, start)


async def prepared(connect: Connect) -> tuple[Client, bytes]:
    """Make the topic, and a group that starts with the oldest record."""
    client = await connect()
    made = await ask(client, a_topic(TOPIC), 12, MetadataResponse)
    reset = AlterableConfig(name="share.auto.offset.reset", config_operation=SET, value="earliest")
    resource = AlterConfigsResource(
        resource_type=GROUP_RESOURCE, resource_name=GROUP, configs=(reset,)
    )
    altered = await ask(
        client,
        IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
        1,
        IncrementalAlterConfigsResponse,
    )
    assert altered.responses[0].error_code == 0
    return client, made.topics[0].topic_id


async def produce(client: Client, *values: bytes) -> None:
    now_ms = time.time_ns() // 1_000_000  # older ones would be deleted
    records = [
        Record(offset=place, timestamp_ms=now_ms, key=None, value=value)
        for place, value in enumerate(values)
    ]
    data = PartitionProduceData(index=0, records=bytes(build_batch(records)))
    request = ProduceRequest(
        acks=-1,
        timeout_ms=10_000,
        topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),),
    )
    answer = await ask(client, request, 9, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0


def test_what_a_member_holds_is_free_when_its_connection_is_lost(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client, topic_id = await prepared(connect)
            await produce(client, b"a", b"b")
            me = Sharer(await connect(), "me", topic_id)
            you = Sharer(await connect(), "you", topic_id)
            assert await me.fetch() == [(0, 1, 1)]
            waiting = asyncio.ensure_future(you.fetch())
            await asyncio.sleep(0.05)
            assert not waiting.done()
            me.hang_up()
            assert await waiting == [(0, 1, 2)]

    asyncio.run(go())


def test_a_member_that_waits_and_is_lost_takes_nothing_with_it(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client, topic_id = await prepared(connect)
            me = Sharer(await connect(), "me", topic_id)
            assert await me.fetch(0) == []
            me.client.send(me.request(LONG_MS), 1)
            you = Sharer(await connect(), "you", topic_id)
            assert await you.fetch(0) == []
            me.hang_up()
            await asyncio.sleep(0.05)
            assert await you.fetch(0) == []
            await produce(client, b"a")
            assert await you.fetch() == [(0, 0, 1)]

    asyncio.run(go())


def test_a_member_that_closes_while_its_fetch_waits_leaves_nothing_locked(tmp_path: Path) -> None:
    """The fetch is answered first, and with nothing: its records would belong to nobody."""

    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client, topic_id = await prepared(connect)
            await produce(client, b"a")
            me = Sharer(await connect(), "me", topic_id)
            assert await me.fetch() == [(0, 0, 1)]
            me.client.send(me.request(LONG_MS), 1)
            close = ShareAcknowledgeRequest(
                group_id=GROUP, member_id="me", share_session_epoch=-1, topics=()
            )
            me.client.send(close, 1)
            assert acquired(await answer(me.client, 1, ShareFetchResponse)) == []
            closed = await answer(me.client, 1, ShareAcknowledgeResponse)
            assert closed.error_code == 0
            you = Sharer(await connect(), "you", topic_id)
            assert await you.fetch() == [(0, 0, 2)]

    asyncio.run(go())
