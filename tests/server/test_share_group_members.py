"""What members of share groups are told: every error of the protocol, and every way to be woken."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from kafkaesque.broker.queues import share_sessions
from kafkaesque.machines.catalog.features import CATALOG_VERSION, Finalized
from kafkaesque.server.answers import share_requests
from kafkaesque.server.handlers import (
    list_groups,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
)
from kafkaesque.wire.codec import encode_parts
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_groups import ListGroupsRequest
from kafkaesque.wire.messages.share_fetch import (
    AcknowledgementBatch,
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchTopic,
)
from kafkaesque.wire.messages.share_group_describe import ShareGroupDescribeRequest
from kafkaesque.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.server.share_members import (
    GROUP,
    LOCK_MS,
    TOPIC,
    Member,
    ShareHouse,
    acknowledged,
    acquired,
    parts,
    values,
)

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
LONG_MS = 600_000

Story = Callable[[ShareHouse], Coroutine[Any, Any, None]]


def story(told: Story) -> Callable[[], None]:
    """Run on a broker whose share group has begun in both partitions."""

    @wraps(told)
    def test() -> None:
        house = ShareHouse()
        house.open()
        asyncio.run(told(house))

    del test.__wrapped__  # pytest would look for its fixtures
    return test


# ── the session ──────────────────────────────────────────────────────────────────────────────


@story
async def test_a_session_remembers_its_partitions(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b")
    house.produce(TOPIC, b"c", partition=1)
    me = Member(house)
    answer = await me.fetch(0)
    assert acquired(answer) == [(0, 1, 1)]
    assert values(answer) == [b"a", b"b"]
    assert set(parts(answer)) == {0}
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    assert acquired(await me.fetch(1), 1) == [(0, 0, 1)]
    house.produce(TOPIC, b"d")
    house.produce(TOPIC, b"e", partition=1)
    answer = await me.fetch(forgotten=(0,))
    assert set(parts(answer)) == {1}
    assert acquired(answer, 1) == [(1, 1, 1)]


@story
async def test_epochs_that_are_wrong_are_refused(house: ShareHouse) -> None:
    me = Member(house)
    assert (await me.fetch(0, epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert (await me.fetch(0, epoch=-1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    gone = await me.acknowledge({0: [(0, 0, ACCEPT)]}, epoch=1)
    assert (gone.error_code, gone.responses) == (ErrorCode.SHARE_SESSION_NOT_FOUND, ())
    assert gone.error_message
    assert (await me.fetch(0)).error_code == 0
    assert (await me.fetch(0, epoch=2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    opening = await me.acknowledge({}, epoch=0)
    assert opening.error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert (await me.acknowledge({})).error_code == 0
    assert (await me.fetch()).error_code == 0, "both count the same epoch"


def test_sessions_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_sessions, "SESSIONS_MAX", 1)
    house = ShareHouse()

    async def told() -> None:
        assert (await Member(house).fetch(0)).error_code == 0
        answer = await Member(house, "you").fetch(0)
        assert answer.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED

    asyncio.run(told())


@pytest.mark.parametrize(
    ("group", "member", "code"),
    [
        ("", "me", ErrorCode.INVALID_REQUEST),
        (None, "me", ErrorCode.INVALID_REQUEST),
        ("g" * 2000, "me", ErrorCode.INVALID_GROUP_ID),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (GROUP, None, ErrorCode.INVALID_REQUEST),
        (GROUP, "m" * 37, ErrorCode.INVALID_REQUEST),
        (GROUP, "m" * 36, ErrorCode.NONE),
    ],
)
def test_names_are_checked(group: str | None, member: str | None, code: ErrorCode) -> None:
    house = ShareHouse()
    me = Member(house)
    me.group, me.name = group, member
    assert asyncio.run(me.fetch(0)).error_code == code


@story
async def test_opening_again_releases(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    me = Member(house)
    await me.fetch(0)
    # It looks at the state again first, so a fetch that does not wait may get nothing.
    assert acquired(await me.fetch(0, epoch=0, wait_ms=1000)) == [(0, 0, 2)]


@story
async def test_acknowledgements_that_open_a_session_leave_the_old_one(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    me = Member(house)
    await me.fetch(0)
    refused = await me.fetch(acks={0: [(0, 0, ACCEPT)]}, epoch=0)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert acquired(await Member(house, "you").fetch(0)) == []
    assert acknowledged(await me.acknowledge({0: [(0, 0, ACCEPT)]}))[0].error_code == 0


@story
async def test_closing_settles_and_releases_the_rest(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b", b"c")
    me = Member(house)
    await me.fetch(0)
    closed = await me.acknowledge({0: [(1, 1, ACCEPT)]}, epoch=-1)
    assert acknowledged(closed)[0].error_code == 0
    assert len(house.broker.shares.sessions) == 0
    you = Member(house, "you")
    assert acquired(await you.fetch(0)) == [(0, 0, 2), (2, 2, 2)]
    answer = await you.fetch(acks={0: [(0, 0, ACCEPT)]}, epoch=-1)
    assert parts(answer)[0].acknowledge_error_code == 0
    assert acquired(answer) == [], "a session that closes gets nothing more"
    assert acquired(await me.fetch(0, epoch=0)) == [(2, 2, 3)]


@story
async def test_a_lost_connection_releases_what_its_own_sessions_held(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b")
    me, you = Member(house), Member(house, "you", connection=2)
    assert acquired(await me.fetch(0, records=1)) == [(0, 0, 1)]
    assert acquired(await you.fetch(0)) == [(1, 1, 1)]
    me.hang_up()
    assert len(house.broker.shares.sessions) == 1
    assert acquired(await you.fetch()) == [(0, 0, 2)]


@story
async def test_connections_remember_nothing_of_members_that_left(house: ShareHouse) -> None:
    one = Member(house)
    for number in range(50):
        member = Member(house, f"member-{number}")
        member.session = one.session
        await member.fetch(0)
        await member.fetch(epoch=-1)
    assert len(one.session.when_lost) == 1
    assert len(house.broker.shares.sessions) == 0


@story
async def test_a_waiting_fetch_gets_nothing_once_its_session_has_ended(house: ShareHouse) -> None:
    """Nobody would release it."""
    house.produce(TOPIC, b"a")
    me = Member(house)
    await me.fetch(0)
    waiting = await house.begun(me.ask_fetch(wait_ms=LONG_MS))
    assert not waiting.done()
    await me.acknowledge({}, epoch=-1)  # does not wait its turn, and releases
    assert waiting.done()
    assert acquired(waiting.result()) == []
    assert acquired(await Member(house, "you").fetch(0)) == [(0, 0, 2)]


# ── acknowledgements ─────────────────────────────────────────────────────────────────────────


@story
async def test_acknowledgements_are_answered_for_each_partition(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b")
    house.produce(TOPIC, b"c", partition=1)
    me = Member(house)
    await me.fetch(0, 1)
    acks = {0: [(0, 0, ACCEPT), (1, 1, REJECT)], 1: [(0, 0, RELEASE)], 9: [(0, 0, ACCEPT)]}
    found = acknowledged(await me.acknowledge(acks))
    assert {index: one.error_code for index, one in found.items()} == {
        0: 0,
        1: 0,
        9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    answer = await me.fetch()
    assert set(parts(answer)) == {1}
    assert acquired(answer, 1) == [(0, 0, 2)]


@pytest.mark.parametrize(
    ("acks", "code"),
    [
        ([(0, 2, ACCEPT)], ErrorCode.INVALID_RECORD_STATE),
        ([(0, 0, ACCEPT), (3, 3, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(-1, 0, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(1, 0, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(1, 1, ACCEPT), (0, 0, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 1, ACCEPT), (1, 1, ACCEPT)], ErrorCode.INVALID_REQUEST),
        ([(0, 1 << 62, ACCEPT)], ErrorCode.INVALID_REQUEST),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_as_a_whole(
    acks: list[tuple[int, int, int]], code: ErrorCode
) -> None:
    house = ShareHouse()
    house.open()

    async def told() -> None:
        house.produce(TOPIC, b"a", b"b", b"c")
        me, you = Member(house), Member(house, "you")
        await me.fetch(0, records=2)
        await you.fetch(0)
        refused = parts(await me.fetch(acks={0: acks}))[0]
        assert (refused.acknowledge_error_code, refused.error_code) == (code, 0)
        assert refused.acknowledge_error_message
        assert acknowledged(await me.acknowledge({0: [(0, 1, ACCEPT)]}))[0].error_code == 0

    asyncio.run(told())


@pytest.mark.parametrize("kind", [-1, 5, 127])
def test_an_unknown_type_is_refused(kind: int) -> None:
    house = ShareHouse()

    async def told() -> None:
        me = Member(house)
        await me.fetch(0)
        answer = await me.acknowledge({0: [(0, 0, kind)]})
        assert answer.error_code == ErrorCode.INVALID_REQUEST

    asyncio.run(told())


@story
async def test_a_partition_named_twice_is_answered_once(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b", b"c")
    me = Member(house)
    await me.fetch(0, records=2)
    answer = await me.fetch(0, acks={0: [(0, 1, ACCEPT)]})
    assert parts(answer)[0].acknowledge_error_code == 0
    assert acquired(answer) == [(2, 2, 1)]

    def batch(offset: int) -> ShareFetchPartition:
        one = AcknowledgementBatch(
            first_offset=offset, last_offset=offset, acknowledge_types=(ACCEPT,)
        )
        return ShareFetchPartition(partition_index=0, acknowledgement_batches=(one,))

    house.produce(TOPIC, b"d")
    await me.fetch()
    request = ShareFetchRequest(
        group_id=GROUP,
        member_id=me.name,
        share_session_epoch=3,
        max_wait_ms=0,
        min_bytes=1,
        max_records=10,
        batch_size=10,
        topics=tuple(
            ShareFetchTopic(topic_id=house.topic_id, partitions=(batch(offset),))
            for offset in (2, 3)
        ),
        forgotten_topics_data=(),
    )
    merged = await house.now(share_fetch.handle(request, 2, me.session))
    assert parts(merged)[0].acknowledge_error_code == 0
    assert house.broker.shares.partitions[0].groups()[0].start == 4


@story
async def test_records_are_empty_and_never_null(house: ShareHouse) -> None:
    me = Member(house)
    await me.fetch(0)
    answer = await me.fetch(acks={0: [(0, 0, ACCEPT)], 9: [(0, 0, ACCEPT)]})
    assert all(one.records == b"" for one in parts(answer).values())
    assert set(parts(answer)) == {0, 9}
    assert b"".join(encode_parts(answer, 2))


@story
async def test_locks_are_renewed_by_requests_that_say_so(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b")
    me = Member(house)
    await me.fetch(0)
    house.pass_ms(LOCK_MS - 1)
    answer = await me.fetch(acks={0: [(0, 0, RENEW)]}, is_renewal=True)
    assert parts(answer)[0].acknowledge_error_code == 0
    assert answer.acquisition_lock_timeout_ms == LOCK_MS
    house.pass_ms(LOCK_MS - 1)
    renewed = await me.acknowledge({0: [(0, 0, RENEW)]}, is_renewal=True)
    assert acknowledged(renewed)[0].error_code == 0
    house.pass_ms(LOCK_MS - 1)
    assert acquired(await Member(house, "you").fetch(0)) == [(1, 1, 2)]
    assert acknowledged(await me.acknowledge({0: [(0, 0, ACCEPT)]}))[0].error_code == 0


@story
async def test_renewals_that_make_no_sense_are_refused(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    me = Member(house)
    await me.fetch(0)
    renew = {0: [(0, 0, RENEW)]}
    assert (await me.fetch(acks=renew)).error_code == ErrorCode.INVALID_REQUEST
    assert (await me.acknowledge(renew)).error_code == ErrorCode.INVALID_REQUEST
    without = await me.fetch(1, acks=renew, is_renewal=True, epoch=me.epoch)
    assert without.error_code == ErrorCode.INVALID_REQUEST
    hungry = me.ask_fetch(acks=renew, is_renewal=True, wait_ms=1, epoch=me.epoch)
    assert (await house.now(hungry)).error_code == ErrorCode.INVALID_REQUEST
    house.set(share_renew_acknowledge_enable="false")
    off = await me.acknowledge(renew, is_renewal=True)
    assert off.error_code == ErrorCode.INVALID_REQUEST
    assert acknowledged(await me.acknowledge({0: [(0, 0, ACCEPT)]}))[0].error_code == 0


@pytest.mark.parametrize("is_written", [True, False])
def test_an_acknowledgement_without_an_outcome_claims_nothing(
    monkeypatch: pytest.MonkeyPatch, is_written: bool
) -> None:
    monkeypatch.setattr(share_requests, "SETTLE_S_MAX", 0.01)
    house = ShareHouse()
    house.open()

    async def told() -> None:
        house.produce(TOPIC, b"a", b"b")
        me = Member(house)
        await me.fetch(0)
        house.holds_syncs = True
        waiting = await house.begun(me.ask_acknowledge({0: [(0, 0, ACCEPT)]}))
        assert not waiting.done()
        (found,) = acknowledged(await waiting).values()
        assert found.error_code == ErrorCode.REQUEST_TIMED_OUT
        fetching = await house.begun(me.ask_fetch(acks={0: [(1, 1, ACCEPT)]}))
        (both,) = parts(await fetching).values()
        assert both.acknowledge_error_code == ErrorCode.REQUEST_TIMED_OUT
        assert both.error_code == 0
        if is_written:
            house.holds_syncs = False
            house.sync()
            assert acquired(await Member(house, "you").fetch(0)) == []

    asyncio.run(told())


@story
async def test_an_acknowledgement_is_not_answered_before_it_is_durable(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    me = Member(house)
    await me.fetch(0)
    house.holds_syncs = True
    waiting = await house.begun(me.ask_acknowledge({0: [(0, 0, ACCEPT)]}))
    assert not waiting.done()
    house.holds_syncs = False
    await house.settled()
    assert acknowledged(waiting.result())[0].error_code == 0


# ── partitions that cannot be served ─────────────────────────────────────────────────────────


@story
async def test_unknown_topics_and_partitions_are_told(house: ShareHouse) -> None:
    me = Member(house)
    answer = await me.fetch(7, -1, acks={8: [(0, 0, ACCEPT)]}, epoch=0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    found = parts(await me.fetch(7, -1))
    assert {one.error_code for one in found.values()} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert set(found) == {7, -1}
    you = Member(house, "you")
    (one,) = parts(await you.fetch(0, topic_id=bytes(15) + b"x")).values()
    assert one.error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert (one.current_leader.leader_id, one.current_leader.leader_epoch) == (-1, -1)


@story
async def test_a_deleted_topic_is_told_to_who_waits(house: ShareHouse) -> None:
    me = Member(house)
    await me.fetch(0)
    waiting = await house.begun(me.ask_fetch(wait_ms=LONG_MS))
    house.delete(TOPIC)
    await house.settled()
    assert parts(waiting.result())[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    house.tick()
    assert house.broker.shares.partitions == ()


def test_until_its_level_is_finalised_nothing_is_served() -> None:
    house = ShareHouse()
    house.broker.catalog.finalized = Finalized(levels={CATALOG_VERSION: 4})

    async def told() -> None:
        me = Member(house)
        fetched = await me.fetch(0)
        settled = await me.acknowledge({0: [(0, 0, ACCEPT)]})
        beat = ShareGroupHeartbeatRequest(
            group_id=GROUP, member_id="me", member_epoch=0, subscribed_topic_names=(TOPIC,)
        )
        beaten = await house.now(share_group_heartbeat.handle(beat, 1, me.session))
        for answer in (fetched, settled, beaten):
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            assert "cluster upgrade" in (answer.error_message or "")

    asyncio.run(told())


# ── heartbeats ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": ""}, ErrorCode.INVALID_REQUEST),
        ({"member_id": "m" * 37}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": -2}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, ErrorCode.INVALID_REQUEST),
        ({"subscribed_topic_names": ()}, ErrorCode.INVALID_REQUEST),
        ({"member_epoch": 3}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
    ids=str,
)
def test_heartbeats_that_make_no_sense_are_refused(fields: dict[str, Any], code: ErrorCode) -> None:
    house = ShareHouse()

    async def told() -> None:
        assert (await beat(house, **fields)).error_code == code

    asyncio.run(told())


async def beat(house: ShareHouse, **fields: Any) -> Any:
    usual: dict[str, Any] = {
        "group_id": GROUP,
        "member_id": "me",
        "member_epoch": 0,
        "subscribed_topic_names": (TOPIC,),
    }
    errors: list[object] = []
    house.broker.coordinators.when_ready(errors.append)
    house.sync()
    request = ShareGroupHeartbeatRequest(**(usual | fields))
    return await house.now(share_group_heartbeat.handle(request, 1, house.session(1)))


def test_members_join_are_fenced_and_leave() -> None:
    house = ShareHouse()

    async def told() -> None:
        joined = await beat(house)
        assert (joined.error_code, joined.member_id) == (0, "me")
        assert joined.assignment is not None
        (topic,) = joined.assignment.topic_partitions
        assert (topic.topic_id, topic.partitions) == (house.topic_id, (0, 1))
        stayed = await beat(house, member_epoch=joined.member_epoch, subscribed_topic_names=None)
        assert (stayed.error_code, stayed.assignment) == (0, None)
        ahead = await beat(house, member_epoch=joined.member_epoch + 5)
        assert ahead.error_code == ErrorCode.FENCED_MEMBER_EPOCH
        left = await beat(house, member_epoch=-1)
        assert (left.error_code, left.member_epoch) == (0, -1)
        after = await beat(house, member_epoch=joined.member_epoch)
        assert after.error_code == ErrorCode.UNKNOWN_MEMBER_ID

    asyncio.run(told())


def test_administrators_see_share_groups_and_no_others() -> None:
    house = ShareHouse()

    async def told() -> None:
        await beat(house)
        session = house.session(1)
        request = ShareGroupDescribeRequest(
            group_ids=(GROUP, "nobody"), include_authorized_operations=True
        )
        described = await house.now(share_group_describe.handle(request, 1, session))
        group, nobody = described.groups
        assert (group.error_code, group.group_state, group.group_epoch) == (0, "Stable", 1)
        assert group.authorized_operations > 0
        (member,) = group.members
        assert (member.member_id, member.subscribed_topic_names) == ("me", (TOPIC,))
        (topic,) = member.assignment.topic_partitions
        assert (topic.topic_name, topic.partitions) == (TOPIC, (0, 1))
        assert (nobody.error_code, nobody.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
        assert nobody.members == ()
        for types, names in (((), [GROUP]), (("share",), [GROUP]), (("consumer",), [])):
            listing = ListGroupsRequest(types_filter=types)
            listed = await house.now(list_groups.handle(listing, 5, session))
            assert [one.group_id for one in listed.groups] == names

    asyncio.run(told())


# ── waiting ──────────────────────────────────────────────────────────────────────────────────


@story
async def test_new_records_wake(house: ShareHouse) -> None:
    me = Member(house)
    waiting = await house.begun(me.ask_fetch(0, wait_ms=LONG_MS))
    assert not waiting.done()
    house.produce(TOPIC, b"a")
    await house.settled()
    assert acquired(waiting.result()) == [(0, 0, 1)]


@story
async def test_a_release_wakes(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    me, you = Member(house), Member(house, "you", connection=2)
    await me.fetch(0)
    waiting = await house.begun(you.ask_fetch(0, wait_ms=LONG_MS))
    await me.acknowledge({0: [(0, 0, RELEASE)]})
    assert acquired(waiting.result()) == [(0, 0, 2)]
    again = await house.begun(me.ask_fetch(wait_ms=LONG_MS))
    you.hang_up()
    await house.settled()
    assert acquired(again.result()) == [(0, 0, 3)]


@story
async def test_an_expiry_wakes(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    await Member(house).fetch(0)
    waiting = await house.begun(Member(house, "you").ask_fetch(0, wait_ms=LONG_MS))
    house.pass_ms(LOCK_MS - 1)
    await house.settled()
    assert not waiting.done()
    house.pass_ms(1)
    await house.settled()
    assert acquired(waiting.result()) == [(0, 0, 2)]


@story
async def test_an_acknowledgement_that_moves_the_start_of_a_full_window_wakes(
    house: ShareHouse,
) -> None:
    house.set(share_partition_max_record_locks=100)
    for _ in range(3):
        house.produce(TOPIC, *[b"v"] * 50)
    me, you = Member(house), Member(house, "you")
    assert acquired(await me.fetch(0)) == [(0, 99, 1)]
    waiting = await house.begun(you.ask_fetch(0, wait_ms=LONG_MS))
    assert not waiting.done()
    await me.acknowledge({0: [(0, 49, ACCEPT)]})
    assert acquired(waiting.result()) == [(100, 149, 1)]


@story
async def test_a_wait_ends_in_time_and_forgets(house: ShareHouse) -> None:
    me = Member(house)
    loop = asyncio.get_running_loop()
    since = loop.time()
    waiting = await house.begun(me.ask_fetch(0, wait_ms=60))
    assert not waiting.done()
    answer = await asyncio.wait_for(waiting, 20)
    assert loop.time() - since >= 0.06
    assert (answer.error_code, answer.responses) == (0, ())
    (shares, *_) = [one for one in house.broker.shares.partitions if one.place[1] == 0]
    assert not shares._wakers


@story
async def test_nothing_is_waited_for_without_time_or_while_the_broker_stops(
    house: ShareHouse,
) -> None:
    me = Member(house)
    assert (await me.fetch(0, wait_ms=-1)).responses == ()
    waiting = await house.begun(me.ask_fetch(wait_ms=LONG_MS))
    assert not waiting.done()
    house.stopping.begin()
    await house.settled()
    assert waiting.result().responses == ()
    assert (await me.fetch(wait_ms=LONG_MS)).responses == ()


@story
async def test_a_request_for_no_records_gets_none(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a")
    me = Member(house)
    assert acquired(await me.fetch(0, records=0)) == []
    assert acquired(await me.fetch(records=-5)) == []
    assert acquired(await me.fetch(bytes_max=0)) == []
    assert acquired(await me.fetch(bytes_max=1)) == [(0, 0, 1)]


@story
async def test_a_batch_is_not_split_unless_its_member_asks_for_that(house: ShareHouse) -> None:
    house.produce(TOPIC, *[b"v"] * 5)
    me = Member(house)
    me.acquire_mode = 0
    assert acquired(await me.fetch(0, records=2)) == [(0, 4, 1)]


@story
async def test_partitions_get_their_turn(house: ShareHouse) -> None:
    for index in (0, 1):
        house.produce(TOPIC, *[b"v"] * 5, partition=index)
    me = Member(house)
    first = await me.fetch(0, 1, records=2)
    assert (acquired(first), acquired(first, 1)) == ([(0, 1, 1)], [])
    second = await me.fetch(records=2)
    assert (acquired(second), acquired(second, 1)) == ([], [(0, 1, 1)])


@story
async def test_a_cancelled_wait_leaves_nothing(house: ShareHouse) -> None:
    me = Member(house)
    waiting = await house.begun(me.ask_fetch(0, wait_ms=LONG_MS))
    waiting.cancel()
    await house.settled()
    assert waiting.cancelled()
    assert not any(one._wakers for one in house.broker.shares.partitions)
    me.hang_up()
    house.produce(TOPIC, b"a")
    assert acquired(await Member(house, "you").fetch(0)) == [(0, 0, 1)]


def test_a_first_fetch_waits_until_the_topic_of_the_state_is_there() -> None:
    house = ShareHouse()
    house.produce(TOPIC, b"a")

    async def told() -> None:
        waiting = await house.begun(Member(house).ask_fetch(0, wait_ms=LONG_MS))
        assert not waiting.done()
        for _ in range(20):
            house.pass_ms(100)
            await house.settled()
        assert acquired(waiting.result()) == [(0, 0, 1)]

    asyncio.run(told())


@story
async def test_what_was_settled_survives_the_loss_of_power(house: ShareHouse) -> None:
    house.produce(TOPIC, b"a", b"b", b"c", b"d")
    me = Member(house)
    await me.fetch(0)
    await me.acknowledge({0: [(0, 0, ACCEPT), (2, 2, REJECT)]})
    house.crash()
    house.open()
    assert acquired(await Member(house).fetch(0)) == [(1, 1, 1), (3, 3, 1)]
