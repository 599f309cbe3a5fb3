"""Produce: append batches, and answer when they are as safe as requested."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeAlias, TypeVar

from kafkaesque.broker.coordination.transactions import Writing
from kafkaesque.broker.partition.fetch_sessions import TopicRef
from kafkaesque.broker.partition.partition import Appended
from kafkaesque.broker.partition.partition_errors import RecordsRefused
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import InvalidTopic, KafkaesqueError, UnknownTopic
from kafkaesque.machines.catalog.catalog import INTERNAL_TOPICS
from kafkaesque.record.errors import MalformedBatch
from kafkaesque.server.answers.leader_hints import Hints
from kafkaesque.server.requests.coroutine_runner import Moment
from kafkaesque.server.requests.errors import InvalidAcks, message_of, produce_code_of
from kafkaesque.server.requests.pending_answer import Pending
from kafkaesque.server.requests.session import Session
from kafkaesque.types import Buffer
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

T = TypeVar("T")

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1

ABORTABLE_SINCE = 11
"""From this version a client knows that it can abort and continue."""

ADDS_SINCE = 12
"""From this version a write adds the partition to its transaction (KIP-890)."""

RECORD_ERRORS_MAX = 100
"""Refused records that a response lists; a batch may hold a million."""


class Share:
    """One partition's data: refused, or appended and waiting for its outcome."""

    __slots__ = ("append_time_ms", "error", "first_offset", "index", "offset", "outcome")

    def __init__(self, index: int) -> None:
        self.index = index
        self.error: KafkaesqueError | None = None
        self.offset = -1
        self.append_time_ms = -1
        self.first_offset = -1
        self.outcome: Outcome | None = None


Shares: TypeAlias = Sequence[tuple[str, bytes, Sequence[Share]]]
"""By topic: its name and id, one of which is known, and its partitions' shares."""


class Producing(Pending, Generic[T]):
    """One request, from the append until its batches are as safe as requested, and its response.

    An `Awaited` of the result of `finish`. It keeps no reference to the request data, and its
    shares none to it: a commit may take long, and a cycle would keep the whole request in memory
    until garbage collection.
    """

    __slots__ = ("_acks", "_finish", "_left", "_session", "_topics", "_version", "_writer")

    def __init__(
        self,
        request: ProduceRequest,
        version: int,
        session: Session,
        finish: Callable[[ProduceResponse | None], T],
    ) -> None:
        super().__init__(request.timeout_ms)
        self._version = version
        self._session = session
        self._finish = finish
        self._left = 1  # for the append itself, so that it cannot complete halfway
        self._acks = request.acks
        self._writer = request.transactional_id
        self._topics: Shares = ()

    def append(self, request: ProduceRequest) -> None:
        """Append everything, in the order of the request."""
        self._topics = [
            (topic.name, topic.topic_id, [self._append(topic, one) for one in topic.partition_data])
            for topic in request.topic_data
        ]
        if self._writer is not None and self._acks != ACKS_NONE:
            self._acks = ACKS_ALL  # a transaction's records must exist when it commits
        if self._acks == ACKS_ALL:
            self._one_done()
        else:
            self.is_done = True

    def answer(self) -> T:
        """Return the finished response."""
        return self._finish(self.response())

    def response(self) -> ProduceResponse | None:
        """Return the response with each batch's current state; None for acks=0."""
        if self._acks == ACKS_NONE:
            return None
        return response_of(self._topics, self._acks, self._version, self._session)

    def _one_done(self) -> None:
        """Count down the outcomes to wait for."""
        self._left -= 1
        if self._left == 0:
            self._end()

    def _append(self, topic: TopicProduceData, data: PartitionProduceData) -> Share:
        """Append one batch; in a transaction, its coordinator may be asked first."""
        share = Share(data.index)
        acks, writer, broker = self._acks, self._writer, self._session.broker
        try:
            if not ACKS_ALL <= acks <= ACKS_LEADER:
                raise InvalidAcks(f"acks must be -1, 0 or 1, not {acks}")
            name = name_of(topic, self._session)
            partition = broker.topics.partition(name, data.index)
            share.first_offset = partition.first_offset  # clients read it with some errors too
            batches = _whole(data.records)
            self._left += 1
            try:
                if writer is None:
                    share.offset, share.append_time_ms = partition.append(
                        batches, partial(self._decided, share), needs_all=acks == ACKS_ALL
                    )
                else:
                    writing = Writing(
                        transactional_id=writer,
                        place=(broker.topics.topic(name).topic_id, data.index),
                        partition=partition,
                        batches=batches,
                        adds=self._version >= ADDS_SINCE,
                        done=partial(self._decided, share),
                        then=partial(self._written, share),
                    )
                    broker.transactions.append(writing)
            except KafkaesqueError:
                self._left -= 1
                raise
        except KafkaesqueError as error:
            share.error = error.with_traceback(None)  # it would keep the batch in memory
        return share

    def _decided(self, share: Share, outcome: Outcome) -> None:
        """Receive the outcome of a batch."""
        share.outcome = outcome
        self._one_done()

    def _written(self, share: Share, found: Appended | KafkaesqueError) -> None:
        """Receive the position of a transaction's batch, or its error."""
        if isinstance(found, KafkaesqueError):
            share.error = found.with_traceback(None)
            self._one_done()
            return
        share.offset, share.append_time_ms = found


def begin(
    request: ProduceRequest,
    version: int,
    session: Session,
    finish: Callable[[ProduceResponse | None], T],
) -> Producing[T]:
    """Append at once, in the order of the request; only acks=all leaves something to wait for.

    Weaker settings are answered once the batch is written; acks=0 gets no response. The caller must
    flush the broker afterwards.
    """
    producing = Producing(request, version, session, finish)
    producing.append(request)
    return producing


def response_of(topics: Shares, acks: int, version: int, session: Session) -> ProduceResponse:
    """Return the response with each batch's current state."""
    hints = Hints(session)
    return ProduceResponse(
        responses=tuple(
            [
                TopicProduceResponse(
                    topic_id=topic_id,
                    name=name,
                    partition_responses=tuple(
                        [_answer(share, acks, version, name or topic_id, hints) for share in shares]
                    ),
                )
                for name, topic_id, shares in topics
            ]
        ),
        node_endpoints=tuple(
            [
                NodeEndpoint(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
                for one in hints.places
            ]
        ),
    )


async def handle(request: ProduceRequest, version: int, session: Session) -> ProduceResponse | None:
    """Like `begin`, for a caller that can wait."""
    producing = begin(request, version, session, _as_it_is)
    if not producing.is_done:
        done: Moment[None] = Moment()  # calling `Moment[None]` costs a microsecond more
        now = asyncio.get_running_loop().time()
        producing.when_done(partial(done.come, None), now)
        try:
            await done
        finally:
            producing.cancel()
    return producing.answer()


def _as_it_is(response: ProduceResponse | None) -> ProduceResponse | None:
    return response


def _whole(records: Buffer | None) -> memoryview:
    if not records:
        raise MalformedBatch("a Produce request must contain records")
    return records if isinstance(records, memoryview) else memoryview(records)


def name_of(topic: TopicProduceData, session: Session) -> str:
    """Return the name of a topic that clients may write to; raises UnknownTopic, InvalidTopic."""
    name = topic.name
    if not name:
        if topic.topic_id == NO_UUID:
            raise UnknownTopic("the request names no topic")
        name = session.broker.catalog.topic_of_id(topic.topic_id).name
    if name in INTERNAL_TOPICS:
        raise InvalidTopic(f"{name} holds the broker's own state and cannot be written to")
    return name


def _answer(
    share: Share, acks: int, version: int, topic: TopicRef, hints: Hints
) -> PartitionProduceResponse:
    error = share.error
    if error is not None:
        code = produce_code_of(error, knows_abortable=version >= ABORTABLE_SINCE)
        return PartitionProduceResponse(
            index=share.index,
            error_code=code,
            base_offset=-1,
            log_start_offset=share.first_offset,
            record_errors=_record_errors(error),
            error_message=message_of(error),
            current_leader=_leader(topic, share.index, code, hints),
        )
    if acks == ACKS_ALL and share.outcome is not Outcome.COMMITTED:
        code, message = ErrorCode.REQUEST_TIMED_OUT, "not committed within the timeout"
        if share.outcome is Outcome.DELETED:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted meanwhile"
        elif share.outcome is Outcome.UNKNOWN:
            # NOT_LEADER_OR_FOLLOWER would mean that nothing was written (KAFKA-13574), but the next
            # leader may have the batch. A client that retries here learns the new leader from that
            # response.
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            message = "leadership was lost meanwhile; it may yet be committed"
        elif share.outcome is Outcome.TOO_FEW:
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            message = "too few replicas are in sync now; it may yet be committed"
        return PartitionProduceResponse(
            index=share.index,
            error_code=code,
            base_offset=-1,
            log_start_offset=share.first_offset,
            error_message=message,
            current_leader=_leader(topic, share.index, code, hints),
        )
    return PartitionProduceResponse(
        index=share.index,
        error_code=ErrorCode.NONE,
        base_offset=share.offset,
        log_append_time_ms=share.append_time_ms,
        log_start_offset=share.first_offset,
    )


def _leader(topic: TopicRef, index: int, code: int, hints: Hints) -> LeaderIdAndEpoch:
    node, term = hints.leader(topic, index, code)
    return LeaderIdAndEpoch(leader_id=node, leader_epoch=term)


def _record_errors(error: KafkaesqueError) -> tuple[BatchIndexAndErrorMessage, ...]:
    if not isinstance(error, RecordsRefused):
        return ()
    return tuple(
        BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=error.reason)
        for place in error.places[:RECORD_ERRORS_MAX]
    )
