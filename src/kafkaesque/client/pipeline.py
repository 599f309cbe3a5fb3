"""Sends many batches to many partitions at once, keeping each partition's order.

A request carries at most one batch for each of several partitions, and several requests are in
flight at once. Every batch carries a producer's id and sequence. So after a lost response or a
leader change everything unacknowledged is simply resent: brokers drop duplicates.

Brokers accept any sequence in the first batch of a producer that they do not know. If that batch
were refused with others in flight behind it, the second could come first. So a partition's first
batch, also after a loss, travels alone.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kafkaesque.client.blocking_connection import BlockingConnection
from kafkaesque.client.errors import ConnectionLost, Refused, RefusedForNow, Unreachable
from kafkaesque.client.refusals import check
from kafkaesque.client.router import Router
from kafkaesque.client.topics import VERSION_MAX_BY_NAME, Place
from kafkaesque.types import Buffer, Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

WINDOW_MAX = 5
"""Batches in flight per partition: as many as a broker remembers of a producer."""

REQUESTS_MAX = 5
"""Requests in flight in all."""

LANES_MAX = 16
"""Partitions written at once."""

PENDING_BYTES_MAX = 16 << 20
"""Bytes read and not acknowledged; one batch may exceed it."""

_ALL = -1

Taken: TypeAlias = Callable[[Place, Buffer, Offset | None], None]
"""Called for every acknowledged batch, with the offset of its first record.

The offset is None if the broker only knows that it already had the batch."""


class _Lane:
    """One partition: batches read and not acknowledged, and how many of them are in flight."""

    def __init__(self, place: Place, batches: Iterator[Buffer]) -> None:
        self.place = place
        self.batches = batches
        self.pending: deque[Buffer] = deque()
        self.under_way = 0
        self.is_proven = False
        self.is_read = False

    @property
    def is_done(self) -> bool:
        return self.is_read and not self.pending

    def rewind(self) -> None:
        """Mark everything unacknowledged for resending."""
        self.under_way = 0
        self.is_proven = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Posted:
    connection: BlockingConnection
    number: int
    lanes: dict[Place, _Lane]


class Pipeline:
    """Writes batches that carry a producer's identity, with acks=all; for one use.

    Errors are from `client.errors` and the base. After one, batches reported to `taken` are
    acknowledged, and up to WINDOW_MAX further batches of each partition may or may not be.
    """

    def __init__(self, router: Router) -> None:
        self._router = router
        self._waiting: Iterator[_Lane] = iter(())
        self._lanes: list[_Lane] = []
        self._posted: deque[_Posted] = deque()
        self._pending_bytes = 0

    def write(self, sources: Iterable[tuple[Place, Iterator[Buffer]]], taken: Taken) -> None:
        """Write each partition's iterator to it; both levels of iterators are read on demand."""
        self._waiting = (_Lane(place, batches) for place, batches in sources)
        try:
            # Ends: each step acknowledges a batch, and the sources end.
            while self._fill():
                self._router.question(lambda: self._step(taken))
        finally:
            self._hang_up()

    def _fill(self) -> bool:
        """Take new partitions as others finish; return whether there is anything to do."""
        self._lanes = [lane for lane in self._lanes if not lane.is_done]
        while len(self._lanes) < LANES_MAX and self._has_room():
            lane = next(self._waiting, None)
            if lane is None:
                break
            self._read(lane)
            if not lane.is_done:
                self._lanes.append(lane)
        return bool(self._lanes)

    def _has_room(self) -> bool:
        return self._pending_bytes < PENDING_BYTES_MAX

    def _read(self, lane: _Lane) -> None:
        batch = next(lane.batches, None)
        if batch is None:
            lane.is_read = True
        else:
            lane.pending.append(batch)
            self._pending_bytes += len(batch)

    def _step(self, taken: Taken) -> None:
        """Send what may be sent, and take one response."""
        try:
            while len(self._posted) < REQUESTS_MAX and self._post():
                pass
            if self._posted:
                self._take(taken)
        except (ConnectionLost, Unreachable, RefusedForNow):
            self._hang_up()
            for lane in self._lanes:
                lane.rewind()
            raise

    def _post(self) -> bool:
        """Send one more request to each leader with something to send."""
        by_leader: defaultdict[int, dict[Place, _Lane]] = defaultdict(dict)
        for lane in self._lanes:
            if self._has_next(lane):
                by_leader[self._router.leader(*lane.place)][lane.place] = lane
        for leader, lanes in by_leader.items():
            connection = self._router.connection(leader)
            request = _request(lanes.values(), self._router.config.request_ms_max)
            for lane in lanes.values():
                lane.under_way += 1
            number = connection.post(
                request,
                ProduceResponse,
                self._router.answer_deadline_ms(),
                version_max=VERSION_MAX_BY_NAME,
            )
            self._posted.append(_Posted(connection=connection, number=number, lanes=lanes))
        return bool(by_leader)

    def _has_next(self, lane: _Lane) -> bool:
        if lane.under_way >= (WINDOW_MAX if lane.is_proven else 1):
            return False
        if lane.under_way == len(lane.pending) and not lane.is_read and self._has_room():
            self._read(lane)
        return lane.under_way < len(lane.pending)

    def _take(self, taken: Taken) -> None:
        posted = self._posted[0]
        said: ProduceResponse = posted.connection.take(
            posted.number, self._router.answer_deadline_ms()
        )
        self._posted.popleft()
        answers = {
            (topic.name, one.index): one
            for topic in said.responses
            for one in topic.partition_responses
        }
        for place, lane in posted.lanes.items():
            offset = _offset_of(place, answers.get(place))
            batch = lane.pending.popleft()
            lane.under_way -= 1
            lane.is_proven = True
            self._pending_bytes -= len(batch)
            taken(place, batch, offset)

    def _hang_up(self) -> None:
        """Close connections with responses in flight that will not be taken."""
        for posted in self._posted:
            posted.connection.close()
        self._posted.clear()


def _request(lanes: Iterable[_Lane], timeout_ms: int) -> ProduceRequest:
    by_topic: defaultdict[str, list[PartitionProduceData]] = defaultdict(list)
    for lane in lanes:
        topic, partition = lane.place
        data = PartitionProduceData(index=partition, records=lane.pending[lane.under_way])
        by_topic[topic].append(data)
    return ProduceRequest(
        acks=_ALL,
        timeout_ms=timeout_ms,
        topic_data=tuple(
            TopicProduceData(name=topic, partition_data=tuple(rows))
            for topic, rows in by_topic.items()
        ),
    )


def _offset_of(place: Place, answer: PartitionProduceResponse | None) -> Offset | None:
    where = f"partition {place[1]} of topic {place[0]}"
    if answer is None:
        raise Refused(f"{where}: the broker's answer does not mention it", "NONE")
    if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
        return None
    check(answer.error_code, where, answer.error_message)
    return answer.base_offset
