"""DeleteTopics: delete topics independently, by name or by id."""

from collections.abc import Set
from functools import partial

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.admin.resources import check_not_in, repeated_in
from kafkaesque.server.requests.callback_waits import carried_out, together
from kafkaesque.server.requests.errors import InvalidRequest, code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)


async def handle(
    request: DeleteTopicsRequest, version: int, session: Session
) -> DeleteTopicsResponse:
    """Delete all valid topics, and report errors for the rest; the files are removed later."""
    named = (DeleteTopicState(name=name, topic_id=NO_UUID) for name in request.topic_names)
    wanted = [*request.topics, *named]
    repeated = repeated_in(_key(topic) for topic in wanted)
    results = await together(_delete(topic, repeated, session) for topic in wanted)
    return DeleteTopicsResponse(responses=tuple(results))


async def _delete(
    topic: DeleteTopicState, repeated: Set[object], session: Session
) -> DeletableTopicResult:
    catalog = session.broker.catalog
    name, topic_id = topic.name, topic.topic_id
    code, message = ErrorCode.NONE, None
    try:
        check_not_in(repeated, _key(topic), "topic")
        if name is not None and topic_id != NO_UUID:
            raise InvalidRequest("give the topic's name or its id, not both")
        found = catalog.topic_of_id(topic_id) if name is None else catalog.topic(name)
        name, topic_id = found.name, found.topic_id
        await carried_out(partial(session.broker.delete_topic, name))
    except KafkaesqueError as error:
        code, message = code_of(error), message_of(error)
    return DeletableTopicResult(
        name=name, topic_id=topic_id, error_code=code, error_message=message
    )


def _key(topic: DeleteTopicState) -> str:
    return topic.name or topic.topic_id.hex()
