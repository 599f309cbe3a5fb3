"""OffsetDelete: delete a group's offsets, unless a member reads their topic."""

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import Deleted, DeleteOffsets, TopicPartition
from kafkaesque.server.answers.ask_coordinator import ask_group
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def handle(
    request: OffsetDeleteRequest, version: int, session: Session
) -> OffsetDeleteResponse:
    """Delete all valid offsets, and report errors for the rest."""
    places = {
        (topic.name, one.partition_index): _place(topic.name, one.partition_index, session)
        for topic in request.topics
        for one in topic.partitions
    }
    wanted = [(name, at) for (name, _), at in places.items() if not isinstance(at, ErrorCode)]
    try:
        deleted = await ask_group(
            session,
            request.group_id,
            DeleteOffsets(group=request.group_id, places=tuple(wanted)),
        )
    except GroupError as error:
        return OffsetDeleteResponse(error_code=code_of(error), topics=())
    return OffsetDeleteResponse(
        error_code=ErrorCode.NONE,
        topics=tuple(
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(
                        partition_index=one.partition_index,
                        error_code=_code(places[topic.name, one.partition_index], deleted),
                    )
                    for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _place(name: str, index: int, session: Session) -> TopicPartition | ErrorCode:
    topic = session.broker.catalog.topics.get(name)
    if topic is None or not 0 <= index < topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return topic.topic_id, index


def _code(place: TopicPartition | ErrorCode, deleted: Deleted) -> ErrorCode:
    if isinstance(place, ErrorCode):
        return place
    is_refused = place in deleted.refused
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_refused else ErrorCode.NONE
