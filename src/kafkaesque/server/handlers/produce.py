"""Produce: append what producers send, and answer when it is as safe as they asked for."""

import asyncio
from dataclasses import dataclass

from kafkaesque.broker.watermark import Outcome
from kafkaesque.errors import KafkaesqueError, MalformedBatch, UnknownTopic
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import Waiter, waiter
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

ACKS_NONE = 0
ACKS_ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Appended:
    """One partition's share of a request, appended or refused."""

    index: int
    code: ErrorCode
    offset: Offset = -1
    first_offset: Offset = -1
    message: str | None = None
    fate: Waiter | None = None


async def handle(request: ProduceRequest, version: int, session: Session) -> ProduceResponse | None:
    """Append at once, in the order of the request; wait only for what acks=all asks.

    Every weaker setting is answered as soon as the batch is written; acks=0 gets no answer.
    """
    shares = [
        (topic, [_append(topic, data, session) for data in topic.partition_data])
        for topic in request.topic_data
    ]
    session.broker.flush()
    if request.acks == ACKS_NONE:
        return None
    fates = [s.fate for _, parts in shares for s in parts if s.fate is not None]
    if request.acks == ACKS_ALL and fates:
        await asyncio.wait(fates, timeout=request.timeout_ms / 1000)
    return ProduceResponse(
        responses=tuple(
            TopicProduceResponse(
                topic_id=topic.topic_id,
                name=topic.name,
                partition_responses=tuple(_answer(share, request.acks) for share in parts),
            )
            for topic, parts in shares
        )
    )


def _append(topic: TopicProduceData, data: PartitionProduceData, session: Session) -> _Appended:
    try:
        partition = session.broker.partition(_name_of(topic, session), data.index)
        if not data.records:
            raise MalformedBatch("a request to produce must bring records")
        fate, done = waiter()
        offset = partition.append(memoryview(data.records), done)
    except KafkaesqueError as error:
        return _Appended(index=data.index, code=code_of(error), message=str(error))
    return _Appended(
        index=data.index,
        code=ErrorCode.NONE,
        offset=offset,
        first_offset=partition.first_offset,
        fate=fate,
    )


def _name_of(topic: TopicProduceData, session: Session) -> str:
    if topic.name:
        return topic.name
    found = session.broker.catalog.topic_by_id(topic.topic_id)
    if found is None:
        raise UnknownTopic("there is no topic with this id")
    return found.name


def _answer(share: _Appended, acks: int) -> PartitionProduceResponse:
    code, message = share.code, share.message
    if acks == ACKS_ALL and share.fate is not None:
        if not share.fate.done():
            code, message = ErrorCode.REQUEST_TIMED_OUT, "not committed in the time given"
        elif share.fate.result() is Outcome.DELETED:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted meanwhile"
        elif share.fate.result() is Outcome.UNKNOWN:
            # Retriable, and it says that the leader changed: what the client must find out.
            code, message = ErrorCode.NOT_LEADER_OR_FOLLOWER, "leadership was lost meanwhile"
    return PartitionProduceResponse(
        index=share.index,
        error_code=code,
        base_offset=share.offset if code is ErrorCode.NONE else -1,
        log_start_offset=share.first_offset,
        error_message=message,
    )
