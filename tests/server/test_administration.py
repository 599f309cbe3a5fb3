"""The APIs of administration, asked over a socket."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.topic_settings import NAMES
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.error_codes import ErrorCode
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
from kafkaesque.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkaesque.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kafkaesque.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kafkaesque.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
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
    """Asks one connection, in the newest versions unless told."""

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

    async def replace(self, *settings: tuple[str, str | None], topic: str = "orders") -> int:
        configs = tuple(whole.AlterableConfig(name=n, value=v) for n, v in settings)
        resource = whole.AlterConfigsResource(
            resource_type=TOPIC, resource_name=topic, configs=configs
        )
        request = whole.AlterConfigsRequest(resources=(resource,), validate_only=False)
        return (await self.ask(request, whole.AlterConfigsResponse)).responses[0].error_code

    async def values(self, *names: str, topic: str = "orders") -> dict[str, tuple[str | None, int]]:
        found = await self.describe(TOPIC, topic, names)
        return {c.name: (c.value, c.config_source) for c in found.configs}

    async def delete(self, *topics: DeleteTopicState) -> list[int]:
        request = DeleteTopicsRequest(topics=topics, timeout_ms=1000)
        answer = await self.ask(request, DeleteTopicsResponse)
        return [result.error_code for result in answer.responses]

    async def produce(self, topic: str, count: int = 1, version: int = 9) -> int:
        for _ in range(count):
            batch = build_batch([Record(offset=0, timestamp_ms=1, key=None, value=b"x" * 100)])
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
    """Run a broker and ask it."""

    async def go() -> None:
        async with running(data) as connect:
            await ask(Admin(await connect()))

    asyncio.run(go())


def named(name: str) -> DeleteTopicState:
    return DeleteTopicState(name=name, topic_id=NO_UUID)


# ── creating ─────────────────────────────────────────────────────────────────────────────────


def test_a_new_topic_is_answered_with_all_its_settings(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        made = await admin.create("orders", 3, settings=[("retention.ms", "1000")])
        assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 3, 1)
        assert made.configs is not None
        told = {c.name: (c.value, c.config_source) for c in made.configs}
        assert told.keys() == set(NAMES)
        assert told["retention.ms"] == ("1000", 1)
        assert told["max.message.bytes"] == ("1048588", 5)
        (topic,) = (await admin.metadata("orders")).topics
        assert (topic.topic_id, len(topic.partitions)) == (made.topic_id, 3)

    serve(tmp_path / "data", go)


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        ({"settings": [("no.such", "1")]}, ErrorCode.INVALID_CONFIG),
        ({"settings": [("retention.ms", "soon")]}, ErrorCode.INVALID_CONFIG),
        ({"settings": [("retention.ms", None)]}, ErrorCode.INVALID_CONFIG),
        ({"settings": [("retention.ms", "1"), ("retention.ms", "2")]}, ErrorCode.INVALID_REQUEST),
        ({"replicas": 3}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"replicas": 0}, ErrorCode.INVALID_REPLICATION_FACTOR),
        ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS),
        ({"name": "a_b"}, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ({"name": "a.b"}, ErrorCode.TOPIC_ALREADY_EXISTS),
        ({"assignments": [(0, (1,))]}, ErrorCode.INVALID_REQUEST),
        (
            {"partitions": -1, "replicas": -1, "assignments": [(0, (1,)), (2, (1,))]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
        (
            {"partitions": -1, "replicas": -1, "assignments": [(0, (1, 2))]},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ),
    ],
)
def test_a_topic_that_cannot_be_is_refused_by_its_code(
    tmp_path: Path, topic: dict[str, object], code: ErrorCode
) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("a.b")
        refused = await admin.create(**{"name": "orders", **topic})  # type: ignore[arg-type]
        assert refused.error_code == code
        assert refused.error_message

    serve(tmp_path / "data", go)


def test_replicas_can_be_assigned_to_the_only_broker(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        made = await admin.create("orders", -1, -1, assignments=[(1, (1,)), (0, (1,))])
        assert (made.error_code, made.num_partitions) == (0, 2)

    serve(tmp_path / "data", go)


def test_a_dry_run_makes_nothing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert (await admin.create("orders", is_dry_run=True)).error_code == 0
        (topic,) = (await admin.metadata("orders")).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        bad = await admin.create("orders", settings=[("no.such", "1")], is_dry_run=True)
        assert bad.error_code == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)


# ── deleting ─────────────────────────────────────────────────────────────────────────────────


def test_topics_are_deleted_by_name_and_by_id(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("a")
        b = await admin.create("b")
        by_id = DeleteTopicState(name=None, topic_id=b.topic_id)
        both = DeleteTopicState(name="a", topic_id=b.topic_id)
        assert await admin.delete(both) == [ErrorCode.INVALID_REQUEST]
        assert await admin.delete(named("a"), by_id) == [0, 0]
        unknown = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID]
        assert await admin.delete(named("a"), by_id) == unknown
        old = DeleteTopicsRequest(topic_names=("a",), timeout_ms=1000)
        answer = await admin.ask(old, DeleteTopicsResponse, 1)
        assert answer.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    serve(tmp_path / "data", go)


def test_a_topic_named_twice_is_not_deleted(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("a")
        assert await admin.delete(named("a"), named("a")) == [ErrorCode.INVALID_REQUEST] * 2
        assert (await admin.metadata("a")).topics[0].error_code == 0

    serve(tmp_path / "data", go)


def test_a_fetch_that_waits_learns_that_its_topic_was_deleted(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            admin, waiting = Admin(await connect()), Admin(await connect())
            await admin.create("orders")
            share = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            request = FetchRequest(
                max_wait_ms=60_000,
                min_bytes=1,
                max_bytes=1000,
                topics=(FetchTopic(topic="orders", partitions=(share,)),),
            )
            fetch = asyncio.ensure_future(waiting.ask(request, FetchResponse, 12))
            await admin.metadata("orders")  # the fetch was begun before this is answered
            assert await admin.delete(named("orders")) == [0]
            answer = await fetch
            (found,) = answer.responses[0].partitions
            assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    asyncio.run(go())


# ── growing ──────────────────────────────────────────────────────────────────────────────────


def test_a_topic_grows_and_never_shrinks(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", 2)
        assert await admin.grow(4, is_dry_run=True) == 0
        assert len((await admin.metadata("orders")).topics[0].partitions) == 2
        assert await admin.grow(4) == 0
        partitions = (await admin.metadata("orders")).topics[0].partitions
        assert [(p.partition_index, p.error_code) for p in partitions] == [
            (index, 0) for index in range(4)
        ]
        assert await admin.grow(4) == ErrorCode.INVALID_PARTITIONS
        assert await admin.grow(6, ((1,),)) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await admin.grow(6, ((1,), (2,))) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert await admin.grow(6, ((1,), (1,))) == 0

    serve(tmp_path / "data", go)


# ── settings ─────────────────────────────────────────────────────────────────────────────────


def test_every_setting_of_a_topic_is_described_with_its_source(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", settings=[("cleanup.policy", "compact")])
        found = {c.name: c for c in (await admin.describe(TOPIC, "orders")).configs}
        assert found.keys() == set(NAMES)
        policy = found["cleanup.policy"]
        assert (policy.value, policy.config_source, policy.config_type) == ("compact", 1, 7)
        told = [(s.name, s.value, s.source) for s in policy.synonyms]
        assert told == [("cleanup.policy", "compact", 1), ("log.cleanup.policy", "delete", 5)]
        retention = found["retention.ms"]
        assert (retention.value, retention.config_source) == ("604800000", 5)
        assert (retention.config_type, found["segment.bytes"].config_type) == (5, 3)
        assert retention.documentation is not None
        assert "-1 keeps all" in retention.documentation
        assert not retention.read_only
        assert (await admin.values("segment.ms")).keys() == {"segment.ms"}
        missing = await admin.describe(TOPIC, "none")
        assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        odd = await admin.describe(GROUP, "group")
        assert odd.error_code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


def test_a_broker_tells_its_settings_under_kafkas_names(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        found = await admin.describe(BROKER, "1")
        values = {c.name: c.value for c in found.configs}
        assert values["num.partitions"] == "4"
        assert values["auto.create.topics.enable"] == "true"
        assert values["log.retention.ms"] == "604800000"
        assert all(c.read_only for c in found.configs)
        assert (await admin.describe(BROKER, "")).configs == ()
        assert (await admin.describe(BROKER, "7")).error_code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


def test_single_settings_are_changed_and_act_at_once(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", settings=[("retention.ms", "1000")])
        assert await admin.produce("orders") == 0
        assert await admin.alter(("max.message.bytes", SET, "100")) == (0, None)
        assert await admin.produce("orders") == ErrorCode.MESSAGE_TOO_LARGE
        expected = {"max.message.bytes": ("100", 1), "retention.ms": ("1000", 1)}
        assert await admin.values("max.message.bytes", "retention.ms") == expected
        await admin.alter(("max.message.bytes", DELETE, None))
        assert await admin.produce("orders") == 0

    serve(tmp_path / "data", go)


def test_policies_are_added_and_taken_away(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        policy = "cleanup.policy"
        assert await admin.alter((policy, APPEND, "compact")) == (0, None)
        assert await admin.values(policy) == {policy: ("compact,delete", 1)}
        assert await admin.alter((policy, APPEND, "compact")) == (0, None)
        assert await admin.alter((policy, SUBTRACT, "delete")) == (0, None)
        assert await admin.values(policy) == {policy: ("compact", 1)}
        assert (await admin.alter((policy, SUBTRACT, "compact")))[0] == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("retention.ms", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("no.such", DELETE, None)], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("segment.ms", SET, "5"), ("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_change_that_makes_no_sense_changes_nothing(
    tmp_path: Path, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        before = await admin.values()
        found, message = await admin.alter(*changes)
        assert found == code
        assert message
        assert await admin.values() == before

    serve(tmp_path / "data", go)


def test_only_topics_can_be_changed(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        change = ("num.partitions", SET, "1")
        code, message = await admin.alter(change, topic="1", resource_type=BROKER)
        assert (code, message) == (
            ErrorCode.INVALID_REQUEST,
            "a broker's settings cannot be changed while it runs",
        )
        assert (await admin.alter(change, topic="g", resource_type=GROUP))[0] == code
        missing = (await admin.alter(("retention.ms", SET, "1"), topic="none"))[0]
        assert missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    serve(tmp_path / "data", go)


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        assert await admin.alter(("retention.ms", SET, "1"), is_dry_run=True) == (0, None)
        assert await admin.values("retention.ms") == {"retention.ms": ("604800000", 5)}
        assert (await admin.alter(("retention.ms", SET, "x"), is_dry_run=True))[0]

    serve(tmp_path / "data", go)


def test_replacing_settings_resets_those_that_are_not_named(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", settings=[("retention.ms", "1000")])
        assert await admin.replace(("segment.ms", "5000")) == 0
        expected = {"retention.ms": ("604800000", 5), "segment.ms": ("5000", 1)}
        assert await admin.values("retention.ms", "segment.ms") == expected
        assert await admin.replace(("segment.ms", None)) == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)


# ── records ──────────────────────────────────────────────────────────────────────────────────


def test_records_are_deleted_up_to_an_offset(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        await admin.produce("orders", 5)
        assert await admin.trim(3) == (0, 3)
        assert await admin.trim(1) == (0, 3)
        assert await admin.trim(6) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        assert await admin.trim(-1) == (0, 5)
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
        assert await admin.trim(0, index=1) == await admin.trim(0, "none") == unknown

    serve(tmp_path / "data", go)


# ── describing ───────────────────────────────────────────────────────────────────────────────


def test_the_cluster_is_described_as_in_the_metadata(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        ask = DescribeClusterRequest(include_cluster_authorized_operations=False)
        found = await admin.ask(ask, DescribeClusterResponse)
        known = await admin.metadata()
        assert found.cluster_id == known.cluster_id
        assert found.controller_id == found.brokers[0].broker_id == 1
        assert found.brokers[0].port == known.brokers[0].port
        controllers = DescribeClusterRequest(
            include_cluster_authorized_operations=False, endpoint_type=2
        )
        refused = await admin.ask(controllers, DescribeClusterResponse)
        assert refused.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE

    serve(tmp_path / "data", go)


def test_topics_are_described_a_page_at_a_time(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        for name in ("b", "a", "c"):
            await admin.create(name, 3)
        pages: list[list[tuple[str | None, int]]] = []
        cursor: Cursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest(
                topics=(), response_partition_limit=4, cursor=cursor
            )
            page = await admin.ask(request, DescribeTopicPartitionsResponse)
            pages.append([(t.name, p.partition_index) for t in page.topics for p in t.partitions])
            if page.next_cursor is None:
                break
            cursor = Cursor(
                topic_name=page.next_cursor.topic_name,
                partition_index=page.next_cursor.partition_index,
            )
        assert [len(page) for page in pages] == [4, 4, 1]
        everything = [place for page in pages for place in page]
        assert everything == [(name, index) for name in "abc" for index in range(3)]

    serve(tmp_path / "data", go)


def test_a_topic_that_is_not_there_is_described_as_missing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="none"),))
        (topic,) = (await admin.ask(request, DescribeTopicPartitionsResponse)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    serve(tmp_path / "data", go)


def test_the_room_that_partitions_take_is_told(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders", 2)
        await admin.create("others")
        await admin.produce("orders", 3)
        everything = DescribeLogDirsRequest(topics=None)
        (found,) = (await admin.ask(everything, DescribeLogDirsResponse)).results
        assert found.log_dir == str(tmp_path / "data")
        assert 0 < found.usable_bytes <= found.total_bytes
        sizes = {t.name: [p.partition_size for p in t.partitions] for t in found.topics}
        assert sizes.keys() == {"orders", "others"}
        assert sizes["orders"][0] > 300
        assert sizes["orders"][1] == sizes["others"][0] == 0
        one = DescribeLogDirsRequest(
            topics=(DescribableLogDirTopic(topic="orders", partitions=(1,)),)
        )
        (found,) = (await admin.ask(one, DescribeLogDirsResponse, 1)).results
        assert [p.partition_index for p in found.topics[0].partitions] == [1]

    serve(tmp_path / "data", go)
