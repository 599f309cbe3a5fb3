"""Publishing: order, partitions, refusals of single records, and unknown outcomes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.client.channel import Channel
from kafkaesque.errors import OutcomeUnknown
from kafkaesque.record.key_partition import partition_of
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.gateway.text_clients import TextBroker, TextClient, text_broker


async def bodies(client: TextClient, topic: str, partitions: int) -> list[list[str]]:
    """Return the bodies in each partition."""
    ids = await client.data(f"SUBS {topic} reader {partitions}")
    found = [await client.data(f"CONS {topic} {one} 0") for one in ids]
    return [[record["Body"] for record in records] for records in found]


async def create(broker: TextBroker, topic: str, settings: dict[str, str]) -> None:
    """Create a topic of one partition with settings."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=n, value=v) for n, v in settings.items()),
    )
    answer = await broker.desk.channel.call(
        CreateTopicsRequest(topics=(wanted,)), CreateTopicsResponse
    )
    assert answer.topics[0].error_code == 0


@pytest.mark.requirement("CORE-4")
def test_records_without_a_key_take_partitions_in_turn_whoever_publishes(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            anna, bert = await broker.connect(), await broker.connect()
            await anna.ask("CRTP t 3")
            for number in range(6):
                who = anna if number % 2 else bert
                await who.ask(f'PUBS t {{"Body":"{number}"}}')
            assert await bodies(anna, "t", 3) == [["0", "3"], ["1", "4"], ["2", "5"]]

    asyncio.run(go())


def test_many_lines_at_once_are_published_in_order_and_each_is_answered(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 2")
            for number in range(90):
                client.type(f'PUBS t {{"Key":"{number % 5}","Body":"{number}"}}')
            assert [await client.line() for _ in range(90)] == ["Done"] * 90
            expected: list[list[str]] = [[], []]
            for number in range(90):
                expected[partition_of(str(number % 5).encode(), 2)].append(str(number))
            assert await bodies(client, "t", 2) == expected

    asyncio.run(go())


def test_a_record_that_is_too_large_does_not_affect_its_neighbours(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            client = await broker.connect()
            await create(broker, "t", {"max.message.bytes": "500"})
            sizes = [10, 1_000, 20, 1_001, 30]
            for size in sizes:
                client.type(f'PUBS t {{"Body":"{"x" * size}"}}')
            answers = [await client.line() for _ in sizes]
            assert [answer == "Done" for answer in answers] == [True, False, True, False, True]
            assert "the topic takes 500" in answers[1]
            assert await bodies(client, "t", 1) == [["x" * 10, "x" * 20, "x" * 30]]

    asyncio.run(go())


class Forgetful:
    """A channel to the broker that loses the answer to Produce."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, request: Any, response: type[Any]) -> Any:
        """Forward it; the answer may be lost."""
        answer = await self._channel.call(request, response)
        if isinstance(request, ProduceRequest):
            raise OutcomeUnknown("the broker went away")
        return answer


def test_an_unknown_outcome_is_reported_as_unknown_and_not_retried(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Forgetful) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            assert "outcome is unknown" in await client.error('PUBS t {"Body":"once"}')
            assert await bodies(client, "t", 1) == [["once"]]

    asyncio.run(go())


def test_many_clients_can_publish_to_a_new_topic_at_once(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path) as broker:
            clients = [await broker.connect() for _ in range(20)]
            for client in clients:
                client.type('PUBS fresh {"Body":"x"}')
            assert [await client.line() for client in clients] == ["Done"] * 20

    asyncio.run(go())


class Unled:
    """A channel to a broker that does not lead the partition, and so appends nothing."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def call(self, request: Any, response: type[Any]) -> Any:
        """Forward all but Produce."""
        if not isinstance(request, ProduceRequest):
            return await self._channel.call(request, response)
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        refused = PartitionProduceResponse(index=0, error_code=code, base_offset=-1)
        topic = TopicProduceResponse(name="t", partition_responses=(refused,))
        return ProduceResponse(responses=(topic,))


def test_a_refusal_before_the_append_is_not_reported_as_unknown(tmp_path: Path) -> None:
    async def go() -> None:
        async with text_broker(tmp_path, wrap=Unled) as broker:
            client = await broker.connect()
            await client.ask("CRTP t 1")
            assert "unknown" not in await client.error('PUBS t {"Body":"once"}')

    asyncio.run(go())
