"""CreatePartitions: topics grow; nothing that they hold moves."""

from functools import partial

from kafkaesque.errors import InvalidAssignment, KafkaesqueError
from kafkaesque.server.assignments import check_assignments
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.places import nodes_of
from kafkaesque.server.resources import check_not_in, repeated_in
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import carried_out
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
    repeated = repeated_in(topic.name for topic in request.topics)
    results = []
    for name, topic in {topic.name: topic for topic in request.topics}.items():
        code, message = ErrorCode.NONE, None
        try:
            check_not_in(repeated, name, "topic")
            await _grow(topic, session, is_dry_run=request.validate_only)
        except KafkaesqueError as error:
            code, message = code_of(error), message_of(error)
        results.append(
            CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)
        )
    return CreatePartitionsResponse(results=tuple(results))


async def _grow(topic: CreatePartitionsTopic, session: Session, *, is_dry_run: bool) -> None:
    broker = session.broker
    broker.catalog.add_partitions(topic.name, topic.count)  # only decides
    assignment: tuple[tuple[int, ...], ...] = ()
    if topic.assignments is not None:
        added = topic.count - broker.catalog.topic(topic.name).partitions
        if len(topic.assignments) != added:
            raise InvalidAssignment(
                f"{added} partitions are added, {len(topic.assignments)} are assigned"
            )
        assignment = tuple(one.broker_ids for one in topic.assignments)
        check_assignments(assignment, nodes_of(broker))
    if not is_dry_run:
        grow = partial(broker.add_partitions, topic.name, topic.count, assignment=assignment)
        await carried_out(grow)
