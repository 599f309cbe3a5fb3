"""InitProducerId: an identity for idempotent producers."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)

EPOCH_MAX = (1 << 15) - 2
"""As in Kafka, the last epoch is left free; a producer that reaches this one gets another id."""


async def handle(
    request: InitProducerIdRequest, version: int, session: Session
) -> InitProducerIdResponse:
    """Give a new id, or raise the epoch of the one that a producer has (KIP-360).

    A transactional id is refused with a code at which clients give up: transactions are not served,
    and most other codes would have them ask again for ever.
    """
    if request.transactional_id is not None:
        return _refused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
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
        return _refused(code_of(given))
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=given, producer_epoch=0)


def _was_given(request: InitProducerIdRequest, session: Session) -> bool:
    return 0 <= request.producer_id < session.broker.catalog.next_producer_id


def _refused(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_epoch=-1)
