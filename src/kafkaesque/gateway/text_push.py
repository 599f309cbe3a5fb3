"""PUSH: send records as they arrive, until STOP, and commit the group's position.

The position covers what was written to the connection; it is committed periodically and at the end:
after a crash a client may see the last second again. While leaders or coordinators move, requests
are retried.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator

from kafkaesque.errors import KafkaesqueError, LinkError
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_errors import NotNow
from kafkaesque.gateway.text_fetch import (
    EARLIEST,
    LATEST,
    check,
    fetch,
    find_offset,
    visible_records,
)
from kafkaesque.gateway.text_positions import advance, commit, committed, patiently
from kafkaesque.gateway.text_replies import failure, pushed
from kafkaesque.gateway.text_subscriptions import Subscription
from kafkaesque.gateway.text_topics import TopicPlace
from kafkaesque.record.record import Record
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.errors import ApiNotServed
from kafkaesque.wire.messages.fetch import PartitionData

log = logging.getLogger(__name__)

PIECE_BYTES = 1 << 16
"""Lines are written in pieces of about this size, to detect a client that does not read."""

AGAIN_SECONDS = 0.1
"""Pause before a retry while a leader or a coordinator is missing."""

Send = Callable[[bytes], Awaitable[None]]
"""Writes bytes to the client, and returns when there is room for more."""


class Pusher:
    """Pushes the partitions of one group's subscriptions: `prepare`, `start`, `stop`."""

    def __init__(
        self, desk: TextDesk, place: TopicPlace, subscriptions: list[Subscription], send: Send
    ) -> None:
        self.subscriptions = subscriptions
        self._desk = desk
        self._place = place
        self._group = subscriptions[0].group
        self._send = send
        self._positions: dict[int, Offset] = {}
        self._is_kept = False
        self._is_unsaved = False
        self._committed_ms = 0
        self._troubled_ms: int | None = None
        """Since when a leader or a coordinator is missing."""
        self._task: asyncio.Future[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether records are still being pushed: an error ends it too."""
        return self._task is not None and not self._task.done()

    async def prepare(self) -> None:
        """Find the start: the group's position, else the end. Raises BadCommand."""
        partitions = [subscription.partition for subscription in self.subscriptions]
        channel = self._desk.channel
        known: dict[int, Offset] = {}
        try:
            known = await patiently(
                lambda: committed(channel, self._group, self._place, partitions)
            )
            self._is_kept = True
        except ApiNotServed:
            pass  # a broker without consumer groups: every push starts at the end
        for partition in partitions:
            if partition not in known:
                known[partition] = await find_offset(self._desk, self._place, partition, LATEST)
        self._positions = known
        if self._is_kept:
            # This makes the start durable, and fails now if the group belongs to Kafka consumers.
            await patiently(lambda: commit(channel, self._group, self._place, known))

    def start(self) -> None:
        """Start pushing at the next loop iteration."""
        self._committed_ms = self._desk.clock.monotonic_ms()
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(_log_failure)

    async def stop(self) -> None:
        """Stop pushing and commit the position; raises if that fails."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._is_unsaved:
            await patiently(self._advance)

    async def _run(self) -> None:
        try:
            while True:  # ends by cancellation or an error
                await self._step_or_pause()
        except KafkaesqueError as error:
            await self._send(failure(f"the push has ended: {error}"))

    async def _step_or_pause(self) -> None:
        """Make a step; if it must wait, pause, and give up after `timeout_ms`."""
        try:
            await self._step()
            self._troubled_ms = None
        except (LinkError, NotNow):
            now_ms = self._desk.clock.monotonic_ms()
            if self._troubled_ms is None:
                self._troubled_ms = now_ms
            if now_ms - self._troubled_ms >= self._desk.limits.timeout_ms:
                raise
            await asyncio.sleep(AGAIN_SECONDS)

    async def _step(self) -> None:
        """Push the available records; partitions that fail do not stop the others."""
        desk = self._desk
        # While a partition fails at once, waiting would delay the records of the others.
        wait_ms = desk.limits.push_wait_ms if self._troubled_ms is None else 0
        trouble: LinkError | NotNow | None = None
        for data in await fetch(desk, self._place, self._positions, wait_ms):
            try:
                await self._push(data)
            except (LinkError, NotNow) as error:
                trouble = error
        self._rotate()
        is_due = desk.clock.monotonic_ms() - self._committed_ms >= desk.limits.commit_interval_ms
        if self._is_unsaved and is_due:
            await self._advance()
        if trouble is not None:
            raise trouble

    async def _push(self, data: PartitionData) -> None:
        partition = data.partition_index
        position = self._positions[partition]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[partition] = await self._back_in_range(partition, position)
            return
        check(data)
        found = visible_records(data, position)
        for piece, end in _pieces(found.records, partition):
            await self._send(piece)
            self._positions[partition] = end
            self._is_unsaved = True
        if found.end != position:
            self._positions[partition] = found.end
            self._is_unsaved = True

    async def _back_in_range(self, partition: int, position: Offset) -> Offset:
        """Return the nearest existing offset: retention may have overtaken the group."""
        first = await find_offset(self._desk, self._place, partition, EARLIEST)
        if position < first:
            return first
        return await find_offset(self._desk, self._place, partition, LATEST)

    def _rotate(self) -> None:
        """Fetch another partition first next time, so that a busy one starves none."""
        first = next(iter(self._positions))
        self._positions[first] = self._positions.pop(first)

    async def _advance(self) -> None:
        if self._is_kept:
            await advance(self._desk.channel, self._group, self._place, dict(self._positions))
        self._is_unsaved = False
        self._committed_ms = self._desk.clock.monotonic_ms()


def _log_failure(task: "asyncio.Future[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("text_push_failed", exc_info=error)


def _pieces(records: list[Record], partition: int) -> Iterator[tuple[bytes, Offset]]:
    """Yield lines with the position after them."""
    lines = bytearray()
    for record in records:
        lines += pushed(record, partition)
        if len(lines) >= PIECE_BYTES or record is records[-1]:
            yield bytes(lines), record.offset + 1
            lines.clear()
