"""Batches without what transactions took back, and without the marks of their ends."""

from collections.abc import Iterable, Iterator

from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.view import BatchView
from kafkaesque.wire.messages.fetch import AbortedTransaction


def committed(
    batches: Iterable[BatchView], aborted: Iterable[AbortedTransaction]
) -> Iterator[BatchView]:
    """Yield the batches of one answer whose records count, in their order."""
    taken_back = AbortedBatches((one.producer_id, one.first_offset) for one in aborted)
    for view in batches:
        if not taken_back.leaves_out(view) and not view.is_control:
            yield view
