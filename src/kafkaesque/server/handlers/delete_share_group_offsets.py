"""DeleteShareGroupOffsets: lets a share group without members forget what it has done in topics."""

from collections.abc import Mapping, Set

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.server.answers.share_state import (
    check_is_empty,
    delete_state,
    share_group,
    topics_named,
)
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)


async def handle(
    request: DeleteShareGroupOffsetsRequest, version: int, session: Session
) -> DeleteShareGroupOffsetsResponse:
    """Delete what the group has done in each topic; there it begins as a new group does."""
    names = [topic.topic_name for topic in request.topics]
    try:
        check_is_empty(await share_group(session, request.group_id))
        known = await topics_named(session, names)
        places = [
            (one.topic_id, index) for one in known.values() for index in range(one.partitions)
        ]
        deleted = await delete_state(session, request.group_id, places)
    except KafkaesqueError as error:
        return DeleteShareGroupOffsetsResponse(
            error_code=code_of(error), error_message=message_of(error), responses=()
        )
    return DeleteShareGroupOffsetsResponse(
        error_code=ErrorCode.NONE,
        responses=tuple(_answer(name, known, deleted) for name in names),
    )


def _answer(
    name: str, known: Mapping[str, Topic], deleted: Set[Place]
) -> DeleteShareGroupOffsetsResponseTopic:
    """Report a topic; one without anything to delete is unknown, as in Kafka."""
    topic = known.get(name)
    topic_id = NO_UUID if topic is None else topic.topic_id
    is_deleted = any(place[0] == topic_id for place in deleted)
    message = "there is no such topic" if topic is None else "the group has no offsets there"
    return DeleteShareGroupOffsetsResponseTopic(
        topic_name=name,
        topic_id=topic_id,
        error_code=ErrorCode.NONE if is_deleted else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=None if is_deleted else message,
    )
