"""What ShareFetch and ShareAcknowledge have in common: the session, and the acknowledgements."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol

from kafkaesque.broker.fetch import slots_of
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.queues.partition_shares import PartitionShares
from kafkaesque.broker.queues.share_sessions import OPENING, ShareSession
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown, UnknownTopic
from kafkaesque.machines.catalog.catalog_errors import UnsupportedLevel
from kafkaesque.machines.catalog.features import SHARE_VERSION
from kafkaesque.machines.groups.group_errors import InvalidGroup
from kafkaesque.machines.queues.queue_errors import InvalidAcknowledgement
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.machines.queues.share_values import Ack, AckBatch
from kafkaesque.server.requests.coroutine_runner import Moment
from kafkaesque.server.requests.errors import InvalidRequest
from kafkaesque.server.requests.session import Session
from kafkaesque.text_size import utf8_bytes
from kafkaesque.types import Offset

MEMBER_ID_CHARS_MAX = 36
SETTLE_S_MAX = 15.0
"""How long an acknowledgement waits to be durable; then its outcome is reported as unknown."""

_KINDS = {kind.value: kind for kind in Ack}


class Acknowledged(Protocol):
    """A range of acknowledged offsets, as both requests have it."""

    @property
    def first_offset(self) -> Offset:
        """The first offset of the range."""
        ...

    @property
    def last_offset(self) -> Offset:
        """The last offset of the range."""
        ...

    @property
    def acknowledge_types(self) -> Sequence[int]:
        """One type for all offsets, or one for each."""
        ...


class PartitionAsked(Protocol):
    """One partition of a request."""

    @property
    def partition_index(self) -> int:
        """The partition."""
        ...

    @property
    def acknowledgement_batches(self) -> Sequence[Acknowledged]:
        """What is acknowledged there."""
        ...


class TopicAsked(Protocol):
    """One topic of a request."""

    @property
    def topic_id(self) -> bytes:
        """The topic."""
        ...

    @property
    def partitions(self) -> Sequence[PartitionAsked]:
        """Its partitions."""
        ...


Acks = Mapping[Place, Sequence[AckBatch]]
"""Acknowledgements by partition; empty for a partition that is only named."""


def acks_of(topics: Iterable[TopicAsked]) -> Acks:
    """Return what is acknowledged in each partition of a request.

    librdkafka may name a topic, and even a partition, more than once.
    """
    found: dict[Place, list[AckBatch]] = {}
    for topic in topics:
        for one in topic.partitions:
            batches = found.setdefault((topic.topic_id, one.partition_index), [])
            for batch in one.acknowledgement_batches:
                kinds = _kinds(batch.acknowledge_types)
                batches.append(AckBatch(batch.first_offset, batch.last_offset, kinds))
    return found


def _kinds(numbers: Sequence[int]) -> Sequence[Ack]:
    try:
        return tuple(map(_KINDS.__getitem__, numbers))
    except KeyError as unknown:
        text = f"there is no acknowledgement of type {unknown}"
        raise InvalidAcknowledgement(text) from None


def check_is_served(session: Session) -> None:
    """Raise UnsupportedLevel until all brokers of the cluster know share groups."""
    if SHARE_VERSION not in session.broker.catalog.finalized.levels:
        raise UnsupportedLevel(
            "older brokers of the cluster do not know share groups: when all are upgraded, run "
            f"`kafkaesque cluster upgrade --yes` ({SHARE_VERSION} must be 1)"
        )


def session_of(
    session: Session, group: str | None, member: str | None, epoch: int, acks: Acks
) -> ShareSession:
    """Return the share session of a request, which ends with its connection."""
    check_is_served(session)
    if not group:
        raise InvalidRequest("the group id must not be empty")
    if utf8_bytes(group) > session.broker.config.groups.group_name_bytes_max:
        raise InvalidGroup("the group's name is too long")
    if not member or len(member) > MEMBER_ID_CHARS_MAX:
        raise InvalidRequest(f"the member id must have 1 to {MEMBER_ID_CHARS_MAX} characters")
    if epoch == OPENING and any(acks.values()):
        raise InvalidRequest("a request that opens a session cannot acknowledge anything")
    sessions = session.broker.shares.sessions
    found = sessions.at((group, member), epoch, session.connection)
    session.when_lost[sessions] = partial(sessions.lost, session.connection)
    return found


def shares_of(session: Session, place: Place) -> PartitionShares:
    """Return the groups of a partition; raises if this broker does not lead it."""
    slots = slots_of(session.broker, place[0])
    if isinstance(slots, KafkaesqueError):
        raise slots
    if not 0 <= place[1] < len(slots):
        raise UnknownTopic(f"there is no partition {place[1]}")
    slot = slots[place[1]]
    if not isinstance(slot, Partition):
        raise slot
    return session.broker.shares.of(place, slot)


def check_renewals(session: Session, group: str, acks: Acks, *, is_renewal: bool) -> None:
    """Raise InvalidRequest unless locks are renewed by a request that is meant to do so."""
    renews = any(Ack.RENEW in batch.kinds for batches in acks.values() for batch in batches)
    if renews and not is_renewal:
        raise InvalidRequest("only a request that says so may renew locks")
    if renews and not session.broker.shares.settings.of(group).may_renew:
        raise InvalidRequest("share.renew.acknowledge.enable is false for this group")


class Settling:
    """The acknowledgements of one request, until each is durable or refused."""

    def __init__(self) -> None:
        self.errors: dict[Place, KafkaesqueError | None] = {}
        """By partition: None once its acknowledgements are durable."""
        self._left = 1
        self._all: Moment[None] = Moment()

    def begin(self, session: Session, owner: ShareSession, acks: Acks) -> None:
        """Settle everything; partitions do not affect each other."""
        for place, batches in acks.items():
            if not batches:
                continue
            self.errors[place] = OutcomeUnknown("the acknowledgement is not durable yet")
            self._left += 1
            try:
                shares = shares_of(session, place)
                done = partial(self._done, place)
                shares.settle(owner.group, owner.member, batches, done)
            except KafkaesqueError as error:
                self._done(place, error.with_traceback(None))
        self._count()

    async def finish(self) -> None:
        """Wait until everything is known, but not for ever."""
        timer = asyncio.get_running_loop().call_later(SETTLE_S_MAX, self._all.come, None)
        try:
            await self._all
        finally:
            timer.cancel()

    def _done(self, place: Place, error: KafkaesqueError | None) -> None:
        self.errors[place] = error
        self._count()

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._all.come(None)
