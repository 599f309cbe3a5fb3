"""What Kafka's own tools set, list and query, over a socket."""

from pathlib import Path

import pytest

from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.server.admins import APPEND, BROKER, DELETE, GROUP, SET, TOPIC, Admin, serve

BROKER_LOGGER = 8
UNKNOWN = -(1 << 31)
RATE = "leader.replication.throttled.rate"
THROTTLED = "leader.replication.throttled.replicas"

TAKEN = [
    ("compression.gzip.level", "6"),
    ("compression.lz4.level", "9"),
    ("compression.zstd.level", "-3"),
    ("file.delete.delay.ms", "1000"),
    ("flush.messages", "10000"),
    ("follower.replication.throttled.replicas", "*"),
    ("index.interval.bytes", "8192"),
    ("leader.replication.throttled.replicas", "0:1,1:2"),
    ("max.compaction.lag.ms", "86400000"),
    ("message.timestamp.after.max.ms", "3600000"),
    ("message.timestamp.before.max.ms", "604800000"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("preallocate", "true"),
    ("segment.index.bytes", "1048576"),
    ("segment.jitter.ms", "500"),
    ("unclean.leader.election.enable", "false"),
]
REFUSED = [
    ("compression.gzip.level", "10"),
    ("leader.replication.throttled.replicas", "all of them"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("min.cleanable.dirty.ratio", "nan"),
    ("preallocate", "perhaps"),
    ("unclean.leader.election.enable", "true"),
]


def test_a_topic_accepts_every_setting_of_kafka_and_describes_it(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        assert (await admin.create("orders", settings=TAKEN)).error_code == 0
        found = {c.name: c for c in (await admin.describe(TOPIC, "orders")).configs}
        assert [(name, found[name].value) for name, _ in TAKEN] == TAKEN
        boolean, double, items = 1, 6, 7
        assert found["preallocate"].config_type == boolean
        assert found["min.cleanable.dirty.ratio"].config_type == double
        assert found[THROTTLED].config_type == items

    serve(tmp_path / "data", go)


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_invalid_values_are_refused(tmp_path: Path, name: str, value: str) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        code, message = await admin.alter((name, SET, value))
        assert code == ErrorCode.INVALID_CONFIG
        assert message is not None
        assert name in message

    serve(tmp_path / "data", go)


def test_a_reassignment_sets_throttles_and_clears_them(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        assert await admin.alter((THROTTLED, SET, "0:1")) == (0, None)
        assert await admin.alter((THROTTLED, APPEND, "0:2")) == (0, None)
        assert (await admin.values(THROTTLED))[THROTTLED][0] == "0:1,0:2"
        assert await admin.alter((THROTTLED, DELETE, None)) == (0, None)
        for name in ("1", ""):
            for change in ((RATE, SET, "1000000"), (RATE, DELETE, None)):
                answer = await admin.alter(change, topic=name, resource_type=BROKER)
                assert answer == (0, None)
        code, _ = await admin.alter((RATE, SET, "fast"), topic="1", resource_type=BROKER)
        assert code == ErrorCode.INVALID_CONFIG
        code, _ = await admin.alter(("draining", SET, "true"), topic="", resource_type=BROKER)
        assert code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


def test_loggers_have_settings(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        loggers = await admin.describe(BROKER_LOGGER, "1")
        levels = {c.name: c.value for c in loggers.configs}
        assert "root" in levels
        assert "kafkaesque.server.edge.connection" in levels
        missing = await admin.describe(BROKER_LOGGER, "7")
        assert missing.error_code == ErrorCode.INVALID_REQUEST

    serve(tmp_path / "data", go)


def test_resources_with_settings_are_listed_by_kind(tmp_path: Path) -> None:
    async def go(admin: Admin) -> None:
        await admin.create("orders")
        change = ("share.auto.offset.reset", SET, "earliest")
        assert await admin.alter(change, topic="workers", resource_type=GROUP) == (0, None)

        async def listed(version: int, *kinds: int) -> tuple[int, list[tuple[int, str]]]:
            request = ListConfigResourcesRequest(resource_types=kinds)
            answer = await admin.ask(request, ListConfigResourcesResponse, version)
            found = [(one.resource_type, one.resource_name) for one in answer.config_resources]
            return answer.error_code, found

        assert await listed(1, TOPIC) == (0, [(TOPIC, "orders")])
        everything = [
            (TOPIC, "orders"),
            (BROKER, "1"),
            (BROKER_LOGGER, "1"),
            (GROUP, "workers"),
        ]
        assert await listed(1) == (0, everything)
        assert await listed(1, GROUP) == (0, [(GROUP, "workers")])
        assert await listed(0) == (0, [])
        assert await listed(1, 77) == (ErrorCode.UNSUPPORTED_VERSION, [])

    serve(tmp_path / "data", go)


def test_clients_are_authorized_for_all_operations(tmp_path: Path) -> None:
    # Kafka's AclOperation: read 3, write 4, create 5, delete 6, alter 7, describe 8, cluster
    # action 9, describe configs 10, alter configs 11, idempotent write 12.
    on_topics = 0b110111111000
    on_groups = 0b110101001000
    on_the_cluster = 0b1111110100000

    async def go(admin: Admin) -> None:
        await admin.create("orders")
        await admin.ask(FindCoordinatorRequest(key="readers"), FindCoordinatorResponse, 3)
        for is_asked in (True, False):
            cluster = await admin.ask(
                DescribeClusterRequest(include_cluster_authorized_operations=is_asked),
                DescribeClusterResponse,
            )
            told = on_the_cluster if is_asked else UNKNOWN
            assert cluster.cluster_authorized_operations == told
            topics = await admin.ask(
                MetadataRequest(
                    topics=(MetadataRequestTopic(name="orders"),),
                    include_topic_authorized_operations=is_asked,
                ),
                MetadataResponse,
            )
            assert topics.cluster_authorized_operations == UNKNOWN
            told = on_topics if is_asked else UNKNOWN
            assert topics.topics[0].topic_authorized_operations == told
            groups = await admin.ask(
                DescribeGroupsRequest(groups=("readers",), include_authorized_operations=is_asked),
                DescribeGroupsResponse,
                5,
            )
            told = on_groups if is_asked else UNKNOWN
            assert groups.groups[0].authorized_operations == told

    serve(tmp_path / "data", go)
