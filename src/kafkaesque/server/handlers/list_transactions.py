"""ListTransactions: the transactional ids that this broker coordinates."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import Described
from kafkaesque.machines.transaction_records import NO_TIME, State, Transaction
from kafkaesque.server.asking_transactions import ask_transactions
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

STATES = {state.value for state in State}


async def handle(
    request: ListTransactionsRequest, version: int, session: Session
) -> ListTransactionsResponse:
    """List what is wanted of all coordinators here.

    A pattern is refused: one can be written that takes for ever to match.
    """
    if request.transactional_id_pattern:
        return _refused(ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = tuple(name for name in request.state_filters if name not in STATES)
    now_ms = session.broker.now_ms()
    found: dict[str, Transaction] = {}
    for coordinator in session.broker.transactions.coordinators.all:
        if not coordinator.is_hosted:
            continue
        try:
            described = await ask_transactions(
                session,
                coordinator,
                "",
                lambda machine, to, _, __: machine.describe(
                    None, to, lambda known: _is_wanted(known, request, now_ms)
                ),
                Described,
            )
        except KafkaesqueError:
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        found |= described.transactions
        await asyncio.sleep(0)  # others have their turn between coordinators
    return ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=unknown,
        transaction_states=tuple(
            TransactionState(
                transactional_id=name,
                producer_id=known.producer_id,
                transaction_state=known.state.value,
            )
            for name, known in sorted(found.items())
        ),
    )


def _is_wanted(known: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    states, producers = request.state_filters, request.producer_id_filters
    if states and known.state.value not in states:
        return False
    if producers and known.producer_id not in producers:
        return False
    if request.duration_filter < 0:
        return True
    return known.began_ms != NO_TIME and now_ms - known.began_ms > request.duration_filter


def _refused(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, transaction_states=())
