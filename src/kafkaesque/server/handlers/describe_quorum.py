"""DescribeQuorum: the catalog's group; any broker gets the answer from its leader."""

from kafkaesque.broker.catalog_quorum import Member, Quorum, quorum_of
from kafkaesque.errors import LinkError
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumListener,
    QuorumNode,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
)

METADATA_TOPIC = "__cluster_metadata"
"""Kafka's name for the cluster metadata log; it has one partition."""

NO_LEADER_TEXT = "the catalog has no leader now"


async def handle(
    request: DescribeQuorumRequest, version: int, session: Session
) -> DescribeQuorumResponse:
    """Describe the group if this broker leads it, else forward to its leader."""
    quorum = quorum_of(session.broker)
    if quorum is not None:
        return _answer(request, quorum, session)
    leader = session.broker.leader_of(CATALOG_GROUP).node
    if leader is not None and leader != session.broker.node and session.forward is not None:
        try:
            answer = await session.forward(leader, request, version)
        except LinkError as error:
            return _refused(f"broker {leader} leads the catalog: {error}")
        assert isinstance(answer, DescribeQuorumResponse)
        return answer
    return _refused(NO_LEADER_TEXT)


def _refused(text: str) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE, error_message=text, topics=()
    )


def _answer(
    request: DescribeQuorumRequest, quorum: Quorum, session: Session
) -> DescribeQuorumResponse:
    topics = tuple(
        QuorumTopic(
            topic_name=topic.topic_name,
            partitions=tuple(
                _partition(topic.topic_name, one.partition_index, quorum, session)
                for one in topic.partitions
            ),
        )
        for topic in request.topics
    )
    members = {one.node for one in (*quorum.voters, *quorum.learners)}
    nodes = tuple(
        QuorumNode(
            node_id=one.node,
            listeners=(QuorumListener(name="PLAINTEXT", host=one.host, port=one.port),),
        )
        for one in session.broker.catalog.brokers.values()
        if one.node in members and one.was_there
    )
    return DescribeQuorumResponse(error_code=ErrorCode.NONE, topics=topics, nodes=nodes)


def _partition(topic: str, index: int, quorum: Quorum, session: Session) -> QuorumPartition:
    if topic != METADATA_TOPIC or index != 0:
        return QuorumPartition(
            partition_index=index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"only partition 0 of {METADATA_TOPIC} has a quorum to describe",
            leader_id=-1,
            leader_epoch=-1,
            high_watermark=-1,
            current_voters=(),
            observers=(),
        )
    now_ms = session.broker.now_ms()
    brokers = session.broker.catalog.brokers
    end = max(one.end for one in quorum.voters)

    def state(member: Member) -> ReplicaState:
        known = brokers.get(member.node)
        return _state(member, NO_UUID if known is None else known.directory, end, now_ms)

    return QuorumPartition(
        partition_index=index,
        error_code=ErrorCode.NONE,
        leader_id=quorum.leader,
        leader_epoch=quorum.term,
        high_watermark=quorum.high_watermark,
        current_voters=tuple(map(state, quorum.voters)),
        observers=tuple(map(state, quorum.learners)),
    )


def _state(member: Member, directory: bytes, end: Offset, now_ms: int) -> ReplicaState:
    heard_ms = now_ms - member.silent_ms
    return ReplicaState(
        replica_id=member.node,
        replica_directory_id=directory,
        log_end_offset=member.end,
        last_fetch_timestamp=heard_ms,
        last_caught_up_timestamp=heard_ms if member.end >= end else -1,
    )
