"""OffsetFetch: committed offsets of groups, for given partitions or for all."""

from collections.abc import Mapping

from msgspec import Struct

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import FetchOffsets, Identity, TopicPartition
from kafkaesque.machines.groups.group_records import CommittedOffset
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.answers.named_places import named_places
from kafkaesque.server.requests.callback_waits import is_current
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

MANY_GROUPS_SINCE = 8
TOPIC_IDS_SINCE = 10
GROUP_ERROR_SINCE = 2

Offsets = Mapping[TopicPartition, CommittedOffset]


class _Wanted(Struct, frozen=True, kw_only=True):
    """A topic of a request; without an id it does not exist."""

    name: str
    topic_id: bytes
    is_known: bool
    partitions: tuple[int, ...]


async def handle(
    request: OffsetFetchRequest, version: int, session: Session
) -> OffsetFetchResponse:
    """Look up each group independently.

    With `require_stable`, an offset that an open transaction is about to change is not returned.
    """
    is_strict = request.require_stable
    if version >= MANY_GROUPS_SINCE:
        # Each group once, however often it is named: it may have offsets in all partitions.
        wanted = {group.group_id: group for group in request.groups}
        groups = [
            await _group(
                group.group_id,
                group.topics,
                version,
                session,
                is_strict=is_strict,
                member=Identity(member_id=group.member_id or ""),
                epoch=group.member_epoch if group.member_id else -1,
            )
            for group in wanted.values()
        ]
        return OffsetFetchResponse(groups=tuple(groups))
    asked = (
        None
        if request.topics is None
        else tuple(
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        )
    )
    found = await _group(request.group_id, asked, version, session, is_strict=is_strict)
    return OffsetFetchResponse(
        topics=tuple(_old_form(topic, found.error_code, version) for topic in found.topics),
        error_code=found.error_code if version >= GROUP_ERROR_SINCE else 0,
    )


async def _group(
    group: str,
    asked: tuple[OffsetFetchRequestTopics, ...] | None,
    version: int,
    session: Session,
    *,
    is_strict: bool,
    member: Identity | None = None,
    epoch: int = -1,
) -> OffsetFetchResponseGroup:
    code, offsets = ErrorCode.NONE, {}
    unstable: frozenset[TopicPartition] = frozenset()
    try:
        command = FetchOffsets(group=group, member=member, epoch=epoch)
        fetched = await ask_group(session, group, command)
        offsets = fetched.offsets
        unstable = fetched.unstable if is_strict else unstable
    except GroupError as error:
        code = code_of(error)
    if code is not ErrorCode.NONE and version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(group_id=group, topics=(), error_code=code)
    if not await _knows_all(offsets, asked, version, session):
        # Without an offset a consumer would start over: it must retry instead.
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if version >= GROUP_ERROR_SINCE:
            return OffsetFetchResponseGroup(group_id=group, topics=(), error_code=code)
    wanted = _all(offsets, session) if asked is None else _found(asked, version, session)
    return OffsetFetchResponseGroup(
        group_id=group,
        topics=tuple(_topic(topic, offsets, unstable, version) for topic in wanted),
        error_code=code,
    )


async def _knows_all(
    offsets: Offsets,
    asked: tuple[OffsetFetchRequestTopics, ...] | None,
    version: int,
    session: Session,
) -> bool:
    """Whether each topic missing from this broker's catalog surely does not exist."""
    catalog = session.broker.catalog
    if asked is None:
        is_known = all(catalog.topic_by_id(topic_id) for topic_id, _ in offsets)
    elif version >= TOPIC_IDS_SINCE:
        is_known = all(catalog.topic_by_id(one.topic_id) for one in asked)
    else:
        is_known = all(one.name in catalog.topics for one in asked)
    return is_known or await is_current(session.broker)


def _all(offsets: Offsets, session: Session) -> list[_Wanted]:
    """Return all committed offsets, except those of deleted topics."""
    return [
        _Wanted(name=name, topic_id=topic_id, is_known=True, partitions=indexes)
        for topic_id, name, indexes in named_places(offsets, session)
    ]


def _found(
    asked: tuple[OffsetFetchRequestTopics, ...], version: int, session: Session
) -> list[_Wanted]:
    catalog = session.broker.catalog
    wanted = []
    for one in asked:
        by_id = version >= TOPIC_IDS_SINCE
        topic = catalog.topic_by_id(one.topic_id) if by_id else catalog.topics.get(one.name)
        wanted.append(
            _Wanted(
                name=one.name,
                topic_id=one.topic_id if topic is None else topic.topic_id,
                is_known=topic is not None or not by_id,
                partitions=one.partition_indexes,
            )
        )
    return wanted


def _topic(
    topic: _Wanted, offsets: Offsets, unstable: frozenset[TopicPartition], version: int
) -> OffsetFetchResponseTopics:
    code = ErrorCode.NONE if topic.is_known else ErrorCode.UNKNOWN_TOPIC_ID
    topic_id = topic.topic_id
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id if version >= TOPIC_IDS_SINCE else NO_UUID,
        name=topic.name,
        partitions=tuple(
            _unstable(partition)
            if (topic_id, partition) in unstable
            else _partition(partition, offsets.get((topic_id, partition)), code)
            for partition in topic.partitions
        ),
    )


def _unstable(partition: int) -> OffsetFetchResponsePartitions:
    return _partition(partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _partition(
    partition: int, found: CommittedOffset | None, code: ErrorCode
) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=-1 if found is None else found.offset,
        committed_leader_epoch=-1 if found is None else found.term,
        metadata="" if found is None else found.metadata,
        error_code=code,
    )


def _old_form(
    topic: OffsetFetchResponseTopics, group_code: int, version: int
) -> OffsetFetchResponseTopic:
    """Convert to the old form; before version 2 a group's error is repeated per partition."""
    is_spread = version < GROUP_ERROR_SINCE
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(
                partition_index=one.partition_index,
                committed_offset=one.committed_offset,
                committed_leader_epoch=one.committed_leader_epoch,
                metadata=one.metadata,
                error_code=group_code if is_spread and group_code else one.error_code,
            )
            for one in topic.partitions
        ),
    )
