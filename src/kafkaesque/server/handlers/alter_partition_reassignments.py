"""AlterPartitionReassignments: start or cancel partition moves."""

from collections.abc import Sequence
from functools import partial

from kafkaesque.errors import KafkaesqueError, UnknownTopic
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.catalog_errors import InvalidAssignment, InvalidReplicas
from kafkaesque.machines.catalog.catalog_moves import begin_moves
from kafkaesque.server.admin.resources import check_not_in, repeated_in
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

_Move = tuple[bytes, int, Sequence[NodeId]]


async def handle(
    request: AlterPartitionReassignmentsRequest, version: int, session: Session
) -> AlterPartitionReassignmentsResponse:
    """Start all valid moves in one change of the catalog, and report errors for the rest."""
    catalog = session.broker.catalog
    wanted = [(topic.name, one) for topic in request.topics for one in topic.partitions]
    may_resize = request.allow_replication_factor_change
    repeated = repeated_in((name, one.partition_index) for name, one in wanted)
    moves: list[_Move] = []
    errors: list[KafkaesqueError | None] = []
    for name, one in wanted:
        try:
            check_not_in(repeated, (name, one.partition_index), "partition")
            moves.append(_checked(catalog, name, one, may_resize=may_resize))
            errors.append(None)
        except KafkaesqueError as error:
            errors.append(error)
    if moves:
        try:
            await carried_out(partial(session.broker.move_partitions, moves))
        except KafkaesqueError as error:  # the catalog has changed meanwhile
            errors = [error if found is None else found for found in errors]
    told = iter(errors)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    _told(one.partition_index, next(told)) for one in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _checked(catalog: Catalog, name: str, one: ReassignablePartition, *, may_resize: bool) -> _Move:
    """Return the requested move; raises if it is invalid."""
    topic = catalog.topic(name)
    index, nodes = one.partition_index, one.replicas
    if not 0 <= index < topic.partitions:
        raise UnknownTopic(f"topic {name} has no partition {index}")
    if nodes is not None and not nodes:
        raise InvalidAssignment("a partition needs at least one broker")
    if nodes is not None and not may_resize and len(nodes) != len(topic.replicas[index]):
        raise InvalidReplicas(
            f"partition {index} of topic {name} has {len(topic.replicas[index])} replicas, and "
            f"{len(nodes)} brokers are given"
        )
    move = topic.topic_id, index, nodes or ()
    begin_moves(catalog, [move])  # checks only
    return move


def _told(index: int, error: KafkaesqueError | None) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE if error is None else code_of(error),
        error_message=None if error is None else message_of(error),
    )
