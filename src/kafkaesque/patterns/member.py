"""The base of workers and responders: a member of a group, and a sender for what follows."""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from kafkaesque.patterns.connection import Client, make_topics
from kafkaesque.patterns.delivery import Delivery
from kafkaesque.patterns.engine import Engine, EngineSettings
from kafkaesque.patterns.opening import Opening
from kafkaesque.patterns.retry_plan import RetryPlan
from kafkaesque.patterns.sender import Sender


class Member(Opening):
    """A member of a group, while it is entered with `async with`, in one event loop."""

    def __init__(
        self,
        client: Client,
        group: str,
        sender: Sender,
        *,
        limits: EngineSettings,
        plan: RetryPlan,
    ) -> None:
        self._client = client
        self._sender = sender
        self._partitions: Mapping[str, int] = {}
        self._engine = Engine(client, group, self._begin, self._settle, limits=limits, plan=plan)

    @abstractmethod
    def _read(self) -> list[str]:
        """Return the topics that it reads."""

    def _topics(self) -> dict[str, dict[str, str]]:
        """Return all topics that it needs, with the settings to create them with."""
        return {name: {} for name in self._read()}

    @abstractmethod
    def _begin(self, delivery: Delivery) -> Awaitable[Any]:
        """Handle a message."""

    @abstractmethod
    async def _settle(self, delivery: Delivery, result: Any) -> None:
        """Handle a failure, or a result that is not None."""

    async def _open(self, stack: AsyncExitStack) -> None:
        self._partitions = await asyncio.to_thread(make_topics, self._client, self._topics())
        await stack.enter_async_context(self._sender)
        await self._engine.start(self._read())
        stack.push_async_callback(self._engine.stop)

    async def run(self) -> None:
        """Wait until cancelled; raises if the member fails."""
        await self._engine.failed()
