"""Which offset may be committed when messages finish out of order."""

from collections import deque

from kafkaesque.types import Offset


class DonePrefix:
    """The messages of one partition that are under way; everything before all of them is done.

    Offsets start in rising order, with gaps where the log has them. It stores only what is under
    way, which the caller bounds.
    """

    __slots__ = ("_begun", "_end", "_finished", "is_closed")

    def __init__(self) -> None:
        self._begun: deque[Offset] = deque()
        self._finished: set[Offset] = set()
        self._end: Offset | None = None
        self.is_closed = False
        """The partition is another member's, or soon will be: start nothing more of it."""

    def __len__(self) -> int:
        return len(self._begun)

    def begin(self, offset: Offset) -> None:
        """Note that a message is under way; offsets rise."""
        assert self._end is None or offset >= self._end, f"{offset} came after {self._end}"
        self._begun.append(offset)
        self._end = offset + 1

    def finish(self, offset: Offset) -> None:
        """Note that it is done, whatever the outcome."""
        begun = self._begun
        if begun[0] != offset:
            assert offset in begun and offset not in self._finished, f"{offset} is not under way"
            self._finished.add(offset)
            return
        begun.popleft()
        while begun and begun[0] in self._finished:
            self._finished.discard(begun.popleft())

    @property
    def position(self) -> Offset | None:
        """The first offset that is not done; None before the first message."""
        return self._begun[0] if self._begun else self._end
