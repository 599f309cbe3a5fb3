"""The bridge from handlers to the coordinators of transactions."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from kafkaesque.broker.transaction_coordinator import TransactionCoordinator
from kafkaesque.broker.transaction_ports import Check
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.group_commands import Now
from kafkaesque.machines.transaction_commands import Answer, Decision, ReplyTo
from kafkaesque.machines.transactions import Transactions
from kafkaesque.server.session import Session
from kafkaesque.transactional_ids import query_key, sink_key

Question: TypeAlias = Callable[[Transactions, ReplyTo, Now, int], Decision]
A = TypeVar("A")


async def ask_transaction(
    session: Session,
    name: str,
    question: Question,
    kind: type[A],
    *,
    owns: bool = False,
    is_fenced: bool = False,
) -> A:
    """Ask the coordinator of a transactional id, for its producer, and wait for the answer.

    Raises what the transaction refuses, and NotCoordinator if nobody here can tell. Whoever `owns`
    the id from now on may have come by an older connection than who had it before. So may one who
    ends what is prepared, which any process may, and one whose epoch alone fences what is late.
    """
    coordinator = session.broker.transactions.coordinators.of(name)

    def checked(machine: Transactions, to: ReplyTo, now: Now, fresh_id: int) -> Decision:
        if owns:
            coordinator.owns(name, session.connection)
        elif not is_fenced and not machine.is_prepared(name):
            coordinator.check_connection(name, session.connection)
        return question(machine, to, now, fresh_id)

    return await ask_transactions(session, coordinator, name, checked, kind)


async def ask_sink(session: Session, query: str, sink: str, question: Question, kind: type[A]) -> A:
    """Ask the coordinator of a query's sink; raises what `ask_transaction` raises."""
    coordinator = session.broker.transactions.coordinators.of(query_key(query))
    return await ask_transactions(session, coordinator, sink_key(query, sink), question, kind)


async def ask_transactions(
    session: Session,
    coordinator: TransactionCoordinator,
    name: str,
    question: Question,
    kind: type[A],
) -> A:
    """Ask one coordinator; the one who asks may be gone when the answer comes."""
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def reply(answer: Answer) -> None:
        if not future.done():
            future.set_result(answer)

    coordinator.ask(name, lambda machine, now, fresh: question(machine, reply, now, fresh), reply)
    session.broker.flush()
    answer = await future
    if isinstance(answer, KafkaesqueError):
        raise answer
    assert isinstance(answer, kind), "every question has its kind of answer"
    return answer


async def checked_at_desk(session: Session, check: Check) -> int:
    """Ask whether a producer may write; returns the number of its transaction, or raises."""
    future: asyncio.Future[int | KafkaesqueError] = asyncio.get_running_loop().create_future()

    def reply(answer: int | KafkaesqueError) -> None:
        if not future.done():
            future.set_result(answer)

    session.broker.transactions.desk.check(check, reply)
    session.broker.flush()
    answer = await future
    if isinstance(answer, KafkaesqueError):
        raise answer
    return answer
