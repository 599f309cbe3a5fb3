"""Skips the batches of aborted transactions, for readers of committed records.

In response to a fetch of committed records, a broker sends all batches together with a list of the
aborting producers and the first offset of each abort. From there to the producer's marker its
batches do not count.
"""

from collections.abc import Iterable

from kafkaesque.record.control import ControlType, read_control
from kafkaesque.record.errors import UnsupportedBatch
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset


class AbortedBatches:
    """Detects the batches of aborted transactions; it must see all batches, in order.

    Takes each aborted transaction's producer id and first offset.
    """

    def __init__(self, aborted: Iterable[tuple[int, Offset]]) -> None:
        self._waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
        self._open: set[int] = set()

    def leaves_out(self, batch: BatchView) -> bool:
        """Return whether to skip the batch; of markers only those that end an abort are skipped."""
        # Terminates: each iteration removes one from the list.
        while self._waiting and self._waiting[-1][1] <= batch.last_offset:
            self._open.add(self._waiting.pop()[0])
        if not batch.is_transactional or batch.producer_id not in self._open:
            return False
        # Kafka's own consumer also ends only at this marker. A commit marker cannot come first: a
        # producer's transactions follow each other, and this one is known to be aborted.
        if batch.is_control and _is_abort(batch):
            self._open.discard(batch.producer_id)
        return True


def _is_abort(batch: BatchView) -> bool:
    try:
        return read_control(batch).kind is ControlType.ABORT
    except UnsupportedBatch:
        return False  # a marker of something other than a transaction
