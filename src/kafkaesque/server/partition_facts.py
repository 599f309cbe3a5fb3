"""What is told of a partition wherever topics are described."""

from dataclasses import dataclass

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition import Partition
from kafkaesque.broker.topics import Slot
from kafkaesque.errors import PartitionOffline
from kafkaesque.machines.catalog import Topic
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
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    offline: tuple[NodeId, ...]


def facts_of(broker: Broker, topic: Topic, index: int, slot: Slot) -> PartitionFacts:
    """Return what is known here of a partition, wherever its replicas are.

    One without a leader is told as such, and as nothing worse: clients then ask again.
    """
    replicas = topic.replicas[index]
    is_lost = isinstance(slot, PartitionOffline) or (
        isinstance(slot, Partition) and slot.replica.error is not None
    )
    term, leader = broker.partition_leader(topic, index)
    if leader is None or (leader == broker.node and is_lost):
        return PartitionFacts(
            code=ErrorCode.LEADER_NOT_AVAILABLE,
            leader=NOBODY,
            term=_NO_TERM,
            replicas=replicas,
            in_sync=(),
            offline=(broker.node,) if is_lost else (),
        )
    return PartitionFacts(
        code=ErrorCode.NONE,
        leader=leader,
        term=term,
        replicas=replicas,
        in_sync=replicas,
        offline=(broker.node,) if is_lost else (),
    )
