"""What waits to be written to one peer: in order, and never more than a limit.

A peer that reads slowly must not fill our memory, and Raft gets over a loss. So when there is no
room, the oldest heartbeats go first: the next one says the same. Then appends with batches are
refused, the newest and not the oldest, so that what is under way still fits together. What is small
and rare (votes, answers, calls) is taken as long as anything can be. A beat replaces the beat
before it, because it says all that the receiver has not acknowledged.
"""

from collections import OrderedDict
from enum import Enum, auto

from kafkaesque.cluster_config import LinkConfig
from kafkaesque.types import Buffer


class Sort(Enum):
    """What becomes of a message for which there is no room."""

    BEAT = auto()
    HEARTBEAT = auto()
    BULK = auto()
    SMALL = auto()


_ITEM_BYTES = 200
"""What a message takes besides its parts; so many small ones are not taken for nothing."""


class Outbox:
    """The messages for one peer, first in, first out."""

    def __init__(self, config: LinkConfig) -> None:
        self.size = 0
        """Bytes that wait."""
        self.dropped = 0
        """Messages that were refused, or thrown away later."""
        self._bytes_max = config.queue_bytes_max
        self._messages_max = config.queue_messages_max
        self._items: OrderedDict[int, tuple[list[Buffer], int, Sort]] = OrderedDict()
        self._heartbeats: OrderedDict[int, None] = OrderedDict()
        self._beat: int | None = None
        self._number = 0

    def __len__(self) -> int:
        return len(self._items)

    def put(self, parts: list[Buffer], sort: Sort) -> bool:
        """Take a message, or return False: then it is lost."""
        size = sum(map(len, parts)) + _ITEM_BYTES
        if sort is Sort.BEAT and self._beat is not None:
            self._drop(self._beat)
        if self.size + size > self._bytes_max or len(self._items) >= self._messages_max:
            self._make_room(size)
            if not self._may_enter(size, sort):
                self.dropped += 1
                return False
        self._number += 1
        self._items[self._number] = (parts, size, sort)
        self.size += size
        if sort is Sort.BEAT:
            self._beat = self._number
        elif sort is Sort.HEARTBEAT:
            self._heartbeats[self._number] = None
        return True

    def take(self, bytes_max: int) -> tuple[list[Buffer], int]:
        """Return the parts of the oldest messages, about so many bytes, and how many messages."""
        out: list[Buffer] = []
        taken = count = 0
        while self._items and taken < bytes_max:  # ends: each turn takes a message out
            number, (parts, size, sort) = self._items.popitem(last=False)
            out += parts
            taken += size
            count += 1
            if sort is Sort.HEARTBEAT:
                del self._heartbeats[number]
            elif sort is Sort.BEAT:
                self._beat = None
        self.size -= taken
        return out, count

    def _may_enter(self, size: int, sort: Sort) -> bool:
        """Small messages may go beyond the limit by a quarter; nothing may go beyond that."""
        is_within = self.size + size <= self._bytes_max and len(self._items) < self._messages_max
        if is_within or sort is not Sort.SMALL:
            return is_within
        bytes_max, messages_max = self._bytes_max * 5 // 4, self._messages_max * 5 // 4
        return self.size + size <= bytes_max and len(self._items) < messages_max

    def _make_room(self, size: int) -> None:
        """Throw heartbeats away, oldest first, until so many bytes fit or none is left."""
        while self._heartbeats and (  # ends: each turn throws one away
            self.size + size > self._bytes_max or len(self._items) >= self._messages_max
        ):
            self._drop(next(iter(self._heartbeats)))

    def _drop(self, number: int) -> None:
        _, size, _ = self._items.pop(number)
        self.size -= size
        self.dropped += 1
        self._heartbeats.pop(number, None)
        if number == self._beat:
            self._beat = None
