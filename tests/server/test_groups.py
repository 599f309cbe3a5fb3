"""Consumer groups over a socket: each handler's answers, in its oldest and its newest version."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TypeVar

import pytest

from kafkaesque.broker.machine_hosting.machine_snapshots import KEPT
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaesque.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafkaesque.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from kafkaesque.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaesque.wire.messages.metadata import MetadataResponse
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkaesque.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafkaesque.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.server.test_connection import Client, a_topic, running

GROUP = "readers"
METADATA = bytes.fromhex("0001 00000001 0006") + b"orders" + bytes(4)
R = TypeVar("R")


async def ask(client: Client, request: object, version: int, kind: type[R]) -> R:
    answer = await client.ask(request, version, kind)
    assert isinstance(answer, kind)
    return answer


def over_a_socket(data: Path, story: Callable[[Client], Coroutine[None, None, None]]) -> None:
    """Run a story with a client of a node that has a topic and coordinates groups."""

    async def go() -> None:
        async with running(data) as connect:
            client = await connect()
            await client.ask(a_topic("orders"), 9, MetadataResponse)
            await client.ask(FindCoordinatorRequest(key=GROUP), 0, FindCoordinatorResponse)
            await story(client)

    asyncio.run(go())


def join(member_id: str = "", instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=METADATA),),
    )


async def member(client: Client) -> str:
    """Become the only member of the group; return the id."""
    joined = await ask(client, join(), 3, JoinGroupResponse)
    part = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all")
    request = SyncGroupRequest(
        group_id=GROUP, generation_id=1, member_id=joined.member_id, assignments=(part,)
    )
    synced = await ask(client, request, 0, SyncGroupResponse)
    assert (synced.error_code, synced.assignment) == (0, b"all")
    return joined.member_id


def commit(
    offset: int,
    *,
    topic: str = "orders",
    partition: int = 0,
    topic_id: bytes = bytes(16),
    metadata: str | None = None,
    member_id: str = "",
    generation: int = -1,
) -> OffsetCommitRequest:
    one = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=metadata
    )
    row = OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=(one,))
    return OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(row,),
    )


async def committed(client: Client, request: OffsetCommitRequest, version: int = 9) -> int:
    answer = await ask(client, request, version, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


async def fetched(client: Client) -> dict[tuple[str, int], int]:
    """All offsets of the group."""
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=None),))
    answer = await ask(client, request, 9, OffsetFetchResponse)
    assert answer.groups[0].error_code == 0
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in answer.groups[0].topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(7))
def test_this_broker_coordinates_every_group(tmp_path: Path, version: int) -> None:
    async def story(client: Client) -> None:
        request = FindCoordinatorRequest(key=GROUP, coordinator_keys=("a", "b"))
        answer = await ask(client, request, version, FindCoordinatorResponse)
        if version < 4:
            assert (answer.error_code, answer.node_id, answer.host) == (0, 1, "127.0.0.1")
        else:
            found = [(c.key, c.error_code, c.node_id) for c in answer.coordinators]
            assert found == [("a", 0, 1), ("b", 0, 1)]

    over_a_socket(tmp_path, story)


def test_an_invalid_key_has_no_coordinator(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        request = FindCoordinatorRequest(key_type=9, coordinator_keys=("t",))
        answer = await ask(client, request, 6, FindCoordinatorResponse)
        found = [(c.error_code, c.node_id) for c in answer.coordinators]
        assert found == [(ErrorCode.INVALID_REQUEST, -1)]

    over_a_socket(tmp_path, story)


@pytest.mark.parametrize("version", range(10))
def test_a_first_join_is_answered_in_every_version(tmp_path: Path, version: int) -> None:
    async def story(client: Client) -> None:
        joined = await ask(client, join(), version, JoinGroupResponse)
        if version >= 4:
            assert joined.error_code == ErrorCode.MEMBER_ID_REQUIRED
            assert joined.member_id.startswith("test-")
            joined = await ask(client, join(joined.member_id), version, JoinGroupResponse)
        assert (joined.error_code, joined.generation_id) == (0, 1)
        assert joined.protocol_name == "range"
        assert joined.leader == joined.member_id
        assert [(m.member_id, m.metadata) for m in joined.members] == [(joined.member_id, METADATA)]

    over_a_socket(tmp_path, story)


def test_a_member_joins_stays_and_leaves(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        name = await member(client)
        beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=name)
        for version in range(5):
            assert (await ask(client, beat, version, HeartbeatResponse)).error_code == 0
        old = HeartbeatRequest(group_id=GROUP, generation_id=0, member_id=name)
        answer = await ask(client, old, 4, HeartbeatResponse)
        assert answer.error_code == ErrorCode.ILLEGAL_GENERATION
        one = LeaveGroupRequest(group_id=GROUP, member_id=name)
        assert (await ask(client, one, 2, LeaveGroupResponse)).error_code == 0
        answer = await ask(client, beat, 4, HeartbeatResponse)
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        gone = await ask(client, one, 0, LeaveGroupResponse)
        assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        many = LeaveGroupRequest(group_id=GROUP, members=(MemberIdentity(member_id=name),))
        left = await ask(client, many, 5, LeaveGroupResponse)
        assert (left.error_code, left.members[0].error_code) == (0, ErrorCode.UNKNOWN_MEMBER_ID)

    over_a_socket(tmp_path, story)


@pytest.mark.parametrize("version", range(2, 10))
def test_an_offset_is_committed_and_fetched_in_every_version(tmp_path: Path, version: int) -> None:
    async def story(client: Client) -> None:
        assert await committed(client, commit(7, metadata="note"), version) == 0
        row = OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 1))
        for fetch in range(1, 8):
            old = OffsetFetchRequest(group_id=GROUP, topics=(row,))
            answer = await ask(client, old, fetch, OffsetFetchResponse)
            found = answer.topics[0].partitions
            assert [(p.committed_offset, p.metadata) for p in found] == [(7, "note"), (-1, "")]
        assert await fetched(client) == {("orders", 0): 7}

    over_a_socket(tmp_path, story)


def test_an_offset_is_committed_and_fetched_by_topic_id(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        known = await ask(client, a_topic("orders"), 12, MetadataResponse)
        topic_id = known.topics[0].topic_id
        assert await committed(client, commit(9, topic_id=topic_id), 10) == 0
        code = await committed(client, commit(9, topic_id=bytes(16)), 10)
        assert code == ErrorCode.UNKNOWN_TOPIC_ID
        rows = tuple(
            OffsetFetchRequestTopics(topic_id=each, partition_indexes=(0,))
            for each in (topic_id, bytes(15) + b"x")
        )
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GROUP, topics=rows),))
        answer = await ask(client, request, 10, OffsetFetchResponse)
        found = [(t.topic_id, t.partitions[0]) for t in answer.groups[0].topics]
        assert found[0][0] == topic_id
        assert (found[0][1].committed_offset, found[0][1].error_code) == (9, 0)
        assert found[1][1].error_code == ErrorCode.UNKNOWN_TOPIC_ID

    over_a_socket(tmp_path, story)


def test_an_invalid_commit_is_refused_with_an_error_code(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await committed(client, commit(1, topic="nothing")) == unknown
        assert await committed(client, commit(1, partition=99)) == unknown
        assert await committed(client, commit(1, partition=-1)) == unknown
        too_long = ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert await committed(client, commit(1, metadata="x" * 5_000)) == too_long
        illegal = ErrorCode.ILLEGAL_GENERATION
        assert await committed(client, commit(1, member_id="m", generation=3)) == illegal
        name = await member(client)
        assert await committed(client, commit(1)) == ErrorCode.UNKNOWN_MEMBER_ID
        assert await committed(client, commit(1, member_id=name, generation=2)) == illegal
        assert await committed(client, commit(1, member_id=name, generation=1)) == 0
        assert await fetched(client) == {("orders", 0): 1}

    over_a_socket(tmp_path, story)


def test_an_empty_commit_does_no_harm(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        request = OffsetCommitRequest(group_id=GROUP, member_id="", topics=())
        assert (await ask(client, request, 8, OffsetCommitResponse)).topics == ()
        assert await fetched(client) == {}

    over_a_socket(tmp_path, story)


def test_groups_are_listed_described_and_deleted(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        name = await member(client)
        for version in range(6):
            listed = await ask(client, ListGroupsRequest(), version, ListGroupsResponse)
            assert [(g.group_id, g.protocol_type) for g in listed.groups] == [(GROUP, "consumer")]
        for states, types, count in [
            (("stable",), (), 1),
            (("Empty",), (), 0),
            ((), ("Classic",), 1),
            ((), ("consumer",), 0),
        ]:
            wanted = ListGroupsRequest(states_filter=states, types_filter=types)
            assert len((await ask(client, wanted, 5, ListGroupsResponse)).groups) == count
        for version in range(7):
            shown = await ask(
                client, DescribeGroupsRequest(groups=(GROUP, "no")), version, DescribeGroupsResponse
            )
            here, missing = shown.groups
            assert (here.group_state, here.protocol_data) == ("Stable", "range")
            assert (here.members[0].member_id, here.members[0].client_id) == (name, "test")
            assert here.members[0].client_host == "/127.0.0.1"
            assert here.members[0].member_assignment == b"all"
            wanted_code = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
            assert (missing.group_state, missing.error_code) == ("Dead", wanted_code)
        request = DeleteGroupsRequest(groups_names=(GROUP, "no"))
        deleted = await ask(client, request, 2, DeleteGroupsResponse)
        codes = [result.error_code for result in deleted.results]
        assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_ID_NOT_FOUND]
        await ask(client, LeaveGroupRequest(group_id=GROUP, member_id=name), 0, LeaveGroupResponse)
        deleted = await ask(client, request, 0, DeleteGroupsResponse)
        assert deleted.results[0].error_code == 0

    over_a_socket(tmp_path, story)


def test_offsets_are_deleted_unless_a_member_reads_their_topic(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        rows = tuple(
            OffsetDeleteRequestTopic(
                name=topic, partitions=(OffsetDeleteRequestPartition(partition_index=0),)
            )
            for topic in ("orders", "nothing")
        )
        request = OffsetDeleteRequest(group_id=GROUP, topics=rows)
        missing = await ask(client, request, 0, OffsetDeleteResponse)
        assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        await committed(client, commit(1))
        name = await member(client)
        answer = await ask(client, request, 0, OffsetDeleteResponse)
        codes = [topic.partitions[0].error_code for topic in answer.topics]
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, unknown]
        await ask(client, LeaveGroupRequest(group_id=GROUP, member_id=name), 0, LeaveGroupResponse)
        answer = await ask(client, request, 0, OffsetDeleteResponse)
        assert answer.topics[0].partitions[0].error_code == 0
        assert await fetched(client) == {}

    over_a_socket(tmp_path, story)


def test_before_the_first_request_for_a_coordinator_there_is_none(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as connect:
            client = await connect()
            listed = await ask(client, ListGroupsRequest(), 5, ListGroupsResponse)
            assert (listed.error_code, listed.groups) == (0, ())
            beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m")
            answer = await ask(client, beat, 4, HeartbeatResponse)
            assert answer.error_code == ErrorCode.NOT_COORDINATOR

    asyncio.run(go())


def test_a_member_that_disconnects_while_it_waits_does_not_delay_the_others(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path) as connect:
            first, second = await connect(), await connect()
            await first.ask(FindCoordinatorRequest(key=GROUP), 0, FindCoordinatorResponse)
            first.send(join(), 3)
            while not (await ask(second, ListGroupsRequest(), 5, ListGroupsResponse)).groups:
                pass  # each round asks the broker, which handles the other request in the end
            first.writer.transport.abort()
            joined = await ask(second, join(), 3, JoinGroupResponse)
            assert (joined.error_code, joined.generation_id) == (0, 1)
            assert joined.leader != joined.member_id  # the other is a member until it times out

    asyncio.run(go())


def test_a_stable_group_continues_after_a_restart(tmp_path: Path) -> None:
    names: list[str] = []

    async def before(client: Client) -> None:
        names.append(await member(client))
        await committed(client, commit(5, member_id=names[0], generation=1))

    async def after(client: Client) -> None:
        beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=names[0])
        assert (await ask(client, beat, 4, HeartbeatResponse)).error_code == 0
        assert await fetched(client) == {("orders", 0): 5}

    over_a_socket(tmp_path, before)
    over_a_socket(tmp_path, after)
    assert list(tmp_path.glob("__consumer_offsets.*/*/*.machine")) != []
    assert 1 <= len(list(tmp_path.glob("cluster-metadata/*.machine"))) <= KEPT


def test_a_client_that_requests_ids_without_end_is_stopped_and_others_are_served(
    tmp_path: Path,
) -> None:
    async def story(client: Client) -> None:
        limit = 1_000
        codes = [
            (await ask(client, join(), 9, JoinGroupResponse)).error_code for _ in range(limit + 1)
        ]
        assert set(codes[:limit]) == {ErrorCode.MEMBER_ID_REQUIRED}
        assert codes[limit] == ErrorCode.GROUP_MAX_SIZE_REACHED
        other = OffsetCommitRequest(group_id="other", member_id="", topics=())
        assert (await ask(client, other, 8, OffsetCommitResponse)).topics == ()

    over_a_socket(tmp_path, story)


def test_a_member_with_more_than_a_megabyte_of_metadata_is_refused(tmp_path: Path) -> None:
    async def story(client: Client) -> None:
        large = JoinGroupRequestProtocol(name="range", metadata=bytes((1 << 20) + 1))
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=(large,),
        )
        answer = await ask(client, request, 9, JoinGroupResponse)
        assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
        listed = await ask(client, ListGroupsRequest(), 5, ListGroupsResponse)
        assert listed.groups == ()

    over_a_socket(tmp_path, story)
