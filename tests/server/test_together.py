"""All changes of one request are started at once, before the disk has answered any."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from kafkaesque.server.handlers import create_topics, delete_topics
from kafkaesque.server.requests.callback_waits import CHANGES_AT_ONCE_MAX
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
)
from kafkaesque.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.server.memory_broker import MemoryBroker

T = TypeVar("T")

NAMES = [f"t{number:02}" for number in range(CHANGES_AT_ONCE_MAX)]
TURNS = 10
"""Turns of the event loop: far more than a handler needs to start everything that it can."""


async def begun(asked: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start handling a request, until it waits for the disk."""
    task = asyncio.ensure_future(asked)
    for _ in range(TURNS):
        await asyncio.sleep(0)
    assert not task.done()
    return task


async def ended(memory: MemoryBroker, task: asyncio.Task[T]) -> T:
    """Let the disk answer until the request is handled."""
    while not task.done():  # ends: each turn answers what is waited for
        memory.settle()
        await asyncio.sleep(0)
    return task.result()


def test_all_topics_of_a_request_are_decided_before_one_is_committed() -> None:
    memory = MemoryBroker()
    catalog = memory.broker.catalog

    async def go() -> None:
        topics = tuple(
            CreatableTopic(
                name=name, num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
            for name in NAMES
        )
        request = CreateTopicsRequest(topics=topics, validate_only=False)
        task = await begun(create_topics.handle(request, 7, memory.session))
        assert list(catalog.topics) == NAMES
        made = await ended(memory, task)
        assert [one.error_code for one in made.topics] == [0] * len(NAMES)

    asyncio.run(go())


def test_all_topics_of_a_request_are_deleted_before_one_deletion_is_committed() -> None:
    memory = MemoryBroker()
    for name in NAMES:
        memory.create(name, 1)

    async def go() -> None:
        request = DeleteTopicsRequest(
            topics=tuple(DeleteTopicState(name=one, topic_id=NO_UUID) for one in NAMES),
            timeout_ms=1_000,
        )
        task = await begun(delete_topics.handle(request, 6, memory.session))
        assert not memory.broker.catalog.topics
        told = await ended(memory, task)
        assert [one.error_code for one in told.responses] == [0] * len(NAMES)

    asyncio.run(go())
