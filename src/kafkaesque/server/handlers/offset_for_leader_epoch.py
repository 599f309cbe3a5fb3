"""OffsetForLeaderEpoch: where a term ended, so that a client detects a truncated log."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(
    request: OffsetForLeaderEpochRequest, version: int, session: Session
) -> OffsetForLeaderEpochResponse:
    """Look up each partition independently; an unknown one does not fail the others."""
    return OffsetForLeaderEpochResponse(
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(_answer(topic.topic, p, session) for p in topic.partitions),
            )
            for topic in request.topics
        )
    )


def _answer(topic: str, asked: OffsetForLeaderPartition, session: Session) -> EpochEndOffset:
    """Look up one term; a result without an epoch means that the log has none so old."""
    try:
        partition = session.broker.partition(topic, asked.partition)
        partition.check_term(asked.current_leader_epoch)
        found = None
        # A future term has no end, and the newest term here would pass for it.
        if 0 <= asked.leader_epoch <= partition.term:
            found = partition.end_of_term(asked.leader_epoch)
    except KafkaesqueError as error:
        return EpochEndOffset(partition=asked.partition, error_code=code_of(error))
    term, end = (-1, -1) if found is None else found
    return EpochEndOffset(
        partition=asked.partition, error_code=ErrorCode.NONE, leader_epoch=term, end_offset=end
    )
