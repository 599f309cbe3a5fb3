"""Names that could leave the data folder or collide with others, through every API."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaesque.wire.messages.delete_topics import DeleteTopicsRequest
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.hostile.peers import Hostile, a_batch

BAD_NAMES = [
    *("..", ".", "../x", "a/b", "/etc/passwd", "nul\0", "x" * 250, "y" * 32_767, "größe"),
    *("new\r\nline", "\x1b[2J", " ", "a b", "a\\b", "%2e%2e"),
]
MANY = 60_000


def a_topic(
    name: str, *, partitions: int = 1, settings: Mapping[str, str] | None = None
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=one, value=value) for one, value in (settings or {}).items()
        ),
    )


def create(hostile: Hostile, *topics: CreatableTopic, version: int = 4) -> list[int]:
    answer = hostile.ask(CreateTopicsRequest(topics=topics, timeout_ms=5_000), version)
    return [one.error_code for one in answer.topics]


@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: ascii(name[:20]))
def test_every_api_refuses_a_bad_name(hostile: Hostile, name: str) -> None:
    before = _folders(hostile)
    assert create(hostile, a_topic(name)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    assert hostile.ask(wanted, 8).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert hostile.produce(bytes(a_batch()), name) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    gone = hostile.ask(DeleteTopicsRequest(topic_names=(name,), timeout_ms=1_000), 3)
    assert gone.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if "\n" not in name:
        typed = f'"{name}"'.encode()
        for line in (b"CRTP " + typed, b"PUBS " + typed + b' {"Body":"x"}'):
            assert hostile.says(line + b"\r\n")[0].startswith(b'{"Ok":false')
    assert _folders(hostile) == before


def test_names_that_differ_only_in_dots_and_underscores_collide(
    hostile: Hostile,
) -> None:
    assert create(hostile, a_topic("one.two")) == [ErrorCode.NONE]
    assert create(hostile, a_topic("one_two")) == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_names_that_differ_only_in_case_are_two_topics(hostile: Hostile) -> None:
    assert create(hostile, a_topic("case"), a_topic("CASE")) == [ErrorCode.NONE] * 2
    assert hostile.produce(bytes(a_batch()), "CASE") == ErrorCode.NONE


@pytest.mark.parametrize("partitions", [0, -2, -(2**31), 2**31 - 1, 10_001])
def test_invalid_numbers_of_partitions_are_refused(hostile: Hostile, partitions: int) -> None:
    assert create(hostile, a_topic("many", partitions=partitions)) == [ErrorCode.INVALID_PARTITIONS]
    grown = CreatePartitionsTopic(name="plain", count=partitions, assignments=None)
    message = CreatePartitionsRequest(topics=(grown,), timeout_ms=1_000, validate_only=False)
    answer = hostile.ask(message, 1)
    assert answer.results[0].error_code == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("value", [str(2**63), str(-(2**63) - 1), "9" * 5_000, "1e9", "", "\0"])
def test_invalid_values_of_settings_are_refused(hostile: Hostile, value: str) -> None:
    for name in ("retention.ms", "segment.bytes", "max.message.bytes", "cleanup.policy"):
        codes = create(hostile, a_topic("set", settings={name: value}))
        assert codes == [ErrorCode.INVALID_CONFIG]


def test_a_refusal_that_quotes_a_long_name_still_fits_into_old_versions(hostile: Hostile) -> None:
    long = "\0" * 32_767
    setting = CreatableTopicConfig(name=long, value=long)
    topic = CreatableTopic(
        name="long", num_partitions=1, replication_factor=1, assignments=(), configs=(setting,)
    )
    assert create(hostile, topic, version=2) == [ErrorCode.INVALID_CONFIG]
    twice = (a_topic(long), a_topic(long))
    assert create(hostile, *twice, version=2) == [ErrorCode.INVALID_REQUEST]
    resource = DescribeConfigsResource(resource_type=2, resource_name=long)
    answer = hostile.ask(DescribeConfigsRequest(resources=(resource,)), 1)
    assert answer.results[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_repeated_name_is_answered_once(hostile: Hostile) -> None:
    topics = (MetadataRequestTopic(name="plain"),) * MANY
    assert len(hostile.ask(MetadataRequest(topics=topics), 9).topics) == 1
    resource = DescribeConfigsResource(resource_type=2, resource_name="plain")
    answer = hostile.ask(DescribeConfigsRequest(resources=(resource,) * MANY), 4)
    assert len(answer.results) == 1
    groups = hostile.ask(DescribeGroupsRequest(groups=("g",) * MANY), 5).groups
    assert len(groups) == 1


def test_many_unknown_names_are_refused_quickly(hostile: Hostile) -> None:
    names = tuple(f"/{number}" for number in range(MANY))
    codes = create(hostile, *(a_topic(name) for name in names))
    assert set(codes) == {ErrorCode.INVALID_TOPIC_EXCEPTION}
    gone = hostile.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=1_000), 5)
    assert {one.error_code for one in gone.responses} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_a_topic_is_created_and_deleted_many_times(hostile: Hostile) -> None:
    for _ in range(50):
        assert create(hostile, a_topic("again")) == [ErrorCode.NONE]
        assert hostile.produce(bytes(a_batch()), "again") == ErrorCode.NONE
        gone = hostile.ask(DeleteTopicsRequest(topic_names=("again",), timeout_ms=1_000), 5)
        assert gone.responses[0].error_code == ErrorCode.NONE


def _folders(hostile: Hostile) -> set[Path]:
    """Return the contents of the data folder and its parent, without the witness's topics."""
    data = hostile.victim.data
    found = {*data.parent.iterdir(), *data.iterdir()}
    return {path for path in found if "witness" not in path.name and "deleted" not in path.name}
