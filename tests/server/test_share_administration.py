"""Administrators see what share groups have done, set where they begin, and delete them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import Any

import pytest

from kafkaesque.machines.catalog.features import CATALOG_VERSION, Finalized
from kafkaesque.server.answers import share_state
from kafkaesque.server.handlers import (
    alter_share_group_offsets,
    consumer_group_heartbeat,
    delete_groups,
    delete_share_group_offsets,
    describe_share_group_offsets,
    share_group_describe,
    share_group_heartbeat,
)
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kafkaesque.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest
from kafkaesque.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kafkaesque.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponseGroup,
)
from kafkaesque.wire.messages.share_group_describe import ShareGroupDescribeRequest
from kafkaesque.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.server.share_members import GROUP, TOPIC, Member, ShareHouse, acknowledged, acquired

ACCEPT = 1
JOINING, LEAVING = 0, -1
LONG_MS = 1000
NEWEST = 1

Starts = dict[tuple[str, int], tuple[int, int]]


class Admin:
    """Sends requests of administrators to the broker."""

    def __init__(self, house: ShareHouse) -> None:
        self.house = house
        self.session = house.session(99)

    async def join(self, group: str = GROUP, epoch: int = JOINING) -> int:
        """Let a member join, or leave."""
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id="me", member_epoch=epoch, subscribed_topic_names=(TOPIC,)
        )
        return int((await self._do(share_group_heartbeat, request, 1)).error_code)

    async def had_members(self, group: str = GROUP) -> None:
        """Let a group exist that has no members."""
        assert await self.join(group) == ErrorCode.NONE
        assert await self.join(group, LEAVING) == ErrorCode.NONE

    async def consumers(self, group: str) -> None:
        """Let a consumer group exist."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="me",
            member_epoch=JOINING,
            rebalance_timeout_ms=LONG_MS,
            subscribed_topic_names=(TOPIC,),
            topic_partitions=(),
        )
        assert (await self._do(consumer_group_heartbeat, request, 1)).error_code == 0

    async def described(
        self,
        *topics: tuple[str, tuple[int, ...]],
        group: str = GROUP,
        version: int = NEWEST,
        all_topics: bool = False,
    ) -> DescribeShareGroupOffsetsResponseGroup:
        named = tuple(
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes)
            for name, indexes in topics
        )
        asked = DescribeShareGroupOffsetsRequestGroup(
            group_id=group, topics=None if all_topics else named
        )
        request = DescribeShareGroupOffsetsRequest(groups=(asked,))
        (found,) = (await self._do(describe_share_group_offsets, request, version)).groups
        assert isinstance(found, DescribeShareGroupOffsetsResponseGroup)
        return found

    async def starts(self, version: int = NEWEST) -> Starts:
        """Where the group begins in all partitions that it has state of, and its lag."""
        found = await self.described(all_topics=True, version=version)
        assert found.error_code == ErrorCode.NONE, found.error_message
        return {
            (topic.topic_name, one.partition_index): (one.start_offset, one.lag)
            for topic in found.topics
            for one in topic.partitions
        }

    async def alter(
        self, *starts: tuple[str, int, int], group: str = GROUP
    ) -> AlterShareGroupOffsetsResponse:
        request = AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=tuple(
                AlterShareGroupOffsetsRequestTopic(
                    topic_name=name,
                    partitions=tuple(
                        AlterShareGroupOffsetsRequestPartition(
                            partition_index=index, start_offset=offset
                        )
                        for other, index, offset in starts
                        if other == name
                    ),
                )
                for name in dict.fromkeys(name for name, _, _ in starts)
            ),
        )
        found = await self._do(alter_share_group_offsets, request, 0)
        assert isinstance(found, AlterShareGroupOffsetsResponse)
        return found

    async def altered(self, *starts: tuple[str, int, int], group: str = GROUP) -> list[int]:
        """Set starts; returns the code of each partition."""
        found = await self.alter(*starts, group=group)
        assert found.error_code == ErrorCode.NONE, found.error_message
        return [one.error_code for topic in found.responses for one in topic.partitions]

    async def delete_offsets(
        self, *topics: str, group: str = GROUP
    ) -> DeleteShareGroupOffsetsResponse:
        request = DeleteShareGroupOffsetsRequest(
            group_id=group,
            topics=tuple(DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics),
        )
        found = await self._do(delete_share_group_offsets, request, 0)
        assert isinstance(found, DeleteShareGroupOffsetsResponse)
        return found

    async def delete(self, group: str = GROUP) -> int:
        request = DeleteGroupsRequest(groups_names=(group,))
        return int((await self._do(delete_groups, request, 2)).results[0].error_code)

    async def state(self, group: str = GROUP) -> tuple[int, str]:
        request = ShareGroupDescribeRequest(group_ids=(group,))
        (found,) = (await self._do(share_group_describe, request, 1)).groups
        return found.error_code, found.group_state

    async def _do(self, handler: Any, request: object, version: int) -> Any:
        return await self.house.now(handler.handle(request, version, self.session))


Story = Callable[[ShareHouse, Admin], Coroutine[Any, Any, None]]


def story(told: Story) -> Callable[[], None]:
    """Run on a broker whose share group exists, without members, and has begun in partition 0."""

    @wraps(told)
    def test() -> None:
        house = ShareHouse()
        house.broker.coordinators.when_ready(lambda _: None)
        house.sync()
        house.open(0)
        asyncio.run(_begin(house))

    async def _begin(house: ShareHouse) -> None:
        admin = Admin(house)
        await admin.had_members()
        await told(house, admin)

    del test.__wrapped__  # pytest would look for its fixtures
    return test


async def settle(member: Member, first: int, last: int) -> int:
    """Accept records of partition 0; returns the code."""
    answer = await member.acknowledge({0: [(first, last, ACCEPT)]})
    return acknowledged(answer)[0].error_code


# ── describing ───────────────────────────────────────────────────────────────────────────────


@story
async def test_what_is_done_is_described(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    assert await admin.starts() == {(TOPIC, 0): (0, 10)}
    me = Member(house)
    await me.fetch(0)
    assert await settle(me, 0, 2) == ErrorCode.NONE
    assert await settle(me, 5, 6) == ErrorCode.NONE
    assert await admin.starts() == {(TOPIC, 0): (3, 5)}, "two are done above the start"
    (topic,) = (await admin.described((TOPIC, (0, 1)))).topics
    assert topic.topic_id == house.topic_id
    assert [one.start_offset for one in topic.partitions] == [3, -1]
    assert [one.lag for one in topic.partitions] == [5, -1]
    term = house.broker.partition(TOPIC, 0).term
    assert [one.leader_epoch for one in topic.partitions] == [term, 0]
    assert [one.error_code for one in topic.partitions] == [0, 0]


@story
async def test_the_first_version_says_nothing_of_a_lag(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, b"v")
    assert await admin.starts(version=0) == {(TOPIC, 0): (0, -1)}


@story
async def test_a_group_has_no_start_in_an_unknown_topic(house: ShareHouse, admin: Admin) -> None:
    found = await admin.described(("no such", (0, 3)), (TOPIC, (9,)))
    assert found.error_code == ErrorCode.NONE
    assert [topic.topic_id for topic in found.topics] == [NO_UUID, house.topic_id]
    told = [
        (one.partition_index, one.start_offset, one.error_code)
        for topic in found.topics
        for one in topic.partitions
    ]
    assert told == [(0, -1, 0), (3, -1, 0), (9, -1, 0)]


@story
async def test_only_share_groups_are_described(house: ShareHouse, admin: Admin) -> None:
    await admin.consumers("readers")
    for name in ("nobody", "readers"):
        found = await admin.described(group=name, all_topics=True)
        assert (found.error_code, found.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, ())
        assert found.error_message


# ── setting the start ────────────────────────────────────────────────────────────────────────


@story
async def test_a_group_begins_again_where_it_was_set(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    me = Member(house)
    await me.fetch(0)
    assert await settle(me, 0, 9) == ErrorCode.NONE
    assert (await me.fetch(epoch=-1)).error_code == ErrorCode.NONE
    assert await admin.starts() == {(TOPIC, 0): (10, 0)}
    assert await admin.altered((TOPIC, 0, 4), (TOPIC, 1, 0)) == [0, 0]
    assert await admin.starts() == {(TOPIC, 0): (4, 6), (TOPIC, 1): (0, 0)}
    # Nothing is written in between: its leader notices because a member comes.
    assert acquired(await Member(house, "you").fetch(0, wait_ms=LONG_MS)) == [(4, 9, 1)]


@story
async def test_what_a_member_holds_is_void_once_the_start_is_set(
    house: ShareHouse, admin: Admin
) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    me = Member(house)
    await me.fetch(0)
    assert await admin.altered((TOPIC, 0, 7)) == [0]
    assert await settle(me, 0, 1) == ErrorCode.REQUEST_TIMED_OUT
    assert await settle(me, 2, 3) == ErrorCode.NONE, "it is below the start by now"
    assert await settle(me, 8, 8) == ErrorCode.INVALID_REQUEST, "nobody was given this since"
    assert await admin.starts() == {(TOPIC, 0): (7, 3)}
    assert acquired(await me.fetch()) == [(7, 9, 1)]


@story
async def test_the_start_of_a_new_group_can_be_set(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    assert await admin.state("planned") == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert await admin.altered((TOPIC, 0, 6), group="planned") == [0]
    assert await admin.state("planned") == (ErrorCode.NONE, "Empty")
    me = Member(house)
    me.group = "planned"
    assert acquired(await me.fetch(0, wait_ms=LONG_MS)) == [(6, 9, 1)]


@story
async def test_a_start_that_was_set_before_any_member_came_holds_under_later_leaders(
    house: ShareHouse, admin: Admin
) -> None:
    house.produce(TOPIC, *[b"v"] * 10, partition=1)
    assert await admin.altered((TOPIC, 1, 6)) == [0]
    assert acquired(await Member(house).fetch(1, wait_ms=LONG_MS), 1) == [(6, 9, 1)]
    house.restart()
    admin = Admin(house)
    house.produce(TOPIC, *[b"v"] * 10, partition=1)
    assert await admin.altered((TOPIC, 1, 15)) == [0], "nobody has read in this term"
    house.restart()
    assert acquired(await Member(house).fetch(1, wait_ms=LONG_MS), 1) == [(15, 19, 1)]


@story
async def test_a_start_must_be_in_the_partition(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    codes = await admin.altered(
        (TOPIC, 0, 11), (TOPIC, 1, -1), (TOPIC, 2, 0), (TOPIC, -1, 0), ("no such", 0, 0)
    )
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    out_of_range = ErrorCode.OFFSET_OUT_OF_RANGE
    assert codes == [out_of_range, out_of_range, unknown, unknown, unknown]
    assert await admin.starts() == {(TOPIC, 0): (0, 10)}
    assert await admin.altered((TOPIC, 0, 10)) == [0], "the end is where nothing is left"


@story
async def test_a_start_that_is_set_twice_is_refused(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    codes = await admin.altered((TOPIC, 0, 1), (TOPIC, 0, 2), (TOPIC, 1, 0))
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, 0]
    assert await admin.starts() == {(TOPIC, 0): (0, 10), (TOPIC, 1): (0, 0)}


@story
async def test_only_share_groups_without_members_are_set(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    await admin.join()
    await admin.consumers("readers")
    refusals = {
        GROUP: ErrorCode.NON_EMPTY_GROUP,
        "readers": ErrorCode.GROUP_ID_NOT_FOUND,
        "": ErrorCode.INVALID_GROUP_ID,
        "g" * 2000: ErrorCode.INVALID_GROUP_ID,
    }
    for name, code in refusals.items():
        found = await admin.alter((TOPIC, 0, 4), group=name)
        assert (found.error_code, found.responses) == (code, ())
        assert found.error_message
    assert await admin.starts() == {(TOPIC, 0): (0, 10)}


@story
async def test_nothing_is_set_before_all_brokers_know_share_groups(
    house: ShareHouse, admin: Admin
) -> None:
    house.broker.catalog.finalized = Finalized(levels={CATALOG_VERSION: 1})
    found = await admin.alter((TOPIC, 0, 0))
    assert (found.error_code, found.responses) == (ErrorCode.UNSUPPORTED_VERSION, ())


# ── deleting ─────────────────────────────────────────────────────────────────────────────────


@story
async def test_a_group_begins_anew_in_a_topic_whose_offsets_were_deleted(
    house: ShareHouse, admin: Admin
) -> None:
    assert house.create("bills", 1) == [None]
    house.produce(TOPIC, *[b"v"] * 10)
    house.produce("bills", *[b"v"] * 3)
    assert await admin.altered((TOPIC, 0, 4), (TOPIC, 1, 0), ("bills", 0, 2)) == [0, 0, 0]
    found = await admin.delete_offsets(TOPIC, "no such")
    assert found.error_code == ErrorCode.NONE
    assert [(one.topic_name, one.topic_id, one.error_code) for one in found.responses] == [
        (TOPIC, house.topic_id, ErrorCode.NONE),
        ("no such", NO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert await admin.starts() == {("bills", 0): (2, 1)}
    assert acquired(await Member(house).fetch(0, wait_ms=LONG_MS)) == [(0, 9, 1)]


@story
async def test_offsets_that_a_group_never_had_cannot_be_deleted(
    house: ShareHouse, admin: Admin
) -> None:
    assert (await admin.delete_offsets(TOPIC)).responses[0].error_code == ErrorCode.NONE
    (again,) = (await admin.delete_offsets(TOPIC)).responses
    assert again.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert again.error_message


@story
async def test_offsets_of_a_group_with_members_stay(house: ShareHouse, admin: Admin) -> None:
    await admin.join()
    await admin.consumers("readers")
    refusals = {
        GROUP: ErrorCode.NON_EMPTY_GROUP,
        "readers": ErrorCode.GROUP_ID_NOT_FOUND,
        "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    for name, code in refusals.items():
        found = await admin.delete_offsets(TOPIC, group=name)
        assert (found.error_code, found.responses) == (code, ())
        assert found.error_message
    assert await admin.delete() == ErrorCode.NON_EMPTY_GROUP
    assert await admin.starts() == {(TOPIC, 0): (0, 0)}


@story
async def test_a_deleted_group_leaves_nothing(house: ShareHouse, admin: Admin) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    house.open(1)
    await admin.had_members("others")
    assert await admin.altered((TOPIC, 0, 4), group="others") == [0]
    me = Member(house)
    await me.fetch(0)
    assert await settle(me, 0, 4) == ErrorCode.NONE
    assert await admin.delete() == ErrorCode.NONE
    assert written_of(house, GROUP) == 0
    assert written_of(house, "others") == 1
    assert await admin.state() == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert await admin.delete() == ErrorCode.GROUP_ID_NOT_FOUND
    # Its member is still there, and what it says now is of a group that is no more.
    assert await settle(me, 5, 5) == ErrorCode.REQUEST_TIMED_OUT
    assert written_of(house, GROUP) == 0
    assert acquired(await Member(house, "you").fetch(0, wait_ms=LONG_MS)) == [(0, 9, 1)]


@story
async def test_a_group_stays_until_all_of_its_state_is_deleted(
    house: ShareHouse, admin: Admin
) -> None:
    house.produce(TOPIC, *[b"v"] * 10)
    assert await admin.altered((TOPIC, 0, 4), (TOPIC, 1, 0)) == [0, 0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(share_state, "LEADER_WAIT_S_MAX", 0)
        for index in range(3, 16):
            house.broker.shares.desk.coordinators.at(index).close()
        assert await admin.delete() == ErrorCode.COORDINATOR_NOT_AVAILABLE
        found = await admin.delete_offsets(TOPIC)
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        described = await admin.described(all_topics=True)
        assert described.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        codes = await admin.altered((TOPIC, 0, 4), (TOPIC, 1, 0))
        assert set(codes) <= {ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert await admin.state() == (ErrorCode.NONE, "Empty")
    house.restart()
    admin = Admin(house)
    assert await admin.delete() == ErrorCode.NONE
    assert written_of(house, GROUP) == 0


@story
async def test_a_deleted_topic_is_forgotten(house: ShareHouse, admin: Admin) -> None:
    assert house.create("bills", 1) == [None]
    house.produce(TOPIC, *[b"v"] * 10)
    assert await admin.altered((TOPIC, 0, 4), ("bills", 0, 0)) == [0, 0]
    me = Member(house)
    assert acquired(await me.fetch(0, wait_ms=LONG_MS)) == [(4, 9, 1)]
    waiting = await house.begun(Member(house, "you").ask_fetch(0, wait_ms=600_000))
    (shares,) = house.broker.shares.partitions
    assert house.delete(TOPIC) == [None]
    assert written_of(house, GROUP) == 1, "of the other topic"
    house.tick()
    await house.settled()
    assert house.broker.shares.partitions == ()
    assert not shares.is_current
    ((one,),) = [topic.partitions for topic in (await waiting).responses]
    assert one.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert await settle(me, 4, 4) == ErrorCode.UNKNOWN_TOPIC_ID
    assert await admin.starts() == {("bills", 0): (0, 0)}
    states = house.broker.shares.desk.coordinators.all
    written = [one.machine.records() for one in states if one.machine is not None]
    assert not any(house.topic_id in record.key for some in written for record in some)


def written_of(house: ShareHouse, group: str) -> int:
    """In how many partitions something is written of a group."""
    machines = [one.machine for one in house.broker.shares.desk.coordinators.all]
    keys: Sequence[bytes] = [
        record.key for one in machines if one is not None for record in one.records()
    ]
    return sum(group.encode() in key for key in keys)
