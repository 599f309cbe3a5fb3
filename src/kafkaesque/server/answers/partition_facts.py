"""Facts about a partition, as every API that describes topics reports them."""

from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.topics import Slot
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.partition.partition_errors import NotHere
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.server.requests.callback_waits import done
from kafkaesque.types import NodeId, Term
from kafkaesque.wire.error_codes import ErrorCode

NOBODY: NodeId = -1
_NO_TERM: Term = -1


class PartitionFacts(Struct, frozen=True, kw_only=True):
    """The leader of a partition, and the state of its replicas."""

    code: ErrorCode
    leader: NodeId
    term: Term
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    offline: tuple[NodeId, ...]


def slots_of(broker: Broker, topic: Topic) -> Sequence[Slot]:
    """Return the local slots of a committed topic, even if it is not open here yet."""
    topics = broker.topics
    if topic.name in topics and topics.topic(topic.name).topic_id == topic.topic_id:
        return topics.slots(topic.name)
    return [NotHere(f"topic {topic.name} is not open here")] * topic.partitions


def facts_of(
    broker: Broker, topic: Topic, index: int, slot: Slot, there: Collection[NodeId]
) -> PartitionFacts:
    """Return what this broker knows of a partition, wherever its replicas are.

    `there` are the brokers that are present. A partition whose leader is missing or away is
    reported as leaderless, nothing worse: clients then retry. The leader decides which replicas are
    in sync; such a replica is not offline, even if its broker cannot be reached from here.
    """
    replicas = topic.replicas[index]
    away = {node for node in replicas if node not in there}
    if _is_lost(slot):
        away.add(broker.node)
    term, leader = broker.partition_leader(topic, index)
    if leader is None or leader in away or leader not in there:
        return PartitionFacts(
            code=ErrorCode.LEADER_NOT_AVAILABLE,
            leader=NOBODY,
            term=_NO_TERM,
            replicas=replicas,
            in_sync=(),
            offline=tuple(node for node in replicas if node in away),
        )
    told = broker.leaders.in_sync(group_of(topic, index))
    in_sync = tuple(node for node in replicas if node in told)
    return PartitionFacts(
        code=ErrorCode.NONE,
        leader=leader,
        term=term,
        replicas=replicas,
        in_sync=in_sync,
        offline=tuple(node for node in replicas if node in away and node not in in_sync),
    )


async def led(broker: Broker, topics: Iterable[Topic]) -> None:
    """Wait until all partitions of the topics have leaders, at most as long as an election takes.

    librdkafka treats a partition without a leader as unknown, and does not retry for minutes
    (`rd_kafka_topic_partition_list_query_leaders`). A partition whose only replica is lost gets
    none.
    """
    groups = [
        group_of(topic, index)
        for topic in topics
        for index, slot in enumerate(slots_of(broker, topic))
        if not (_is_lost(slot) and topic.replicas[index] == (broker.node,))
    ]
    await done(lambda answer: broker.topics.when_led(groups, lambda: answer(None)))


def _is_lost(slot: Slot) -> bool:
    return isinstance(slot, PartitionOffline) or (
        isinstance(slot, Partition) and slot.replica.error is not None
    )
