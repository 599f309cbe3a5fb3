"""The administrative APIs, used over a socket."""

import asyncio
from pathlib import Path

import pytest

from kafkaesque.server.requests.callback_waits import CHANGES_AT_ONCE_MAX
from kafkaesque.topic_settings import TOPIC_SETTINGS
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
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
from tests.server.admins import (
    Admin,
    named,
    serve,
)
from tests.server.test_connection import running

# ── creating ─────────────────────────────────────────────────────────────────────────────────


def test_a_new_topic_is_answered_with_all_its_settings(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        made = await admin.create("orders", 3, settings=[("retention.ms", "1000")])
        assert (made.error_code, made.num_partitions, made.replication_factor) == (0, 3, 1)
        assert made.configs is not None
        told = {c.name: (c.value, c.config_source) for c in made.configs}
        assert told.keys() == TOPIC_SETTINGS.keys()
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
def test_an_invalid_topic_is_refused_with_an_error_code(
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


def test_a_dry_run_creates_nothing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert (await admin.create("orders", is_dry_run=True)).error_code == 0
        (topic,) = (await admin.metadata("orders")).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        bad = await admin.create("orders", settings=[("no.such", "1")], is_dry_run=True)
        assert bad.error_code == ErrorCode.INVALID_CONFIG

    serve(tmp_path / "data", go)


def test_topics_of_one_request_are_created_and_deleted_together_and_answered_in_order(
    tmp_path: Path,
) -> None:
    names = [f"t{number:03}" for number in range(CHANGES_AT_ONCE_MAX + 10)]
    names[3] = "no/name"

    async def go(admin: Admin) -> None:
        wanted = tuple(
            CreatableTopic(
                name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
            for name in names
        )
        request = CreateTopicsRequest(topics=wanted, validate_only=False)
        made = (await admin.ask(request, CreateTopicsResponse)).topics
        assert [one.name for one in made] == names
        assert {one.name: one.error_code for one in made if one.error_code} == {
            "no/name": ErrorCode.INVALID_TOPIC_EXCEPTION
        }
        told = await admin.delete(*map(named, names))
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert told == [missing if name == "no/name" else 0 for name in names]
        listed = await admin.metadata(names[0], names[-1])
        assert [one.error_code for one in listed.topics] == [missing, missing]

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


def test_a_waiting_fetch_learns_that_its_topic_was_deleted(tmp_path: Path) -> None:
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
            await admin.metadata("orders")  # the fetch started before this is answered
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


def test_a_missing_topic_is_described_as_missing(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="none"),))
        (topic,) = (await admin.ask(request, DescribeTopicPartitionsResponse)).topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    serve(tmp_path / "data", go)


def test_the_disk_space_of_partitions_is_described(tmp_path: Path) -> None:
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
