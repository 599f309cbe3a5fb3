"""The bridge from handlers to coordinators: send a command, await its answer.

The answer takes as long as the coordinator needs; the client may have disconnected by then.
Refusals of the coordinator are raised, and NotCoordinator if this broker has none.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from kafkaesque.broker.coordination.transaction_coordinator import TransactionCoordinator
from kafkaesque.broker.machine_hosting.coordinator import Coordinator
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.decision import Command
from kafkaesque.machines.transactions.transaction_commands import OfSink, OfTransaction
from kafkaesque.machines.transactions.transaction_questions import Check
from kafkaesque.server.requests.session import Session
from kafkaesque.transactional_ids import query_key

A = TypeVar("A")


async def ask_group(session: Session, group: str, command: Command[A]) -> A:
    """Ask the coordinator of a group."""
    return await ask_coordinator(session, session.broker.coordinators.of(group), command)


async def ask_transaction(session: Session, command: OfTransaction[A]) -> A:
    """Ask the coordinator of a transactional id, as its producer."""
    coordinators = session.broker.transactions.coordinators
    found: TransactionCoordinator = coordinators.of(command.transactional_id)
    return await answered(lambda to: found.ask(command, to, session.connection))


async def ask_sink(session: Session, command: OfSink[A]) -> A:
    """Ask the coordinator of a query's sink."""
    coordinator = session.broker.transactions.coordinators.of(query_key(command.query))
    return await ask_coordinator(session, coordinator, command)


async def ask_coordinator(
    session: Session, coordinator: Coordinator[Any], command: Command[A]
) -> A:
    """Ask one coordinator."""
    return await answered(lambda to: coordinator.ask(command, to))


async def ask_desk(session: Session, check: Check) -> int:
    """Ask whether a producer may write; returns the number of its transaction."""
    return await answered(lambda to: session.broker.transactions.desk.check(check, to))


async def answered(ask: Callable[[Callable[[A | KafkaesqueError], None]], None]) -> A:
    """Ask with a callback, and wait for the answer; raises it if it is an error."""
    future: asyncio.Future[A | KafkaesqueError] = asyncio.get_running_loop().create_future()

    def reply(answer: A | KafkaesqueError) -> None:
        if not future.done():
            future.set_result(answer)

    ask(reply)
    answer = await future
    if isinstance(answer, KafkaesqueError):
        raise answer
    return answer
