"""Share groups under attack: ranges without end, sessions without end, partitions that are not."""

import time

import pytest

from kafkaesque.broker.queues.share_sessions import SESSION_PLACES_MAX, SESSIONS_MAX
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaesque.wire.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kafkaesque.wire.messages.share_fetch import (
    ShareFetchPartition,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchTopic,
)
from kafkaesque.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.fuzz.witness import ask
from tests.hostile.peers import Hostile
from tests.server.running import request

LAST = (1 << 63) - 1
FIRST = -(1 << 63)
ACCEPT, RENEW = 1, 4
SECONDS_MAX = 20.0
"""This machine may be busy; a broker that counts every offset of a range would need years."""
KINDS = 1_900_000
RANGES = 100_000


def topic_id(hostile: Hostile) -> bytes:
    wanted = MetadataRequest(topics=(MetadataRequestTopic(name="plain"),))
    found: bytes = hostile.ask(wanted, 12).topics[0].topic_id
    return found


class Sharer:
    """A member on a connection of its own, without manners."""

    def __init__(self, hostile: Hostile, member: str | None = "me") -> None:
        self.topic_id = topic_id(hostile)
        self.sock = hostile.connect()
        self.member = member
        self.epoch = 0

    def fetch(
        self,
        *indexes: int,
        epoch: int | None = None,
        member: str | None = None,
        group: str = "hostile",
        topic: bytes | None = None,
    ) -> ShareFetchResponse:
        if epoch is None:
            epoch, self.epoch = self.epoch, self.epoch + 1
        partitions = tuple(
            ShareFetchPartition(partition_index=index, acknowledgement_batches=())
            for index in indexes
        )
        named = ShareFetchTopic(topic_id=topic or self.topic_id, partitions=partitions)
        message = ShareFetchRequest(
            group_id=group,
            member_id=member or self.member,
            share_session_epoch=epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_records=500,
            batch_size=500,
            topics=(named,) if indexes else (),
            forgotten_topics_data=(),
        )
        found: ShareFetchResponse = ask(self.sock, request(message, 2), ShareFetchRequest, 2)
        return found

    def acknowledge(
        self, *batches: AcknowledgementBatch, index: int = 0, is_renewal: bool = False
    ) -> int:
        """Acknowledge; return the code, of the request or of the partition."""
        epoch, self.epoch = self.epoch, self.epoch + 1
        partition = AcknowledgePartition(partition_index=index, acknowledgement_batches=batches)
        message = ShareAcknowledgeRequest(
            group_id="hostile",
            member_id=self.member,
            share_session_epoch=epoch,
            is_renew_ack=is_renewal,
            topics=(AcknowledgeTopic(topic_id=self.topic_id, partitions=(partition,)),),
        )
        found: ShareAcknowledgeResponse = ask(
            self.sock, request(message, 2), ShareAcknowledgeRequest, 2
        )
        if found.error_code:
            return found.error_code
        return found.responses[0].partitions[0].error_code


def batch(first: int, last: int, *kinds: int) -> AcknowledgementBatch:
    return AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=kinds)


@pytest.fixture
def sharer(hostile: Hostile) -> Sharer:
    """A member whose group has begun in the one partition."""
    found = Sharer(hostile)
    late = time.monotonic() + SECONDS_MAX
    found.fetch(0)
    # Until the state is there, nobody holds anything: also an answer, but not the one to test.
    while found.acknowledge(batch(0, LAST, ACCEPT)) == ErrorCode.INVALID_RECORD_STATE:
        assert time.monotonic() < late
        found.fetch()
        time.sleep(0.05)
    return found


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0, LAST),
        (FIRST, LAST),
        (-1, -1),
        (FIRST, FIRST),
        (LAST, LAST),
        (LAST, 0),
        (1 << 40, 1 << 41),
    ],
)
def test_ranges_without_end_are_refused_at_once(sharer: Sharer, first: int, last: int) -> None:
    for kind in range(4):
        assert sharer.acknowledge(batch(first, last, kind)) == ErrorCode.INVALID_REQUEST
    code = sharer.acknowledge(batch(first, last, RENEW), is_renewal=True)
    assert code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("kind", [-128, -1, 5, 127])
def test_kinds_that_are_none_are_refused(sharer: Sharer, kind: int) -> None:
    assert sharer.acknowledge(batch(0, 0, kind)) == ErrorCode.INVALID_REQUEST
    assert sharer.acknowledge(batch(0, 1, ACCEPT, kind)) == ErrorCode.INVALID_REQUEST


def test_millions_of_kinds_for_what_nobody_has_are_refused_in_time(sharer: Sharer) -> None:
    assert sharer.acknowledge(batch(0, 0)) == ErrorCode.INVALID_REQUEST
    began = time.monotonic()
    many = batch(0, KINDS - 1, *[ACCEPT] * KINDS)
    assert sharer.acknowledge(many) == ErrorCode.INVALID_REQUEST
    assert time.monotonic() - began < SECONDS_MAX


def test_many_ranges_are_refused_in_time(sharer: Sharer) -> None:
    began = time.monotonic()
    one = batch(0, 0, ACCEPT)
    assert sharer.acknowledge(*[one] * RANGES) == ErrorCode.INVALID_REQUEST
    assert time.monotonic() - began < SECONDS_MAX


def test_thousands_of_partitions_that_are_not_there_are_answered_and_no_more_than_the_limit(
    hostile: Hostile,
) -> None:
    sharer = Sharer(hostile)
    indexes = range(-SESSION_PLACES_MAX // 2, SESSION_PLACES_MAX // 2)
    began = time.monotonic()
    answer = sharer.fetch(*indexes)
    assert answer.error_code == 0
    (topic,) = answer.responses
    assert len(topic.partitions) >= SESSION_PLACES_MAX - 1
    again = sharer.fetch(1 << 30)
    assert again.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert sharer.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert time.monotonic() - began < SECONDS_MAX


def test_sessions_without_end_are_refused_and_gone_with_their_connection(
    hostile: Hostile,
) -> None:
    sharer = Sharer(hostile)
    codes = [
        sharer.fetch(0, epoch=0, member=f"member-{number}").error_code
        for number in range(SESSIONS_MAX + 10)
    ]
    assert codes.count(0) == SESSIONS_MAX
    assert set(codes[SESSIONS_MAX:]) == {ErrorCode.SHARE_SESSION_LIMIT_REACHED}
    sharer.sock.close()
    late = time.monotonic() + SECONDS_MAX
    while Sharer(hostile).fetch(0).error_code:
        assert time.monotonic() < late
        time.sleep(0.05)


@pytest.mark.parametrize("member", ["m" * 37, "m" * 30_000, "€" * 37])
def test_long_member_ids_are_refused(hostile: Hostile, member: str) -> None:
    assert Sharer(hostile, member).fetch(0).error_code == ErrorCode.INVALID_REQUEST


def test_long_groups_are_refused(hostile: Hostile) -> None:
    sharer = Sharer(hostile)
    assert sharer.fetch(0, group="g" * 30_000).error_code == ErrorCode.INVALID_GROUP_ID
    assert sharer.fetch(0, group="€" * 500).error_code == ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("epoch", [-(1 << 31), -2, 1 << 30, (1 << 31) - 1])
def test_epochs_from_the_ends_of_their_range_are_refused(sharer: Sharer, epoch: int) -> None:
    wrong = ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert sharer.epoch != epoch
    assert sharer.fetch(epoch=epoch).error_code == wrong
    assert sharer.fetch().error_code == 0


def test_a_member_that_subscribes_to_many_topics_is_answered_in_time(hostile: Hostile) -> None:
    began = time.monotonic()
    names = tuple(f"nowhere-{number}" for number in range(20_000))
    message = ShareGroupHeartbeatRequest(
        group_id="crowd", member_id="me", member_epoch=0, subscribed_topic_names=names
    )
    answer = hostile.ask(message, 1)
    assert answer.assignment is None or answer.assignment.topic_partitions == ()
    assert time.monotonic() - began < SECONDS_MAX
