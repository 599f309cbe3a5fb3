"""Reads and writes a partition's batches unopened.

Also the batches of a query, which consist of many of these and are committed as one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafkaesque.client import decisions
from kafkaesque.client.decisions import Decision
from kafkaesque.client.prepared import PreparedTransaction
from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
from kafkaesque.client.topics import READ_COMMITTED, READ_UNCOMMITTED, VERSION_MAX_BY_NAME
from kafkaesque.record.view import LENGTH_OVERHEAD, NO_PRODUCER_ID, BatchView, peek_size
from kafkaesque.types import Buffer, Offset
from kafkaesque.wire.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Whole batches from a partition; the first may start before the requested offset."""

    batches: tuple[BatchView, ...]
    start: Offset
    """The first offset still kept."""
    high_watermark: Offset
    aborted: tuple[AbortedTransaction, ...] = ()
    """The aborted transactions among these, with their first offsets; only if requested."""


class Batches:
    """Reads and writes batches of any partition; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: Offset,
        *,
        wait_ms: int = 0,
        bytes_max: int | None = None,
        is_committed: bool = False,
    ) -> Fetched:
        """Return batches starting with that of `offset`, or none at the end of the partition.

        `wait_ms` is how long the broker waits for records if there are none.
        With `is_committed` nothing of an open transaction is returned, and aborted ones are
        listed.
        """
        limit = self._router.config.fetch_bytes_max if bytes_max is None else bytes_max
        asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=limit)
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=limit,
            isolation_level=READ_COMMITTED if is_committed else READ_UNCOMMITTED,
            topics=(FetchTopic(topic=topic, partitions=(asked,)),),
        )

        def ask() -> Fetched:
            leader = self._router.leader(topic, partition)
            said = self._router.ask_node(
                leader, request, FetchResponse, version_max=VERSION_MAX_BY_NAME
            )
            check(said.error_code, f"topic {topic}")
            found = first(first(said.responses, topic).partitions, topic)
            check(found.error_code, f"partition {partition} of topic {topic}, offset {offset}")
            return Fetched(
                batches=tuple(_whole(found.records or b"")),
                start=found.log_start_offset,
                high_watermark=found.high_watermark,
                aborted=found.aborted_transactions or (),
            )

        return self._router.question(ask)

    def produce(self, topic: str, partition: int, batch: Buffer) -> Offset:
        """Append one batch with acks=all and return the offset of its first record.

        A batch with a producer id is resent after a loss, because the broker drops duplicates.
        Without a producer id OutcomeUnknown is raised instead.
        """
        is_once = BatchView(batch).producer_id == NO_PRODUCER_ID
        data = PartitionProduceData(index=partition, records=batch)
        request = ProduceRequest(
            acks=_ALL,
            timeout_ms=self._router.config.request_ms_max,
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )

        def ask() -> Offset:
            leader = self._router.leader(topic, partition)
            said = self._router.ask_node(
                leader, request, ProduceResponse, version_max=VERSION_MAX_BY_NAME
            )
            one = first(first(said.responses, topic).partition_responses, topic)
            where = f"partition {partition} of topic {topic}"
            check(one.error_code, where, one.error_message, is_change=is_once)
            return one.base_offset

        return self._router.change(ask) if is_once else self._router.question(ask)

    # ── batches of a query ───────────────────────────────────────────────────────────────────

    def register(self, query: str, sink: str) -> int:
        """Take over a query's sink as its new driver; return the driver's epoch.

        Drivers with a lower epoch are fenced, and what they and their tasks left open is aborted.
        """
        return decisions.register(self._router, query, sink)

    def decide(
        self,
        query: str,
        sink: str,
        batch: int,
        driver_epoch: int,
        prepared: Sequence[PreparedTransaction],
    ) -> Decision:
        """Commit a query's batch that consists of these transactions, unless it is decided.

        All other transactions of the batch are aborted. On return everything committed can be
        read. Raises DriverFenced, OlderBatch, Refused if one of them is not prepared, and
        OutcomeUnknown if no answer came in time: then the call may be repeated.
        """
        return decisions.decide(self._router, query, sink, batch, driver_epoch, prepared)

    def decision(self, query: str, sink: str, batch: int) -> Decision | None:
        """Return the decision on a query's batch, None while undecided; raises OlderBatch."""
        return decisions.decision(self._router, query, sink, batch)


def _whole(data: Buffer) -> Iterator[BatchView]:
    """Yield whole batches only: a broker may cut the last one short."""
    position = 0
    while len(data) - position > LENGTH_OVERHEAD:  # ends: every batch has a size
        size = peek_size(data, position)[1]
        if size > len(data) - position:
            return
        view = BatchView(data, position)
        yield view
        position += view.size
