"""`kafkaesque topic` against a fake broker."""

import json
import socket
from typing import Any

import pytest
from click.testing import CliRunner

from kafkaesque.cli.main import cli, run
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafkaesque.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.client.fake_broker import HANG_UP, FakeBroker

EARLIEST = -2


def offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Answer that every partition holds the offsets from 3 to 10."""
    topics = []
    for topic in request.topics:
        rows = [
            ListOffsetsPartitionResponse(
                partition_index=one.partition_index,
                error_code=0,
                offset=3 if one.timestamp == EARLIEST else 10,
            )
            for one in topic.partitions
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(rows)))
    return ListOffsetsResponse(topics=tuple(topics))


def created(request: CreateTopicsRequest) -> CreateTopicsResponse:
    rows = [
        CreatableTopicResult(
            name=one.name, error_code=0, error_message=None, num_partitions=one.num_partitions
        )
        for one in request.topics
    ]
    return CreateTopicsResponse(topics=tuple(rows))


def deleted(request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    rows = [DeletableTopicResult(name=one.name, error_code=0) for one in request.topics]
    return DeleteTopicsResponse(responses=tuple(rows))


def configs(_: Any) -> DescribeConfigsResponse:
    rows = tuple(
        DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=False,
            config_source=source,
            is_sensitive=False,
            synonyms=(),
        )
        for name, value, source in (("retention.ms", "60000", 1), ("segment.ms", "7", 5))
    )
    result = DescribeConfigsResult(
        error_code=0, error_message=None, resource_type=2, resource_name="orders", configs=rows
    )
    return DescribeConfigsResponse(results=(result,))


TABLE = {
    ListOffsetsRequest: offsets,
    CreateTopicsRequest: created,
    DeleteTopicsRequest: deleted,
    DescribeConfigsRequest: configs,
}


def test_topics_are_listed_with_tabs_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker(TABLE, topics={"orders": 2, "letters": 1}) as broker:
        assert run(["topic", "list", "--bootstrap", broker.bootstrap]) == 0
    assert capsys.readouterr().out == "letters\t1\t1\norders\t2\t1\n"


def test_the_bootstrap_can_come_from_the_environment() -> None:
    with FakeBroker(TABLE, topics={"orders": 2}) as broker:
        environment = {"KAFKAESQUE_BOOTSTRAP": broker.bootstrap}
        result = CliRunner().invoke(cli, ["topic", "list", "--json"], env=environment)
    assert json.loads(result.stdout) == {"topic": "orders", "partitions": 2, "replicas": 1}


def test_a_topic_is_created_as_requested(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker(TABLE) as broker:
        options = ["--partitions", "6", "--set", "retention.ms=5", "--set", "a.b=c=d"]
        code = run(["topic", "create", "orders", *options, "--bootstrap", broker.bootstrap])
        (asked,) = broker.requests(CreateTopicsRequest)
    assert code == 0
    assert asked.topics[0].num_partitions == 6
    assert asked.topics[0].replication_factor == -1
    assert [(one.name, one.value) for one in asked.topics[0].configs] == [
        ("retention.ms", "5"),
        ("a.b", "c=d"),
    ]
    assert capsys.readouterr().out == "topic orders was created, partitions: 6\n"


def test_a_refusal_is_one_sentence_on_stderr_and_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = CreatableTopicResult(
        name="orders", error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message="It exists."
    )
    table = {CreateTopicsRequest: CreateTopicsResponse(topics=(row,))}
    with FakeBroker(table) as broker:
        assert run(["topic", "create", "orders", "--bootstrap", broker.bootstrap]) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "kafkaesque: topic orders: It exists\n")


def test_a_missing_answer_is_exit_code_3(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker({CreateTopicsRequest: HANG_UP}) as broker:
        assert run(["topic", "create", "orders", "--bootstrap", broker.bootstrap]) == 3
    assert "may or may not" in capsys.readouterr().err


def test_an_unreachable_broker_is_reported_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bootstrap = f"127.0.0.1:{listener.getsockname()[1]}"
    assert run(["topic", "list", "--bootstrap", bootstrap]) == 1
    sentence = f"kafkaesque: cannot reach a broker at {bootstrap}: Connection refused\n"
    assert capsys.readouterr().err == sentence


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--bootstrap", "nonsense:x"],
        ["create", "orders", "--set", "no-equals-sign"],
        ["create", "orders", "--partitions", "0"],
        ["alter", "orders"],
        ["delete"],
    ],
)
def test_wrong_usage_is_exit_code_2(words: list[str]) -> None:
    assert run(["topic", *words]) == 2


def test_a_topic_is_described_with_offsets_and_its_own_settings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with FakeBroker(TABLE, topics={"orders": 1}) as broker:
        assert run(["topic", "describe", "orders", "--json", "--bootstrap", broker.bootstrap]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["partitions"] == [
        {
            "partition": 0,
            "leader": 1,
            "replicas": [1],
            "in_sync": [1],
            "beginning": 3,
            "end": 10,
            "records": 7,
        }
    ]
    assert said["settings"] == [{"name": "retention.ms", "value": "60000"}]


def test_settings_and_partitions_are_changed() -> None:
    row = AlterConfigsResourceResponse(
        error_code=0, error_message=None, resource_type=2, resource_name="orders"
    )
    grown = CreatePartitionsTopicResult(name="orders", error_code=0)
    table = {
        IncrementalAlterConfigsRequest: IncrementalAlterConfigsResponse(responses=(row,)),
        CreatePartitionsRequest: CreatePartitionsResponse(results=(grown,)),
    }
    options = ["--partitions", "4", "--set", "retention.ms=5", "--unset", "segment.ms"]
    with FakeBroker(table, topics={"orders": 1}) as broker:
        assert run(["topic", "alter", "orders", *options, "--bootstrap", broker.bootstrap]) == 0
        (altered,) = broker.requests(IncrementalAlterConfigsRequest)
        (added,) = broker.requests(CreatePartitionsRequest)
    changes = [(one.name, one.config_operation, one.value) for one in altered.resources[0].configs]
    assert changes == [("retention.ms", 0, "5"), ("segment.ms", 1, None)]
    assert added.topics[0].count == 4


def test_without_yes_nothing_is_deleted_and_the_topics_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with FakeBroker(TABLE, topics={"orders": 2}) as broker:
        assert run(["topic", "delete", "orders", "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(DeleteTopicsRequest) == []
    captured = capsys.readouterr()
    assert captured.out == "orders\t2\t14\n"
    assert "add --yes" in captured.err


def test_with_yes_topics_are_deleted() -> None:
    with FakeBroker(TABLE, topics={"orders": 2, "letters": 1}) as broker:
        words = ["delete", "orders", "letters", "orders", "--yes"]
        assert run(["topic", *words, "--bootstrap", broker.bootstrap]) == 0
        asked = broker.requests(DeleteTopicsRequest)
    assert [one.topics[0].name for one in asked] == ["orders", "letters"]


def test_nothing_is_deleted_if_one_of_the_topics_is_missing() -> None:
    with FakeBroker(TABLE, topics={"orders": 2}) as broker:
        words = ["delete", "orders", "nosuch", "--yes"]
        assert run(["topic", *words, "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(DeleteTopicsRequest) == []
