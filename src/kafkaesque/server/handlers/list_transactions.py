"""ListTransactions: the transactional ids that this broker coordinates."""

import asyncio

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import DescribeTransactions
from kafkaesque.machines.transactions.transaction_records import State, Transaction
from kafkaesque.server.answers.ask_coordinator import ask_coordinator
from kafkaesque.server.requests.session import Session
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
    """List matching transactions of all local coordinators.

    A pattern is refused: some patterns take forever to match.
    """
    if request.transactional_id_pattern:
        return _refused(ErrorCode.INVALID_REGULAR_EXPRESSION)
    unknown = tuple(name for name in request.state_filters if name not in STATES)
    states, producers = request.state_filters, request.producer_id_filters
    command = DescribeTransactions(
        states=frozenset(map(State, STATES.intersection(states))) if states else None,
        producer_ids=frozenset(producers) if producers else None,
        older_than_ms=request.duration_filter,
    )
    found: dict[str, Transaction] = {}
    for coordinator in session.broker.transactions.coordinators.all:
        if coordinator.is_loading:
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if not coordinator.is_hosted:
            continue
        try:
            described = await ask_coordinator(session, coordinator, command)
        except KafkaesqueError:
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        found |= described.transactions
        await asyncio.sleep(0)  # other work runs between coordinators
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


def _refused(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, transaction_states=())
