"""Groups whose coordinator assigns, over a socket: the answers of the handlers."""

from pathlib import Path

import pytest

from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kafkaesque.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkaesque.wire.messages.join_group import JoinGroupResponse
from kafkaesque.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaesque.wire.messages.offset_commit import OffsetCommitResponse
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from tests.server.test_connection import Client
from tests.server.test_groups import GROUP, ask, commit, join, over_a_socket

NOT_ASKED = -(1 << 31)
TOPIC_IDS = (ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=bytes(16), partitions=(0,)),)


def beat(
    epoch: int = 0,
    *,
    member_id: str = "me",
    names: tuple[str, ...] | None = ("orders",),
    regex: str | None = None,
    instance: str | None = None,
    assignor: str | None = None,
    timeout_ms: int = 10_000,
    owned: tuple[ConsumerGroupHeartbeatRequestTopicPartitions, ...] | None = (),
    group: str = GROUP,
) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member_id,
        member_epoch=epoch,
        instance_id=instance,
        rebalance_timeout_ms=timeout_ms,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        server_assignor=assignor,
        topic_partitions=owned,
    )


async def send(
    client: Client, request: ConsumerGroupHeartbeatRequest, version: int = 1
) -> ConsumerGroupHeartbeatResponse:
    return await ask(client, request, version, ConsumerGroupHeartbeatResponse)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (beat(group=""), ErrorCode.INVALID_REQUEST),
        (beat(member_id=""), ErrorCode.INVALID_REQUEST),
        (beat(instance=""), ErrorCode.INVALID_REQUEST),
        (beat(-3), ErrorCode.INVALID_REQUEST),
        (beat(-2), ErrorCode.INVALID_REQUEST),
        (beat(timeout_ms=-1), ErrorCode.INVALID_REQUEST),
        (beat(owned=None), ErrorCode.INVALID_REQUEST),
        (beat(owned=TOPIC_IDS), ErrorCode.INVALID_REQUEST),
        (beat(names=()), ErrorCode.INVALID_REQUEST),
        (beat(names=(), regex="("), ErrorCode.INVALID_REGULAR_EXPRESSION),
        (beat(assignor="best"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (beat(1), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat(-1), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
    ids=str,
)
def test_an_invalid_heartbeat_is_refused(
    tmp_path: Path, request_: ConsumerGroupHeartbeatRequest, code: ErrorCode
) -> None:
    async def story(client: Client) -> None:
        answer = await send(client, request_)
        assert (answer.error_code, answer.assignment) == (code, None)
        assert answer.error_message

    over_a_socket(tmp_path, story)


def test_a_member_joins_stays_and_leaves(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        joined = await send(client, beat(member_id=""), version=0)
        assert joined.member_id, "old members get an id"
        assert joined.assignment is not None
        (topic,) = joined.assignment.topic_partitions
        assert len(topic.partitions) == 4
        assert (joined.member_epoch, joined.heartbeat_interval_ms) == (1, 1_000)
        quiet = beat(1, member_id=joined.member_id, names=None, timeout_ms=-1, owned=None)
        stayed = await send(client, quiet)
        assert (stayed.error_code, stayed.assignment) == (0, None)
        gone = await send(client, beat(-1, member_id=joined.member_id))
        assert (gone.error_code, gone.member_epoch) == (0, -1)

    over_a_socket(tmp_path, story)


def test_administrators_see_the_group_in_both_forms(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        await send(client, beat())
        for types, count in (((), 1), (("Consumer",), 1), (("classic",), 0)):
            listing = ListGroupsRequest(types_filter=types)
            listed = await ask(client, listing, 5, ListGroupsResponse)
            assert len(listed.groups) == count, types
        new = ConsumerGroupDescribeRequest(
            group_ids=(GROUP, "nobody"), include_authorized_operations=True
        )
        described = await ask(client, new, 1, ConsumerGroupDescribeResponse)
        group, nobody = described.groups
        # Kafka's AclOperation: read 3, delete 6, describe 8, describe configs 10, alter configs 11.
        assert group.authorized_operations == 0b110101001000
        assert nobody.authorized_operations == NOT_ASKED
        unasked = ConsumerGroupDescribeRequest(group_ids=(GROUP,))
        (same,) = (await ask(client, unasked, 1, ConsumerGroupDescribeResponse)).groups
        assert same.authorized_operations == NOT_ASKED
        assert (group.group_state, group.assignor_name, group.group_epoch) == (
            "Stable",
            "uniform",
            1,
        )
        (one,) = group.members
        assert one.assignment.topic_partitions[0].topic_name == "orders"
        assert one.subscribed_topic_names == ("orders",)
        assert nobody.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        old = DescribeGroupsRequest(groups=(GROUP,))
        (shown,) = (await ask(client, old, 6, DescribeGroupsResponse)).groups
        assert (shown.group_state, shown.protocol_data) == ("Stable", "uniform")
        assert b"orders" in shown.members[0].member_assignment
        assert b"orders" in shown.members[0].member_metadata

    over_a_socket(tmp_path, story)


def test_offsets_are_committed_and_fetched_only_in_the_members_epoch(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        await send(client, beat())
        for epoch, code in ((0, ErrorCode.STALE_MEMBER_EPOCH), (1, ErrorCode.NONE)):
            request = commit(5, member_id="me", generation=epoch)
            said = await ask(client, request, 9, OffsetCommitResponse)
            assert said.topics[0].partitions[0].error_code == code
            wanted = OffsetFetchRequestGroup(
                group_id=GROUP, member_id="me", member_epoch=epoch, topics=None
            )
            fetched = await ask(
                client, OffsetFetchRequest(groups=(wanted,)), 9, OffsetFetchResponse
            )
            assert fetched.groups[0].error_code == code

    over_a_socket(tmp_path, story)


def test_incompatible_members_of_the_other_protocol_are_refused(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        await send(client, beat())
        joined = await ask(client, join(), 5, JoinGroupResponse)
        assert joined.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        await send(client, beat(-1))
        joined = await ask(client, join(), 5, JoinGroupResponse)
        assert joined.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        joined = await ask(client, join(), 3, JoinGroupResponse)
        assert joined.error_code == ErrorCode.NONE
        answer = await send(client, beat())
        assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # nothing is assigned

    over_a_socket(tmp_path, story)
