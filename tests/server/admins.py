"""Sends administrative requests to a running broker, over a socket."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from kafkaesque.clock import SystemClock
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages import alter_configs as whole
from kafkaesque.wire.messages import incremental_alter_configs as single
from kafkaesque.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkaesque.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from kafkaesque.wire.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.server.test_connection import Client, running

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
R = TypeVar("R")


class Admin:
    """Sends requests over one connection, in the newest versions by default."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def ask(self, request: object, answer: type[R], version: int | None = None) -> R:
        newest = APIS[api_of(answer).key].api.last
        found = await self.client.ask(request, newest if version is None else version, answer)
        assert isinstance(found, answer)
        return found

    async def create(
        self,
        name: str,
        partitions: int = 1,
        replicas: int = 1,
        *,
        settings: Iterable[tuple[str, str | None]] = (),
        assignments: Iterable[tuple[int, tuple[int, ...]]] = (),
        is_dry_run: bool = False,
    ) -> CreatableTopicResult:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replicas,
            assignments=tuple(
                CreatableReplicaAssignment(partition_index=i, broker_ids=b) for i, b in assignments
            ),
            configs=tuple(CreatableTopicConfig(name=n, value=v) for n, v in settings),
        )
        request = CreateTopicsRequest(topics=(topic,), validate_only=is_dry_run)
        return (await self.ask(request, CreateTopicsResponse)).topics[0]

    async def describe(
        self, resource_type: int, name: str, keys: tuple[str, ...] | None = None
    ) -> DescribeConfigsResult:
        resource = DescribeConfigsResource(
            resource_type=resource_type, resource_name=name, configuration_keys=keys
        )
        request = DescribeConfigsRequest(
            resources=(resource,), include_synonyms=True, include_documentation=True
        )
        return (await self.ask(request, DescribeConfigsResponse)).results[0]

    async def alter(
        self,
        *changes: tuple[str, int, str | None],
        topic: str = "orders",
        resource_type: int = TOPIC,
        is_dry_run: bool = False,
    ) -> tuple[int, str | None]:
        configs = tuple(
            single.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes
        )
        resource = single.AlterConfigsResource(
            resource_type=resource_type, resource_name=topic, configs=configs
        )
        request = single.IncrementalAlterConfigsRequest(
            resources=(resource,), validate_only=is_dry_run
        )
        answer = await self.ask(request, single.IncrementalAlterConfigsResponse)
        return answer.responses[0].error_code, answer.responses[0].error_message

    async def replace(
        self,
        *settings: tuple[str, str | None],
        topic: str = "orders",
        resource_type: int = TOPIC,
        is_dry_run: bool = False,
    ) -> int:
        configs = tuple(whole.AlterableConfig(name=n, value=v) for n, v in settings)
        resource = whole.AlterConfigsResource(
            resource_type=resource_type, resource_name=topic, configs=configs
        )
        request = whole.AlterConfigsRequest(resources=(resource,), validate_only=is_dry_run)
        return (await self.ask(request, whole.AlterConfigsResponse)).responses[0].error_code

    async def values(self, *names: str, topic: str = "orders") -> dict[str, tuple[str | None, int]]:
        found = await self.describe(TOPIC, topic, names)
        return {c.name: (c.value, c.config_source) for c in found.configs}

    async def delete(self, *topics: DeleteTopicState) -> list[int]:
        request = DeleteTopicsRequest(topics=topics, timeout_ms=1000)
        answer = await self.ask(request, DeleteTopicsResponse)
        return [result.error_code for result in answer.responses]

    async def produce(self, topic: str, count: int = 1, version: int = 9) -> int:
        now_ms = SystemClock().now_ms()  # an old record would be deleted at once
        for _ in range(count):
            batch = build_batch([Record(offset=0, timestamp_ms=now_ms, key=None, value=b"x" * 100)])
            share = PartitionProduceData(index=0, records=bytes(batch))
            data = TopicProduceData(name=topic, partition_data=(share,))
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,))
            answer = await self.ask(request, ProduceResponse, version)
            code = answer.responses[0].partition_responses[0].error_code
        return code

    async def trim(self, offset: int, topic: str = "orders", index: int = 0) -> tuple[int, int]:
        partition = DeleteRecordsPartition(partition_index=index, offset=offset)
        topics = (DeleteRecordsTopic(name=topic, partitions=(partition,)),)
        request = DeleteRecordsRequest(topics=topics, timeout_ms=1000)
        found = (await self.ask(request, DeleteRecordsResponse)).topics[0].partitions[0]
        return found.error_code, found.low_watermark

    async def grow(
        self, count: int, brokers: tuple[tuple[int, ...], ...] | None = None, **kw: bool
    ) -> int:
        assigned = (
            None
            if brokers is None
            else tuple(CreatePartitionsAssignment(broker_ids=ids) for ids in brokers)
        )
        topic = CreatePartitionsTopic(name="orders", count=count, assignments=assigned)
        request = CreatePartitionsRequest(
            topics=(topic,), timeout_ms=1000, validate_only=kw.get("is_dry_run", False)
        )
        return (await self.ask(request, CreatePartitionsResponse)).results[0].error_code

    async def metadata(self, *names: str) -> MetadataResponse:
        topics = tuple(MetadataRequestTopic(name=name) for name in names)
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        return await self.ask(request, MetadataResponse)


def serve(data: Path, ask: Callable[[Admin], Awaitable[None]]) -> None:
    """Run a broker and connect to it."""

    async def go() -> None:
        async with running(data) as connect:
            await ask(Admin(await connect()))

    asyncio.run(go())


def named(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=NO_UUID)
