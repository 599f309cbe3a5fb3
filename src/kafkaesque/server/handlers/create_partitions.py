"""CreatePartitions: add partitions to topics; existing records do not move."""

from functools import partial

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment
from kafkaesque.server.admin.resources import check_not_in, repeated_in
from kafkaesque.server.answers.assignments import check_assignments
from kafkaesque.server.answers.broker_addresses import nodes_of
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
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
    """Grow each topic independently, or only check that it could grow."""
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
    broker.catalog.add_partitions(topic.name, topic.count)  # checks only
    assignment: tuple[tuple[int, ...], ...] = ()
    if topic.assignments is not None:
        added = topic.count - broker.catalog.topic(topic.name).partitions
        if len(topic.assignments) != added:
            raise InvalidAssignment(
                f"{added} partitions are added, but {len(topic.assignments)} are assigned"
            )
        assignment = tuple(one.broker_ids for one in topic.assignments)
        check_assignments(assignment, nodes_of(broker))
    if not is_dry_run:
        grow = partial(broker.add_partitions, topic.name, topic.count, assignment=assignment)
        await carried_out(grow)
