"""Looks periodically for partitions and topics that are added."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkaesque.errors import InvalidPattern, PatternError
from kafkaesque.patterns.connection import ADMIN_SECONDS_MAX, Client, settings

LOOK_SECONDS = 5.0
"""How late a new partition is noticed; it is read from its beginning, so nothing is missed."""

Tell: TypeAlias = Callable[[Mapping[str, int]], Awaitable[None]]


class Follower:
    """Reports periodically how many partitions each topic has; `start` it in an event loop.

    It reports nothing while no broker answers.
    """

    def __init__(self, client: Client, tell: Tell, look_seconds: float) -> None:
        if look_seconds <= 0:
            raise InvalidPattern("look_seconds must be above 0")
        self._client = client
        self._tell = tell
        self._look_seconds = look_seconds

    def start(self) -> None:
        """Start looking."""
        self._admin = AdminClient(settings(self._client, {}, {}))
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Stop looking."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def look(self) -> dict[str, int]:
        """Return how many partitions each topic has; raises PatternError."""
        return await asyncio.to_thread(self._ask)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            with suppress(
                PatternError
            ):  # no broker, or reading has ended, which readers see themselves
                await self._tell(await self.look())

    def _ask(self) -> dict[str, int]:
        try:
            found = self._admin.list_topics(timeout=ADMIN_SECONDS_MAX).topics
        except KafkaException as error:
            raise PatternError(f"no broker answers: {error.args[0].str()}") from error
        return {name: len(topic.partitions) for name, topic in found.items()}
