"""ListPartitionReassignments: the moves in progress, from this broker's catalog."""

from collections.abc import Iterator

from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    request: ListPartitionReassignmentsRequest, version: int, session: Session
) -> ListPartitionReassignmentsResponse:
    """List the partitions being moved; others are left out."""
    known = session.broker.catalog.topics
    wanted: dict[str, set[int] | None] = dict.fromkeys(sorted(known))
    if request.topics is not None:
        wanted = {one.name: set(one.partition_indexes) for one in request.topics}
    found = (
        (name, tuple(_moves(known[name], indexes)))
        for name, indexes in wanted.items()
        if name in known
    )
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        topics=tuple(
            OngoingTopicReassignment(name=name, partitions=moves) for name, moves in found if moves
        ),
    )


def _moves(topic: Topic, indexes: set[int] | None) -> Iterator[OngoingPartitionReassignment]:
    """Describe each move as Kafka does: the target replicas first, then those to be removed."""
    for index, move in sorted(topic.moves.items()):
        if indexes is not None and index not in indexes:
            continue
        now = topic.replicas[index]
        gone = tuple(node for node in (*now, *move.leaving) if node not in move.nodes)
        yield OngoingPartitionReassignment(
            partition_index=index,
            replicas=(*move.nodes, *gone),
            adding_replicas=tuple(node for node in move.nodes if node not in now),
            removing_replicas=gone,
        )
