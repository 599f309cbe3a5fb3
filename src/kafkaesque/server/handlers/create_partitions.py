"""CreatePartitions: topics grow; nothing that they hold moves."""

from collections import Counter
from functools import partial

from kafkaesque.errors import InvalidAssignment, InvalidRequest, KafkaesqueError
from kafkaesque.server.assignments import check_assignments
from kafkaesque.server.errors import code_of
from kafkaesque.server.places import nodes_of
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import done
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def handle(
    request: CreatePartitionsRequest, version: int, session: Session
) -> CreatePartitionsResponse:
    """Let each topic grow by itself, or only say whether it could."""
    times = Counter(topic.name for topic in request.topics)
    results = []
    for name, count in times.items():
        topic = next(topic for topic in request.topics if topic.name == name)
        code, message = ErrorCode.NONE, None
        try:
            if count > 1:
                raise InvalidRequest(f"the request names topic {name} more than once")
            await _grow(topic, session, is_dry_run=request.validate_only)
        except KafkaesqueError as error:
            code, message = code_of(error), str(error)
        results.append(
            CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
        )
    return CreatePartitionsResponse(results=tuple(results))


async def _grow(topic: CreatePartitionsTopic, session: Session, *, is_dry_run: bool) -> None:
    broker = session.broker
    broker.catalog.add_partitions(topic.name, topic.count)  # only decides
    if topic.assignments is not None:
        added = topic.count - broker.catalog.topic(topic.name).partitions
        if len(topic.assignments) != added:
            raise InvalidAssignment(
                f"{added} partitions are added, {len(topic.assignments)} are assigned"
            )
        check_assignments([a.broker_ids for a in topic.assignments], nodes_of(broker))
    if not is_dry_run:
        await done(partial(broker.add_partitions, topic.name, topic.count))
