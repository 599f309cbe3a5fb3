"""Which batches transactions took back, for those who read committed records alone.

A broker that is asked for committed records sends all batches, and beside them which producers
aborted and from which offset on. From there to the producer's mark nothing of it counts.
"""

from collections.abc import Iterable

from kafkaesque.errors import UnsupportedBatch
from kafkaesque.record.control import ControlType, read_control
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset


class AbortedBatches:
    """Tells the batches of aborted transactions; it is shown all batches, in their order.

    It is made of each aborted transaction's producer id and first offset.
    """

    def __init__(self, aborted: Iterable[tuple[int, Offset]]) -> None:
        self._waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
        self._open: set[int] = set()

    def leaves_out(self, batch: BatchView) -> bool:
        """Return whether the batch is to be left out; of marks only those that end an abort are."""
        # Ends: each turn takes one off the list.
        while self._waiting and self._waiting[-1][1] <= batch.last_offset:
            self._open.add(self._waiting.pop()[0])
        if not batch.is_transactional or batch.producer_id not in self._open:
            return False
        # Kafka's own consumer ends at this mark alone, too. One that commits cannot come first: a
        # producer's transactions follow each other, and this one is known to be aborted.
        if batch.is_control and _is_abort(batch):
            self._open.discard(batch.producer_id)
        return True


def _is_abort(batch: BatchView) -> bool:
    try:
        return read_control(batch).kind is ControlType.ABORT
    except UnsupportedBatch:
        return False  # a mark of something else than a transaction
