"""The bridge from handlers to the coordinators of consumer groups."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from kafkaesque.broker.group_coordinator import GroupCoordinator
from kafkaesque.errors import GroupError
from kafkaesque.machines.group_commands import Answer, Decision, Now, ReplyTo
from kafkaesque.machines.groups import Groups
from kafkaesque.server.session import Session

Question: TypeAlias = Callable[[Groups, ReplyTo, Now], Decision]
A = TypeVar("A")


async def ask(session: Session, group: str, question: Question, kind: type[A]) -> A:
    """Ask the coordinator of a group and wait for its answer, as long as that takes.

    Raises what the group refuses, and NotCoordinator if nobody here can tell.
    """
    coordinator = session.broker.coordinators.of(group)
    return await ask_coordinator(session, coordinator, question, kind)


async def ask_coordinator(
    session: Session, coordinator: GroupCoordinator, question: Question, kind: type[A]
) -> A:
    """Ask one coordinator; the one who asks may be gone when the answer comes."""
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def reply(answer: Answer) -> None:
        if not future.done():
            future.set_result(answer)

    coordinator.ask(lambda groups, now: question(groups, reply, now), reply)
    session.broker.flush()
    answer = await future
    if isinstance(answer, GroupError):
        raise answer
    assert isinstance(answer, kind), "every question has its kind of answer"
    return answer
