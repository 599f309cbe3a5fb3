"""DescribeTopicPartitions: topics in order of their names, in pages."""

from collections.abc import Collection

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.topics import Slot
from kafkaesque.broker.presence import present
from kafkaesque.errors import UnknownTopic
from kafkaesque.machines.catalog.catalog import Topic
from kafkaesque.server.answers import allowed_operations
from kafkaesque.server.answers.partition_facts import facts_of
from kafkaesque.server.requests.callback_waits import is_current
from kafkaesque.server.requests.session import Session
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    ResponseCursor,
)

PARTITIONS_MAX = 2000
"""Partitions of one page, whatever is requested: Kafka's own limit."""


async def handle(
    request: DescribeTopicPartitionsRequest, version: int, session: Session
) -> DescribeTopicPartitionsResponse:
    """Describe the requested topics, all if none is named, starting at the cursor."""
    broker = session.broker
    names = sorted({topic.name for topic in request.topics}) or list(broker.topics.names)
    is_sure = all(name in broker.catalog.topics for name in names) or await is_current(broker)
    first = 0
    if request.cursor is not None:
        names = [name for name in names if name >= request.cursor.topic_name]
        if names and names[0] == request.cursor.topic_name:
            first = max(0, request.cursor.partition_index)
    room = min(max(1, request.response_partition_limit), PARTITIONS_MAX)
    topics = []
    cursor = None
    for name in names:
        if room == 0:
            cursor = ResponseCursor(topic_name=name, partition_index=0)
            break
        topic, has_more = _describe(name, first, room, broker, is_sure)
        topics.append(topic)
        room -= len(topic.partitions)
        if has_more:
            cursor = ResponseCursor(topic_name=name, partition_index=first + len(topic.partitions))
            break
        first = 0
    return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor)


def _describe(
    name: str,
    first: int,
    count: int,
    broker: Broker,
    is_sure: bool,  # noqa: FBT001
) -> tuple[DescribeTopicPartitionsResponseTopic, bool]:
    """Describe some partitions of a topic; also return whether there are more."""
    known = broker.topics
    try:
        topic, slots = known.topic(name), known.slots(name)
    except UnknownTopic:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not is_sure:
            unknown = ErrorCode.LEADER_NOT_AVAILABLE
        missing = DescribeTopicPartitionsResponseTopic(
            error_code=unknown, name=name, topic_id=NO_UUID, partitions=()
        )
        return missing, False
    there = present(broker)
    partitions = tuple(
        _describe_partition(broker, topic, index, slots[index], there)
        for index in range(first, min(first + count, len(slots)))
    )
    found = DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        topic_authorized_operations=allowed_operations.ON_TOPICS,  # requested or not, as in Kafka
        partitions=partitions,
    )
    return found, first + count < len(slots)


def _describe_partition(
    broker: Broker, topic: Topic, index: int, slot: Slot, there: Collection[NodeId]
) -> DescribeTopicPartitionsResponsePartition:
    facts = facts_of(broker, topic, index, slot, there)
    return DescribeTopicPartitionsResponsePartition(
        error_code=facts.code,
        partition_index=index,
        leader_id=facts.leader,
        leader_epoch=facts.term,
        replica_nodes=facts.replicas,
        isr_nodes=facts.in_sync,
        eligible_leader_replicas=(),
        last_known_elr=(),
        offline_replicas=facts.offline,
    )
