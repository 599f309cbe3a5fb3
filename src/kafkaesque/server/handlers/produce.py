"""Produce: append what producers send, and answer when it is as safe as they asked for."""

import asyncio
from functools import partial

from kafkaesque.broker.partition import Appended, Partition
from kafkaesque.broker.transactions import Writing
from kafkaesque.broker.watermark import Outcome
from kafkaesque.errors import (
    InvalidAcks,
    InvalidTopic,
    KafkaesqueError,
    MalformedBatch,
    RecordsRefused,
    UnknownTopic,
)
from kafkaesque.machines.catalog import INTERNAL_TOPICS
from kafkaesque.server.errors import message_of, produce_code_of
from kafkaesque.server.hints import Hints
from kafkaesque.server.session import Session
from kafkaesque.server.stepping import Moment
from kafkaesque.server.waiting import WAIT_MS_MAX
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

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1

ABORTABLE_SINCE = 11
"""From this version on a client knows that it can abort and go on."""

ADDS_SINCE = 12
"""From this version on a partition belongs to a transaction by being written to (KIP-890)."""

RECORD_ERRORS_MAX = 100
"""Refused records that an answer names; a batch may hold a million."""


class _Shares:
    """One request's shares of partitions, and how many of them are not decided yet."""

    __slots__ = ("_all_done", "left")

    def __init__(self) -> None:
        self.left = 0
        self._all_done: Moment[None] | None = None

    def one_done(self) -> None:
        self.left -= 1
        if self.left == 0 and self._all_done is not None:
            self._all_done.come(None)

    async def wait(self, timeout_ms: int) -> None:
        """Wait until all are decided, or the time is over."""
        all_done: Moment[None] = Moment()  # to call `Moment[None]` costs a microsecond more
        self._all_done = all_done
        loop = asyncio.get_running_loop()
        timer = loop.call_later(min(timeout_ms, WAIT_MS_MAX) / 1000, all_done.come, None)
        try:
            await all_done
        finally:
            timer.cancel()


class _Share:
    """What one partition was sent: refused, or appended and waiting for its fate."""

    __slots__ = (
        "append_time_ms",
        "error",
        "first_offset",
        "index",
        "offset",
        "outcome",
        "shares",
    )

    def __init__(self, index: int, shares: _Shares) -> None:
        self.index = index
        self.shares = shares
        self.error: KafkaesqueError | None = None
        self.offset = -1
        self.append_time_ms = -1
        self.first_offset = -1
        self.outcome: Outcome | None = None

    def done(self, outcome: Outcome) -> None:
        """Learn what became of the batch."""
        self.outcome = outcome
        self.shares.one_done()

    def appended(self, partition: Partition, found: Appended | KafkaesqueError) -> None:
        """Learn where the batch of a transaction is, or why it is not there."""
        if isinstance(found, KafkaesqueError):
            self.error = found.with_traceback(None)
            self.shares.one_done()
            return
        self.offset, self.append_time_ms = found
        self.first_offset = partition.first_offset


async def handle(request: ProduceRequest, version: int, session: Session) -> ProduceResponse | None:
    """Append at once, in the order of the request; wait only for what acks=all asks.

    Every weaker setting is answered as soon as the batch is written; acks=0 gets no answer.
    """
    acks = request.acks
    shares = _Shares()
    if request.transactional_id is None:
        topics = [
            (topic, [_append(topic, data, acks, shares, session) for data in topic.partition_data])
            for topic in request.topic_data
        ]
    else:
        topics = [
            (
                topic,
                [_write(topic, d, request, version, shares, session) for d in topic.partition_data],
            )
            for topic in request.topic_data
        ]
        acks = ACKS_ALL  # what a transaction wrote must be there when it is committed
    session.broker.flush()
    if request.acks == ACKS_NONE:
        return None
    if acks == ACKS_ALL and shares.left:
        await shares.wait(request.timeout_ms)
    hints = Hints(session)
    return ProduceResponse(
        responses=tuple(
            [
                TopicProduceResponse(
                    topic_id=topic.topic_id,
                    name=topic.name,
                    partition_responses=tuple(
                        [_answer(share, acks, version, topic, hints) for share in parts]
                    ),
                )
                for topic, parts in topics
            ]
        ),
        node_endpoints=tuple(
            [
                NodeEndpoint(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
                for one in hints.places
            ]
        ),
    )


def _append(
    topic: TopicProduceData,
    data: PartitionProduceData,
    acks: int,
    shares: _Shares,
    session: Session,
) -> _Share:
    share = _Share(data.index, shares)
    try:
        if not ACKS_ALL <= acks <= ACKS_LEADER:
            raise InvalidAcks(f"acks is -1, 0 or 1, not {acks}")
        partition = session.broker.topics.partition(_name_of(topic, session), data.index)
        shares.left += 1
        try:
            appended = partition.append(
                _whole(data.records), share.done, needs_all=acks == ACKS_ALL
            )
        except KafkaesqueError:
            shares.left -= 1
            raise
    except KafkaesqueError as error:
        share.error = error.with_traceback(None)  # which would hold on to the batch, and to itself
        return share
    share.offset, share.append_time_ms = appended
    share.first_offset = partition.first_offset
    return share


def _write(
    topic: TopicProduceData,
    data: PartitionProduceData,
    request: ProduceRequest,
    version: int,
    shares: _Shares,
    session: Session,
) -> _Share:
    """Append for a producer with a transactional id, whose coordinator may have to be asked."""
    share = _Share(data.index, shares)
    try:
        if not ACKS_ALL <= request.acks <= ACKS_LEADER:
            raise InvalidAcks(f"acks is -1, 0 or 1, not {request.acks}")
        assert request.transactional_id is not None
        broker = session.broker
        name = _name_of(topic, session)
        partition = broker.topics.partition(name, data.index)
        batches = _whole(data.records)
        shares.left += 1
        writing = Writing(
            transactional_id=request.transactional_id,
            place=(broker.topics.topic(name).topic_id, data.index),
            partition=partition,
            batches=batches,
            adds=version >= ADDS_SINCE,
            done=share.done,
            then=partial(share.appended, partition),
        )
        try:
            broker.transactions.append(writing)
        except KafkaesqueError:
            shares.left -= 1
            raise
    except KafkaesqueError as error:
        share.error = error.with_traceback(None)
    return share


def _whole(records: Buffer | None) -> memoryview:
    if not records:
        raise MalformedBatch("a request to produce must bring records")
    return records if isinstance(records, memoryview) else memoryview(records)


def _name_of(topic: TopicProduceData, session: Session) -> str:
    name = topic.name
    if not name:
        if topic.topic_id == NO_UUID:
            raise UnknownTopic("no topic is named")
        name = session.broker.catalog.topic_of_id(topic.topic_id).name
    if name in INTERNAL_TOPICS:
        raise InvalidTopic(f"{name} holds the broker's own state and cannot be written to")
    return name


def _answer(
    share: _Share, acks: int, version: int, topic: TopicProduceData, hints: Hints
) -> PartitionProduceResponse:
    error = share.error
    if error is not None:
        code = produce_code_of(error, knows_abortable=version >= ABORTABLE_SINCE)
        return PartitionProduceResponse(
            index=share.index,
            error_code=code,
            base_offset=-1,
            record_errors=_record_errors(error),
            error_message=message_of(error),
            current_leader=_leader(topic, share.index, code, hints),
        )
    if acks == ACKS_ALL and share.outcome is not Outcome.COMMITTED:
        code, message = ErrorCode.REQUEST_TIMED_OUT, "not committed in the time given"
        if share.outcome is Outcome.DELETED:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted meanwhile"
        elif share.outcome is Outcome.UNKNOWN:
            # NOT_LEADER_OR_FOLLOWER would say that nothing was written (KAFKA-13574), and the next
            # leader may have it. Whoever repeats it here learns from the answer to that who leads.
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            message = "leadership was lost meanwhile; it may yet be committed"
        elif share.outcome is Outcome.TOO_FEW:
            code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            message = "too few replicas are in sync by now; it may yet be committed"
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


def _leader(topic: TopicProduceData, index: int, code: int, hints: Hints) -> LeaderIdAndEpoch:
    node, term = hints.leader(topic.name or topic.topic_id, index, code)
    return LeaderIdAndEpoch(leader_id=node, leader_epoch=term)


def _record_errors(error: KafkaesqueError) -> tuple[BatchIndexAndErrorMessage, ...]:
    if not isinstance(error, RecordsRefused):
        return ()
    return tuple(
        BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=error.reason)
        for place in error.places[:RECORD_ERRORS_MAX]
    )
