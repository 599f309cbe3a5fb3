"""Which partitions and topics there are, asked every so often: they are added at any time."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeAlias

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from kafkaesque.errors import InvalidPattern, PatternError
from kafkaesque.patterns.connection import ADMIN_SECONDS_MAX, Client, settings

LOOK_SECONDS = 5.0
"""How late a new partition is seen; nothing in it is missed, for it is read from its beginning."""

Tell: TypeAlias = Callable[[Mapping[str, int]], Awaitable[None]]


class Follower:
    """Tells every so often how many partitions each topic has; `start` it in an event loop.

    While no broker answers nothing is told.
    """

    def __init__(self, client: Client, tell: Tell, look_seconds: float) -> None:
        if look_seconds <= 0:
            raise InvalidPattern("look_seconds is above 0")
        self._client = client
        self._tell = tell
        self._look_seconds = look_seconds

    def start(self) -> None:
        """Look from now on."""
        self._admin = AdminClient(settings(self._client, {}, {}))
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Look no longer."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def look(self) -> dict[str, int]:
        """Return how many partitions each topic has; raises PatternError."""
        return await asyncio.to_thread(self._ask)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._look_seconds)
            with suppress(PatternError):  # no broker, or reading has ended: whoever reads hears it
                await self._tell(await self.look())

    def _ask(self) -> dict[str, int]:
        try:
            found = self._admin.list_topics(timeout=ADMIN_SECONDS_MAX).topics
        except KafkaException as error:
            raise PatternError(f"no broker answers: {error.args[0].str()}") from error
        return {name: len(topic.partitions) for name, topic in found.items()}
