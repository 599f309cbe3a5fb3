"""InitProducerId: an identity for idempotent and transactional producers."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import Init, Producer
from kafkaesque.server.answers.ask_coordinator import ask_transaction
from kafkaesque.server.answers.redirects import send_on_if_cut_off
from kafkaesque.server.requests.errors import transactional_code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

EPOCH_MAX = (1 << 15) - 2
"""As in Kafka, the last epoch is unused; a producer that reaches this one gets a new id."""

FENCED_SINCE = 4


async def handle(
    request: InitProducerIdRequest, version: int, session: Session
) -> InitProducerIdResponse:
    """Assign a new id, or raise the epoch of a producer's id (KIP-360)."""
    if request.transactional_id is not None:
        return await _transactional(request, request.transactional_id, version, session)
    if _was_given(request, session) and 0 <= request.producer_epoch < EPOCH_MAX:
        return InitProducerIdResponse(
            error_code=ErrorCode.NONE,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch + 1,
        )
    future: asyncio.Future[int | KafkaesqueError] = asyncio.get_running_loop().create_future()

    def give(given: int | KafkaesqueError) -> None:
        if not future.done():
            future.set_result(given)

    session.broker.next_producer_id(give)
    given = await future
    if isinstance(given, KafkaesqueError):
        send_on_if_cut_off(session)
        # Every such error is transient; this is the one transient code on which all clients retry,
        # where aiokafka gives up at any other.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=given, producer_epoch=0)


async def _transactional(
    request: InitProducerIdRequest, name: str, version: int, session: Session
) -> InitProducerIdResponse:
    """Assign the transactional id to a producer, and fence its previous owner."""
    expected = None
    if request.producer_id >= 0 and request.producer_epoch >= 0:
        expected = Producer(request.producer_id, request.producer_epoch)
    command = Init(
        transactional_id=name,
        timeout_ms=request.transaction_timeout_ms,
        expected=expected,
        is_two_phase=request.enable2_pc,
        keeps_prepared=request.keep_prepared_txn,
    )
    try:
        inited = await ask_transaction(session, command)
    except KafkaesqueError as error:
        knows_fenced = version >= FENCED_SINCE
        return _refused(
            transactional_code_of(error, knows_fenced=knows_fenced, knows_abortable=False)
        )
    return InitProducerIdResponse(
        error_code=ErrorCode.NONE,
        producer_id=inited.producer.producer_id,
        producer_epoch=inited.producer.epoch,
        ongoing_txn_producer_id=-1 if inited.kept is None else inited.kept.producer_id,
        ongoing_txn_producer_epoch=-1 if inited.kept is None else inited.kept.epoch,
    )


def _was_given(request: InitProducerIdRequest, session: Session) -> bool:
    return 0 <= request.producer_id < session.broker.catalog.next_producer_id


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
