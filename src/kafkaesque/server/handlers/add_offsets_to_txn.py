"""AddOffsetsToTxn: add the partition that holds a group's offsets to a transaction."""

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.errors import KafkaesqueError, NotCoordinator
from kafkaesque.machines.transactions.transaction_commands import Add, Producer
from kafkaesque.server.answers.ask_coordinator import ask_transaction
from kafkaesque.server.requests.callback_waits import done
from kafkaesque.server.requests.errors import transactional_code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

FENCED_SINCE = 2
ABORTABLE_SINCE = 4


async def handle(
    request: AddOffsetsToTxnRequest, version: int, session: Session
) -> AddOffsetsToTxnResponse:
    """Add the partition of `__consumer_offsets` that holds the group."""
    try:
        await done(session.broker.coordinators.when_ready)
    except KafkaesqueError:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        topic = session.broker.catalog.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise NotCoordinator("the topic for offsets does not exist")
        add = Add(
            transactional_id=request.transactional_id,
            producer=Producer(request.producer_id, request.producer_epoch),
            places=((topic.topic_id, partition_of(request.group_id, topic.partitions)),),
        )
        await ask_transaction(session, add)
    except KafkaesqueError as error:
        code = transactional_code_of(
            error,
            knows_fenced=version >= FENCED_SINCE,
            knows_abortable=version >= ABORTABLE_SINCE,
        )
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE)
