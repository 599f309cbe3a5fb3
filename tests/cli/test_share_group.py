"""`kafkaesque group` with a share group, against a broker with scripted answers."""

import json
from typing import Any

import pytest

from kafkaesque.cli.main import run
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest
from kafkaesque.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafkaesque.wire.messages.list_offsets import ListOffsetsRequest
from kafkaesque.wire.messages.offset_commit import OffsetCommitRequest
from kafkaesque.wire.messages.share_group_describe import (
    ShareGroupDescribeAssignment,
    ShareGroupDescribeGroup,
    ShareGroupDescribeMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupDescribeTopicPartitions,
)
from tests.cli.test_group import TOPICS, deleted, described, no_share_group, offsets
from tests.client.fake_broker import FakeBroker, Reply

GROUP_TYPE, OF_GROUP, DEFAULT = 32, 8, 5
RESET = "share.auto.offset.reset"


def a_member(name: str, client: str) -> ShareGroupDescribeMember:
    """Return a member that reads both partitions of `orders`."""
    places = ShareGroupDescribeTopicPartitions(
        topic_id=bytes(16), topic_name="orders", partitions=(0, 1)
    )
    return ShareGroupDescribeMember(
        member_id=name,
        member_epoch=1,
        client_id=client,
        client_host="/10.0.0.1",
        subscribed_topic_names=("orders",),
        assignment=ShareGroupDescribeAssignment(topic_partitions=(places,)),
    )


def shared(*members: ShareGroupDescribeMember) -> ShareGroupDescribeResponse:
    group = ShareGroupDescribeGroup(
        error_code=0,
        group_id="g",
        group_state="Stable" if members else "Empty",
        group_epoch=1,
        assignment_epoch=1,
        assignor_name="simple",
        members=members,
    )
    return ShareGroupDescribeResponse(groups=(group,))


def standing(*rows: tuple[int, int, int]) -> DescribeShareGroupOffsetsResponse:
    """Partition of `orders`, start and lag."""
    partitions = tuple(
        DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=start, leader_epoch=1, lag=lag, error_code=0
        )
        for index, start, lag in rows
    )
    topic = DescribeShareGroupOffsetsResponseTopic(
        topic_name="orders", topic_id=bytes(16), partitions=partitions
    )
    group = DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=(topic,), error_code=0)
    return DescribeShareGroupOffsetsResponse(groups=(group,))


def moved(code: int = 0, of_partition: int = 0) -> Any:
    def answer(request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
        topics = tuple(
            AlterShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=bytes(16),
                partitions=tuple(
                    AlterShareGroupOffsetsResponsePartition(
                        partition_index=one.partition_index, error_code=of_partition
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        )
        return AlterShareGroupOffsetsResponse(error_code=code, responses=topics)

    return answer


def settings_of(request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    rows = [(RESET, "earliest", OF_GROUP), ("share.isolation.level", "read_committed", DEFAULT)]
    result = DescribeConfigsResult(
        error_code=0,
        error_message=None,
        resource_type=request.resources[0].resource_type,
        resource_name=request.resources[0].resource_name,
        configs=tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                config_source=source,
                is_sensitive=False,
                synonyms=(),
            )
            for name, value, source in rows
        ),
    )
    return DescribeConfigsResponse(results=(result,))


def altered(request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    (one,) = request.resources
    row = AlterConfigsResourceResponse(
        error_code=0,
        error_message=None,
        resource_type=one.resource_type,
        resource_name=one.resource_name,
    )
    return IncrementalAlterConfigsResponse(responses=(row,))


def a_broker(**changed: Reply) -> FakeBroker:
    """Return a broker whose share group has begun in partition 0 and has no members."""
    listed = ListedGroup(
        group_id="g", protocol_type="share", group_state="Empty", group_type="share"
    )
    table: dict[type[Any], Reply] = {
        DescribeGroupsRequest: described("Dead", code=ErrorCode.GROUP_ID_NOT_FOUND),
        ShareGroupDescribeRequest: changed.get("shared", shared()),
        DescribeShareGroupOffsetsRequest: changed.get("standing", standing((0, 7, 2))),
        AlterShareGroupOffsetsRequest: changed.get("moved", moved()),
        DescribeConfigsRequest: settings_of,
        IncrementalAlterConfigsRequest: altered,
        ListOffsetsRequest: offsets,
        DeleteGroupsRequest: deleted,
        ListGroupsRequest: ListGroupsResponse(error_code=0, groups=(listed,)),
    }
    return FakeBroker(table, topics=TOPICS)


def moved_to(broker: FakeBroker) -> dict[tuple[str, int], int]:
    """Return the starts that were set."""
    (request,) = broker.requests(AlterShareGroupOffsetsRequest)
    assert broker.requests(OffsetCommitRequest) == []
    return {
        (topic.topic_name, one.partition_index): one.start_offset
        for topic in request.topics
        for one in topic.partitions
    }


def test_a_share_group_is_listed_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker() as broker:
        assert run(["group", "list", "--bootstrap", broker.bootstrap]) == 0
    assert capsys.readouterr().out == "g\tEmpty\tshare\tshare\n"


def test_a_share_group_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(shared=shared(a_member("m-1", "ann"), a_member("m-2", "bob"))) as broker:
        assert run(["group", "describe", "g", "--json", "--bootstrap", broker.bootstrap]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["state"], said["protocol"]) == ("Stable", "simple")
    places = ["orders-0", "orders-1"]
    assert said["members"] == [
        {"member": "m-1", "client": "ann", "host": "10.0.0.1", "partitions": places},
        {"member": "m-2", "client": "bob", "host": "10.0.0.1", "partitions": places},
    ]
    both = {"topic": "orders", "read_by": ["ann", "bob"]}
    assert said["partitions"] == [
        {**both, "partition": 0, "start": 7, "lag": 2},
        {**both, "partition": 1, "start": None, "lag": None},
    ]
    assert said["settings"] == [{"name": RESET, "value": "earliest"}]


def test_what_a_broker_does_not_say_is_left_open(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(standing=standing((0, 7, -1), (1, -1, -1))) as broker:
        assert run(["group", "describe", "g", "--bootstrap", broker.bootstrap]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == [
        "partition\torders\t0\t7\t-\t-",
        f"setting\t{RESET}\tearliest",
    ]


def test_a_group_of_no_kind_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(shared=no_share_group()) as broker:
        assert run(["group", "describe", "g", "--bootstrap", broker.bootstrap]) == 1
    assert "no such group" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "expected"),
    [("earliest", 3), ("latest", 10), ("5", 5), ("999", 10), ("+2", 9), ("-1", 6)],
)
def test_a_share_group_is_moved(to: str, expected: int) -> None:
    with a_broker() as broker:
        words = ["reset", "g", "--to", to, "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 0
        assert moved_to(broker) == {("orders", 0): expected}


def test_a_share_group_with_members_is_not_moved(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(shared=shared(a_member("m-1", "ann"))) as broker:
        words = ["reset", "g", "--to", "latest", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(AlterShareGroupOffsetsRequest) == []
    assert "has members (1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer", [moved(ErrorCode.NON_EMPTY_GROUP), moved(0, ErrorCode.OFFSET_OUT_OF_RANGE)]
)
def test_a_refusal_is_reported(answer: Reply, capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(moved=answer) as broker:
        words = ["reset", "g", "--to", "latest", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 1
    assert "group g" in capsys.readouterr().err


def test_without_yes_a_share_group_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker() as broker:
        assert run(["group", "reset", "g", "--to", "latest", "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(AlterShareGroupOffsetsRequest) == []
        assert capsys.readouterr().out == "orders\t0\t7\t10\n"
        assert run(["group", "delete", "g", "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(DeleteGroupsRequest) == []
        assert capsys.readouterr().out == "g\tEmpty\t0\t1\n"
        assert run(["group", "delete", "g", "--yes", "--bootstrap", broker.bootstrap]) == 0
        assert len(broker.requests(DeleteGroupsRequest)) == 1


def test_settings_of_a_group_are_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker() as broker:
        words = ["alter", "g", "--set", f"{RESET}=earliest", "--unset", "share.isolation.level"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 0
        (request,) = broker.requests(IncrementalAlterConfigsRequest)
        (one,) = request.resources
        assert (one.resource_type, one.resource_name) == (GROUP_TYPE, "g")
        changes = [(each.name, each.config_operation, each.value) for each in one.configs]
        assert changes == [(RESET, 0, "earliest"), ("share.isolation.level", 1, None)]
        assert not request.validate_only
        assert capsys.readouterr().out == "group g: settings changed\n"
        words.append("--dry-run")
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(IncrementalAlterConfigsRequest)[1].validate_only


@pytest.mark.parametrize("words", [[], ["--set", "a=1", "--unset", "a"]])
def test_a_change_of_nothing_or_of_one_setting_twice_is_refused(words: list[str]) -> None:
    with a_broker() as broker:
        assert run(["group", "alter", "g", *words, "--bootstrap", broker.bootstrap]) == 2
        assert broker.requests(IncrementalAlterConfigsRequest) == []
