"""DescribeTransactions: the states of transactions, and the partitions that they wrote to."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import DescribeTransactions
from kafkaesque.machines.transactions.transaction_errors import UnknownTransactionalId
from kafkaesque.machines.transactions.transaction_records import Transaction
from kafkaesque.server.answers.ask_coordinator import ask_coordinator
from kafkaesque.server.answers.named_places import named_places
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def handle(
    request: DescribeTransactionsRequest, version: int, session: Session
) -> DescribeTransactionsResponse:
    """Ask the coordinator of each id."""
    names = dict.fromkeys(request.transactional_ids)
    states = [await _state(name, session) for name in names]
    return DescribeTransactionsResponse(transaction_states=tuple(states))


async def _state(name: str, session: Session) -> TransactionState:
    try:
        coordinator = session.broker.transactions.coordinators.of(name)
        described = await ask_coordinator(session, coordinator, DescribeTransactions(names=(name,)))
        known = described.transactions.get(name)
        if known is None:
            raise UnknownTransactionalId("unknown transactional id")
    except KafkaesqueError as error:
        return TransactionState(
            error_code=code_of(error),
            transactional_id=name,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=-1,
            producer_id=-1,
            producer_epoch=-1,
            topics=(),
        )
    return TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=name,
        transaction_state=known.state.value,
        transaction_timeout_ms=known.timeout_ms,
        transaction_start_time_ms=known.began_ms,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
        topics=_topics(known, session),
    )


def _topics(known: Transaction, session: Session) -> tuple[TopicData, ...]:
    """Return the partitions by name; topics deleted meanwhile are left out."""
    return tuple(
        TopicData(topic=name, partitions=indexes)
        for _, name, indexes in named_places(known.places, session)
    )
