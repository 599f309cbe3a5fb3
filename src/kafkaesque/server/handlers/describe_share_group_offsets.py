"""DescribeShareGroupOffsets: where share groups start in partitions, and how far they lag."""

from collections.abc import Mapping

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.queues.share_commands import ShareStart
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.server.answers.named_places import named_places
from kafkaesque.server.answers.partition_ends import Named, ends_of
from kafkaesque.server.answers.share_state import share_group, starts_of, topics_named
from kafkaesque.server.requests.callback_waits import together
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

LAG_SINCE = 1
UNKNOWN = -1


async def handle(
    request: DescribeShareGroupOffsetsRequest, version: int, session: Session
) -> DescribeShareGroupOffsetsResponse:
    """Describe each group independently, all its partitions or some."""
    groups = await together(_group(asked, version, session) for asked in request.groups)
    return DescribeShareGroupOffsetsResponse(groups=tuple(groups))


async def _group(
    asked: DescribeShareGroupOffsetsRequestGroup, version: int, session: Session
) -> DescribeShareGroupOffsetsResponseGroup:
    try:
        topics = await _topics(asked, version, session)
    except KafkaesqueError as error:
        return DescribeShareGroupOffsetsResponseGroup(
            group_id=asked.group_id,
            topics=(),
            error_code=code_of(error),
            error_message=message_of(error),
        )
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=asked.group_id, topics=topics, error_code=ErrorCode.NONE
    )


async def _topics(
    asked: DescribeShareGroupOffsetsRequestGroup, version: int, session: Session
) -> tuple[DescribeShareGroupOffsetsResponseTopic, ...]:
    await share_group(session, asked.group_id)
    known: dict[str, Topic] = {}
    places: list[Place] | None = None
    if asked.topics is not None:
        known = await topics_named(session, (topic.topic_name for topic in asked.topics))
        wanted = {topic.topic_name: topic.partitions for topic in asked.topics}
        places = [(one.topic_id, index) for one in known.values() for index in wanted[one.name]]
    starts = await starts_of(session, asked.group_id, places)
    if asked.topics is None:
        found = named_places(starts, session)
        known = await topics_named(session, (name for _, name, _ in found))
        wanted = {name: indexes for _, name, indexes in found}
    led = [
        (topic, index)
        for topic in known.values()
        for index in wanted[topic.name]
        if (topic.topic_id, index) in starts
    ]
    ends = await ends_of(session, led) if version >= LAG_SINCE else {}
    return tuple(
        _topic(name, known.get(name), indexes, starts, ends) for name, indexes in wanted.items()
    )


def _topic(
    name: str,
    topic: Topic | None,
    indexes: tuple[int, ...],
    starts: Mapping[Place, ShareStart],
    ends: Mapping[Named, Offset],
) -> DescribeShareGroupOffsetsResponseTopic:
    """Describe a topic; the group has no start in one that does not exist, as in Kafka."""
    topic_id = NO_UUID if topic is None else topic.topic_id
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        partitions=tuple(
            _partition(index, starts.get((topic_id, index)), ends.get((name, index)))
            for index in indexes
        ),
    )


def _partition(
    index: int, start: ShareStart | None, end: Offset | None
) -> DescribeShareGroupOffsetsResponsePartition:
    if start is None:
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=UNKNOWN,
            leader_epoch=0,
            error_code=ErrorCode.NONE,
        )
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=start.offset,
        leader_epoch=start.term,
        lag=UNKNOWN if end is None else max(end - start.offset - start.done, 0),
        error_code=ErrorCode.NONE,
    )
