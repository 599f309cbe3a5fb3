"""Filters batches: drops aborted records and transaction markers."""

from collections.abc import Iterable, Iterator

from kafkaesque.record.aborted import AbortedBatches
from kafkaesque.record.view import BatchView
from kafkaesque.wire.messages.fetch import AbortedTransaction


def committed(
    batches: Iterable[BatchView], aborted: Iterable[AbortedTransaction]
) -> Iterator[BatchView]:
    """Yield the batches of one fetch whose records are committed, in order."""
    taken_back = AbortedBatches((one.producer_id, one.first_offset) for one in aborted)
    for view in batches:
        if not taken_back.leaves_out(view) and not view.is_control:
            yield view
