"""`kafkaesque group` against a fake broker."""

import json
from typing import Any

import pytest

from kafkaesque.cli.main import run
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafkaesque.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkaesque.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafkaesque.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafkaesque.wire.messages.share_group_describe import (
    ShareGroupDescribeGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from tests.client.fake_broker import ALL_VERSIONS, FakeBroker, Reply

TOPICS = {"orders": 2}
TIMES = {-2: 3, -1: 10, 1_000: 5}
"""Offsets by the requested time: the beginning, the end, one second after 1970."""

ASSIGNMENT = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + b"\0\0\0\1" + b"\0\0\0\1" + b"\0\0\0\0"
MEMBER = DescribedGroupMember(
    member_id="m-1",
    client_id="app",
    client_host="/10.0.0.1",
    member_metadata=b"",
    member_assignment=ASSIGNMENT,
)


def offsets(request: ListOffsetsRequest) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        rows = [
            ListOffsetsPartitionResponse(
                partition_index=one.partition_index,
                error_code=0,
                offset=TIMES.get(one.timestamp, -1),
            )
            for one in topic.partitions
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=tuple(rows)))
    return ListOffsetsResponse(topics=tuple(topics))


def described(state: str, *members: DescribedGroupMember, code: int = 0) -> DescribeGroupsResponse:
    group = DescribedGroup(
        error_code=code,
        group_id="g",
        group_state=state,
        protocol_type="consumer",
        protocol_data="range",
        members=members,
    )
    return DescribeGroupsResponse(groups=(group,))


def no_share_group(code: int = ErrorCode.GROUP_ID_NOT_FOUND) -> ShareGroupDescribeResponse:
    group = ShareGroupDescribeGroup(
        error_code=code,
        group_id="g",
        group_state="Dead",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=(),
    )
    return ShareGroupDescribeResponse(groups=(group,))


def committed(*rows: tuple[str, int, int]) -> OffsetFetchResponse:
    topics = []
    for topic, partition, offset in rows:
        row = OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=offset, metadata="", error_code=0
        )
        topics.append(OffsetFetchResponseTopics(name=topic, partitions=(row,)))
    group = OffsetFetchResponseGroup(group_id="g", topics=tuple(topics))
    return OffsetFetchResponse(groups=(group,))


def taken(request: OffsetCommitRequest) -> OffsetCommitResponse:
    topics = []
    for topic in request.topics:
        rows = [
            OffsetCommitResponsePartition(partition_index=one.partition_index, error_code=0)
            for one in topic.partitions
        ]
        topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=tuple(rows)))
    return OffsetCommitResponse(topics=tuple(topics))


def deleted(request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    rows = [DeletableGroupResult(group_id=name, error_code=0) for name in request.groups_names]
    return DeleteGroupsResponse(results=tuple(rows))


def a_broker(**changed: Reply) -> FakeBroker:
    """Return a broker with a group without members, at offset 7 of `orders-0`."""
    table: dict[type[Any], Reply] = {
        ListOffsetsRequest: offsets,
        DescribeGroupsRequest: changed.get("described", described("Empty")),
        ShareGroupDescribeRequest: no_share_group(),
        OffsetFetchRequest: changed.get("committed", committed(("orders", 0, 7))),
        OffsetCommitRequest: taken,
        DeleteGroupsRequest: deleted,
        ListGroupsRequest: ListGroupsResponse(
            error_code=0,
            groups=(
                ListedGroup(
                    group_id="g",
                    protocol_type="consumer",
                    group_state="Empty",
                    group_type="classic",
                ),
            ),
        ),
    }
    return FakeBroker(table, topics=TOPICS)


def moved_to(broker: FakeBroker) -> dict[tuple[str, int], int]:
    """Return the offsets that were committed."""
    (request,) = broker.requests(OffsetCommitRequest)
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in request.topics
        for one in topic.partitions
    }


def test_groups_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker() as broker:
        assert run(["group", "list", "--bootstrap", broker.bootstrap]) == 0
    assert capsys.readouterr().out == "g\tEmpty\tconsumer\tclassic\n"


def test_a_group_is_described_with_members_and_lag(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(described=described("Stable", MEMBER)) as broker:
        assert run(["group", "describe", "g", "--json", "--bootstrap", broker.bootstrap]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["state"], said["protocol"]) == ("Stable", "range")
    assert said["members"] == [
        {"member": "m-1", "client": "app", "host": "10.0.0.1", "partitions": ["orders-1"]}
    ]
    standing = [
        (p["partition"], p["committed"], p["lag"], p["read_by"]) for p in said["partitions"]
    ]
    assert standing == [(0, 7, 3, None), (1, None, None, "app")]


def test_offsets_of_a_deleted_topic_are_shown_without_an_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with a_broker(committed=committed(("gone", 0, 5))) as broker:
        assert run(["group", "describe", "g", "--bootstrap", broker.bootstrap]) == 0
    assert "partition\tgone\t0\t5\t-\t-\t-\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("earliest", 3),
        ("latest", 10),
        ("5", 5),
        ("0", 3),
        ("999", 10),
        ("+2", 9),
        ("-100", 3),
        ("1970-01-01T00:00:01Z", 5),
        ("1 second ago", 10),
    ],
)
def test_a_group_is_moved(to: str, expected: int) -> None:
    with a_broker() as broker:
        words = ["reset", "g", "--to", to, "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 0
        assert moved_to(broker) == {("orders", 0): expected}


def test_a_named_topic_is_moved_in_all_partitions() -> None:
    with a_broker() as broker:
        words = ["reset", "g", "--topic", "orders", "--to", "earliest", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 0
        assert moved_to(broker) == {("orders", 0): 3, ("orders", 1): 3}


def test_single_partitions_can_be_selected() -> None:
    with a_broker() as broker:
        words = ["reset", "g", "--topic", "orders", "--partition", "1", "--to", "5", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 0
        assert moved_to(broker) == {("orders", 1): 5}


def test_without_yes_a_group_stays_and_its_new_positions_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with a_broker() as broker:
        assert run(["group", "reset", "g", "--to", "latest", "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(OffsetCommitRequest) == []
    captured = capsys.readouterr()
    assert captured.out == "orders\t0\t7\t10\n"
    assert "add --yes" in captured.err


def test_a_group_with_members_is_not_moved(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker(described=described("Stable", MEMBER)) as broker:
        words = ["reset", "g", "--to", "latest", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(OffsetCommitRequest) == []
    assert "group g has members (1): stop them first" in capsys.readouterr().err


def test_an_unknown_group_starts_with_its_first_offsets() -> None:
    nobody = described("Dead", code=ErrorCode.GROUP_ID_NOT_FOUND)
    with a_broker(described=nobody, committed=committed()) as broker:
        words = ["reset", "g", "--topic", "orders", "--to", "latest", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 0
        assert moved_to(broker) == {("orders", 0): 10, ("orders", 1): 10}


def test_a_group_without_offsets_needs_a_topic() -> None:
    with a_broker(committed=committed()) as broker:
        words = ["reset", "g", "--to", "latest", "--yes"]
        assert run(["group", *words, "--bootstrap", broker.bootstrap]) == 2


def test_groups_are_deleted_only_with_yes(capsys: pytest.CaptureFixture[str]) -> None:
    with a_broker() as broker:
        assert run(["group", "delete", "g", "--bootstrap", broker.bootstrap]) == 1
        assert broker.requests(DeleteGroupsRequest) == []
        assert capsys.readouterr().out == "g\tEmpty\t0\t1\n"
        assert run(["group", "delete", "g", "--yes", "--bootstrap", broker.bootstrap]) == 0
        assert len(broker.requests(DeleteGroupsRequest)) == 1


def test_reading_as_a_member_reports_missing_groups(
    capsys: pytest.CaptureFixture[str],
) -> None:
    versions = {key: row for key, row in ALL_VERSIONS.items() if key != 11}
    with FakeBroker(topics=TOPICS, versions=versions) as broker:
        words = ["consume", "orders", "--group", "g"]
        assert run([*words, "--bootstrap", broker.bootstrap]) == 1
    assert "does not serve consumer groups" in capsys.readouterr().err
