"""What is told of a partition wherever topics are described."""

from dataclasses import dataclass

from kafkaesque.broker.partition import Partition
from kafkaesque.broker.topics import Slot
from kafkaesque.types import NodeId, Term
from kafkaesque.wire.error_codes import ErrorCode

NOBODY: NodeId = -1
_NO_TERM: Term = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """Who leads a partition, and which of its replicas can be counted on."""

    code: ErrorCode
    leader: NodeId
    term: Term
    in_sync: tuple[NodeId, ...]
    offline: tuple[NodeId, ...]


def facts_of(slot: Slot, node: NodeId) -> PartitionFacts:
    """Return what is known of a partition whose only replica is on this node.

    One without a leader is told as such, and as nothing worse: clients then ask again.
    """
    if isinstance(slot, Partition) and slot.replica.is_serving:
        return PartitionFacts(
            code=ErrorCode.NONE, leader=node, term=slot.term, in_sync=(node,), offline=()
        )
    is_lost = not isinstance(slot, Partition) or slot.replica.error is not None
    return PartitionFacts(
        code=ErrorCode.LEADER_NOT_AVAILABLE,
        leader=NOBODY,
        term=_NO_TERM,
        in_sync=(),
        offline=(node,) if is_lost else (),
    )
