"""DescribeProducers: a partition's producers, and where their open transactions start.

Every replica answers, as in Kafka; a follower reports what it knows to be committed.
"""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


async def handle(
    request: DescribeProducersRequest, version: int, session: Session
) -> DescribeProducersResponse:
    """Describe each partition independently, and once, however often it is named."""
    return DescribeProducersResponse(
        topics=tuple(
            TopicResponse(
                name=topic.name,
                partitions=tuple(
                    _partition(topic.name, index, session)
                    for index in dict.fromkeys(topic.partition_indexes)
                ),
            )
            for topic in request.topics
        )
    )


def _partition(topic: str, index: int, session: Session) -> PartitionResponse:
    try:
        partition = session.broker.partition(topic, index)
        producers = tuple(
            ProducerState(
                producer_id=one.producer_id,
                producer_epoch=one.epoch,
                last_sequence=one.last_sequence,
                last_timestamp=one.seen_ms,
                coordinator_epoch=one.coordinator_term,
                current_txn_start_offset=one.first_offset,
            )
            for one in partition.producer_views()
        )
    except KafkaesqueError as error:
        return PartitionResponse(
            partition_index=index,
            error_code=code_of(error),
            error_message=message_of(error),
            active_producers=(),
        )
    return PartitionResponse(
        partition_index=index, error_code=ErrorCode.NONE, active_producers=producers
    )
