"""AddOffsetsToTxn: the partition that holds a group's offsets belongs to a transaction."""

from kafkaesque.broker.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.errors import KafkaesqueError, NotCoordinator
from kafkaesque.machines.transaction_commands import Add, Added, Producer
from kafkaesque.server.asking_transactions import ask_transaction
from kafkaesque.server.errors import transactional_code_of
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import done
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
    """Add the partition of `__consumer_offsets` on which the group lies."""
    try:
        await done(session.broker.coordinators.when_ready)
    except KafkaesqueError:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        topic = session.broker.catalog.topics.get(OFFSETS_TOPIC)
        if topic is None:
            raise NotCoordinator("there is no topic for offsets")
        add = Add(
            transactional_id=request.transactional_id,
            producer=Producer(request.producer_id, request.producer_epoch),
            places=((topic.topic_id, partition_of(request.group_id, topic.partitions)),),
        )
        await ask_transaction(
            session,
            request.transactional_id,
            lambda machine, to, now, _: machine.add(add, to, now),
            Added,
        )
    except KafkaesqueError as error:
        code = transactional_code_of(
            error,
            knows_fenced=version >= FENCED_SINCE,
            knows_abortable=version >= ABORTABLE_SINCE,
        )
        return AddOffsetsToTxnResponse(error_code=code)
    return AddOffsetsToTxnResponse(error_code=ErrorCode.NONE)
