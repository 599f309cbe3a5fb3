"""Producer ids: taken from the catalog in blocks, so that giving one out writes nothing.

A block is used only once it is committed, and its rest is lost with the process: so no id is ever
given out twice, and a crash costs a few of 2⁶³.
"""

from collections import deque
from collections.abc import Callable

from kafkaesque.errors import KafkaesqueError

Take = Callable[[int, Callable[[int | KafkaesqueError], None]], None]
"""Takes this many ids; calls back with the first once that is committed, or with the error."""

Give = Callable[[int | KafkaesqueError], None]
"""Called with a unique producer id, or with the error."""


class ProducerIds:
    """The ids that this broker gives out."""

    def __init__(self, block: int, take: Take) -> None:
        assert block > 0
        self._block = block
        self._take = take
        self._next = 0
        self._end = 0
        self._waiting: deque[Give] = deque()

    def next(self, give: Give) -> None:
        """Give the next id, at once if the block is not used up, or the error."""
        if self._next < self._end:
            self._next += 1
            give(self._next - 1)
            return
        self._waiting.append(give)
        if len(self._waiting) == 1:
            self._take_block()

    def _take_block(self) -> None:
        self._take(self._block, self._on_taken)

    def _on_taken(self, first: int | KafkaesqueError) -> None:
        if isinstance(first, KafkaesqueError):
            self._fail(first)
            return
        self._next, self._end = first, first + self._block
        while self._waiting and self._next < self._end:
            self._next += 1
            self._waiting.popleft()(self._next - 1)
        if self._waiting:
            self._take_block()

    def _fail(self, error: KafkaesqueError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for give in waiting:
            give(error)
