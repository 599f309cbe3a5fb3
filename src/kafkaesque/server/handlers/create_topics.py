"""CreateTopics: new topics, each by itself."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import topic_created
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULT = -1


async def handle(
    request: CreateTopicsRequest, version: int, session: Session
) -> CreateTopicsResponse:
    """Create what can be created, and say of the rest why not."""
    results = [
        await _create(topic, session, is_dry_run=request.validate_only) for topic in request.topics
    ]
    return CreateTopicsResponse(topics=tuple(results))


async def _create(
    topic: CreatableTopic, session: Session, *, is_dry_run: bool
) -> CreatableTopicResult:
    broker = session.broker
    count = broker.config.partitions_default
    if topic.num_partitions != DEFAULT:
        count = topic.num_partitions
    if topic.replication_factor not in (DEFAULT, 1):
        return CreatableTopicResult(
            name=topic.name,
            error_code=ErrorCode.INVALID_REPLICATION_FACTOR,
            error_message=f"{topic.replication_factor} replicas need as many brokers; there is one",
        )
    settings = {one.name: one.value or "" for one in topic.configs}
    try:
        if is_dry_run:
            broker.catalog.create_topic(topic.name, count, bytes(16), settings)
        else:
            await topic_created(broker, topic.name, count, settings)
    except KafkaesqueError as error:
        return CreatableTopicResult(
            name=topic.name, error_code=code_of(error), error_message=str(error)
        )
    made = broker.catalog.topics.get(topic.name)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=bytes(16) if made is None else made.topic_id,
        error_code=ErrorCode.NONE,
        error_message=None,
        num_partitions=count,
        replication_factor=1,
        configs=(),
    )
