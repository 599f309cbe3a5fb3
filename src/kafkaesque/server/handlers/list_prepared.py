"""ListPrepared: the prepared transactions that this broker coordinates, with their owners."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import Described
from kafkaesque.machines.transaction_records import State, Transaction
from kafkaesque.server.asking_transactions import ask_transactions
from kafkaesque.server.errors import message_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_prepared import (
    ListPreparedRequest,
    ListPreparedResponse,
    PreparedState,
)


async def handle(
    request: ListPreparedRequest, version: int, session: Session
) -> ListPreparedResponse:
    """List those of all coordinators here, or of these ids as far as they are here."""
    names = request.transactional_ids
    found: dict[str, Transaction] = {}
    for coordinator in session.broker.transactions.coordinators.all:
        if not coordinator.is_hosted:
            continue
        try:
            described = await ask_transactions(
                session,
                coordinator,
                "",
                lambda machine, to, _, __: machine.describe(names, to, _is_prepared),
                Described,
            )
        except KafkaesqueError as error:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return ListPreparedResponse(error_code=code, error_message=message_of(error))
        found |= described.transactions
        await asyncio.sleep(0)  # others have their turn between coordinators
    limit_ms = session.broker.config.transactions.prepared_ms_max
    return ListPreparedResponse(
        error_code=ErrorCode.NONE,
        prepared=tuple(
            PreparedState(
                transactional_id=name,
                producer_id=known.producer_id,
                producer_epoch=known.epoch,
                owner=known.owner,
                prepared_ms=known.changed_ms,
                limit_ms=limit_ms,
                partition_count=len(known.places),
            )
            for name, known in sorted(found.items())
        ),
    )


def _is_prepared(known: Transaction) -> bool:
    return known.state is State.PREPARED
