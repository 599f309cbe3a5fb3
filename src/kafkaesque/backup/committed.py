"""Batches without what transactions took back, and without the marks of their ends.

A broker that is asked for committed records sends all batches, and beside them which producers
aborted and from which offset on. From there to the producer's mark nothing of it counts.
"""

import heapq
from collections.abc import Iterable, Iterator

from kafkaesque.errors import UnsupportedBatch
from kafkaesque.record.control import ControlType, read_control
from kafkaesque.record.view import BatchView
from kafkaesque.wire.messages.fetch import AbortedTransaction


def committed(
    batches: Iterable[BatchView], aborted: Iterable[AbortedTransaction]
) -> Iterator[BatchView]:
    """Yield the batches of one answer whose records count, in their order."""
    to_come = [(one.first_offset, one.producer_id) for one in aborted]
    heapq.heapify(to_come)
    aborting: set[int] = set()
    for view in batches:
        while to_come and to_come[0][0] <= view.last_offset:
            aborting.add(heapq.heappop(to_come)[1])
        if view.is_control:
            if _is_abort(view):
                aborting.discard(view.producer_id)
        elif not (view.is_transactional and view.producer_id in aborting):
            yield view


def _is_abort(view: BatchView) -> bool:
    try:
        return read_control(view).kind is ControlType.ABORT
    except UnsupportedBatch:
        return False  # a mark of something else than a transaction
