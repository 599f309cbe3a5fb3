"""OffsetCommit: a group's offsets, stored by topic id."""

from msgspec import Struct

from kafkaesque.errors import GroupError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.groups.group_commands import Commit, Identity
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.callback_waits import is_current
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE = 10


class _Share(Struct, kw_only=True):
    """One partition of a request; refused if it has a code."""

    asked: OffsetCommitRequestPartition
    topic_id: bytes
    code: ErrorCode

    @property
    def place(self) -> tuple[bytes, int]:
        return self.topic_id, self.asked.partition_index


async def handle(
    request: OffsetCommitRequest, version: int, session: Session
) -> OffsetCommitResponse:
    """Store offsets of existing partitions; refuse the others individually."""
    is_sure = all(_find(one, version, session) for one in request.topics)
    is_sure = is_sure or await is_current(session.broker)
    shares = [(topic, _shares(topic, version, session, is_sure)) for topic in request.topics]
    good = [s for _, some in shares for s in some if s.code is ErrorCode.NONE]
    command = Commit(
        group=request.group_id,
        generation=request.generation_id_or_member_epoch,
        member=Identity(member_id=request.member_id, instance_id=request.group_instance_id),
        offsets=tuple(
            (
                share.place,
                share.asked.committed_offset,
                share.asked.committed_leader_epoch,
                share.asked.committed_metadata or "",
            )
            for share in good
        ),
    )
    try:
        committed = await ask_group(session, request.group_id, command)
        for share in good:
            if share.place in committed.refused:
                share.code = ErrorCode.OFFSET_METADATA_TOO_LARGE
            elif share.place in committed.homeless:
                share.code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    except GroupError as error:
        for share in good:
            share.code = code_of(error)
    return OffsetCommitResponse(topics=tuple(_answer(topic, some) for topic, some in shares))


def _find(topic: OffsetCommitRequestTopic, version: int, session: Session) -> Topic | None:
    catalog = session.broker.catalog
    if version >= TOPIC_IDS_SINCE:
        return catalog.topic_by_id(topic.topic_id)
    return catalog.topics.get(topic.name)


def _shares(
    topic: OffsetCommitRequestTopic,
    version: int,
    session: Session,
    is_sure: bool,  # noqa: FBT001
) -> list[_Share]:
    found = _find(topic, version, session)
    if found is None:
        by_id = version >= TOPIC_IDS_SINCE
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not is_sure:  # the client must retry
            unknown = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return [_Share(asked=one, topic_id=b"", code=unknown) for one in topic.partitions]
    return [
        _Share(
            asked=one,
            topic_id=found.topic_id,
            code=_check_partition(found, one.partition_index),
        )
        for one in topic.partitions
    ]


def _check_partition(topic: Topic, index: int) -> ErrorCode:
    """Check that the partition exists; the coordinator need not hold it."""
    is_there = 0 <= index < topic.partitions
    return ErrorCode.NONE if is_there else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _answer(topic: OffsetCommitRequestTopic, shares: list[_Share]) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=share.asked.partition_index, error_code=share.code
            )
            for share in shares
        ),
    )
