"""ListPrepared: the prepared transactions that this broker coordinates, with their owners."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import DescribeTransactions
from kafkaesque.machines.transactions.transaction_records import State, Transaction
from kafkaesque.server.answers.ask_coordinator import ask_coordinator
from kafkaesque.server.requests.errors import message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_prepared import (
    ListPreparedRequest,
    ListPreparedResponse,
    PreparedState,
)


async def handle(
    request: ListPreparedRequest, version: int, session: Session
) -> ListPreparedResponse:
    """List those of all local coordinators, or those of the given ids."""
    names = request.transactional_ids
    command = DescribeTransactions(
        names=None if names is None else tuple(names), states=frozenset({State.PREPARED})
    )
    found: dict[str, Transaction] = {}
    for coordinator in session.broker.transactions.coordinators.all:
        if not coordinator.is_hosted:
            continue
        try:
            described = await ask_coordinator(session, coordinator, command)
        except KafkaesqueError as error:
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            return ListPreparedResponse(error_code=code, error_message=message_of(error))
        found |= described.transactions
        await asyncio.sleep(0)  # other work runs between coordinators
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
