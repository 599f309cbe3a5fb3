"""Where the records are in a piece of log: a share group hands out only offsets that have one."""

from collections.abc import Iterable
from typing import NamedTuple

from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.view import split_batches
from kafkaesque.types import Offset


class _Batch(NamedTuple):
    base: Offset
    last: Offset
    begin: int
    end: int


class Batches:
    """The batches read from an offset on.

    Markers and the batches of aborted transactions are no records: members never see them.
    """

    def __init__(
        self, data: memoryview, first: Offset, aborted: Iterable[tuple[int, Offset]]
    ) -> None:
        self._data = data
        self._batches: list[_Batch] = []
        spans: list[tuple[Offset, Offset]] = []
        left_out = AbortedBatches(aborted)
        position = 0
        last = first - 1
        for view in split_batches(data):
            last = view.last_offset
            self._batches.append(_Batch(view.base_offset, last, position, position + view.size))
            position += view.size
            is_record = not left_out.leaves_out(view) and not view.is_control
            if is_record and last >= first:
                spans.append((max(first, view.base_offset), last))
        self.base = min(first, self._batches[0].base) if self._batches else first
        """The first offset that was read."""
        self.spans = spans
        """Ranges of offsets with records, ascending."""
        self.end = last + 1
        """The offset behind everything that was read."""

    def whole(self, wanted: int) -> int:
        """Return how many records there are up to the end of the batch with the last wanted one."""
        count = 0
        for first, last in self.spans:
            if count >= wanted:
                break
            count += last - first + 1
        return max(count, wanted)

    def cut(self, first: Offset, last: Offset) -> memoryview:
        """Return the batches from that of `first` to that of `last`."""
        begins = [batch.begin for batch in self._batches if batch.last >= first]
        ends = [batch.end for batch in self._batches if batch.last >= last]
        return self._data[begins[0] : ends[0]]
