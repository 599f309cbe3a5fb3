"""InitProducerId: an identity for idempotent and for transactional producers."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.group_commands import Now
from kafkaesque.machines.transaction_commands import Decision, Init, Inited, Producer, ReplyTo
from kafkaesque.machines.transactions import Transactions
from kafkaesque.server.asking_transactions import ask_transaction
from kafkaesque.server.errors import transactional_code_of
from kafkaesque.server.sending_on import send_on_if_cut_off
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

EPOCH_MAX = (1 << 15) - 2
"""As in Kafka, the last epoch is left free; a producer that reaches this one gets another id."""

FENCED_SINCE = 4


async def handle(
    request: InitProducerIdRequest, version: int, session: Session
) -> InitProducerIdResponse:
    """Give a new id, or raise the epoch of the one that a producer has (KIP-360)."""
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
        # Whatever it is, it passes; and of the codes that say so this is the one at which all
        # clients ask again, where aiokafka gives up at any other.
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=given, producer_epoch=0)


async def _transactional(
    request: InitProducerIdRequest, name: str, version: int, session: Session
) -> InitProducerIdResponse:
    """Let a producer have the transactional id; whoever had it before is fenced."""
    expected = None
    if request.producer_id >= 0 and request.producer_epoch >= 0:
        expected = Producer(request.producer_id, request.producer_epoch)

    def question(machine: Transactions, to: ReplyTo, now: Now, fresh_id: int) -> Decision:
        command = Init(
            transactional_id=name,
            timeout_ms=request.transaction_timeout_ms,
            expected=expected,
            fresh_id=fresh_id,
            is_two_phase=request.enable2_pc,
            keeps_prepared=request.keep_prepared_txn,
        )
        return machine.init(command, to, now)

    try:
        inited = await ask_transaction(session, name, question, Inited, owns=True)
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
