"""Fetch: hand out committed batches as they lie in the log, waiting for more if asked to."""

import asyncio
from dataclasses import dataclass

from kafkaesque.broker.partition import EMPTY, Partition
from kafkaesque.errors import KafkaesqueError, UnknownTopic
from kafkaesque.server.errors import code_of
from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)


@dataclass(slots=True, kw_only=True)
class _Wanted:
    """One partition of a request, found or not."""

    asked: FetchPartition
    partition: Partition | None
    code: ErrorCode = ErrorCode.NONE
    data: memoryview = EMPTY


async def handle(request: FetchRequest, version: int, session: Session) -> FetchResponse:
    """Read; if that is less than wanted, wait for more or for the time given, and read again."""
    if request.session_id != 0:
        # No sessions are kept: a client that names one begins anew with a full request.
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
    wanted = [(t, [_find(t, asked, session) for asked in t.partitions]) for t in request.topics]
    flat = [w for _, found in wanted for w in found]
    if _read(flat, request.max_bytes) < request.min_bytes and request.max_wait_ms > 0:
        deadline = asyncio.get_running_loop().time() + request.max_wait_ms / 1000
        while await _more(flat, deadline, session):
            if _read(flat, request.max_bytes) >= request.min_bytes:
                break
    return FetchResponse(
        responses=tuple(
            FetchableTopicResponse(
                topic_id=topic.topic_id,
                topic=topic.topic,
                partitions=tuple(_answer(w) for w in found),
            )
            for topic, found in wanted
        )
    )


def _find(topic: FetchTopic, asked: FetchPartition, session: Session) -> _Wanted:
    broker = session.broker
    try:
        name = topic.topic
        if not name:
            found = broker.catalog.topic_by_id(topic.topic_id)
            if found is None:
                return _Wanted(asked=asked, partition=None, code=ErrorCode.UNKNOWN_TOPIC_ID)
            name = found.name
        partition = broker.partition(name, asked.partition)
    except UnknownTopic as error:
        return _Wanted(asked=asked, partition=None, code=code_of(error))
    known = asked.current_leader_epoch
    if known != -1 and known != partition.term:
        is_old = known < partition.term
        code = ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH
        return _Wanted(asked=asked, partition=partition, code=code)
    return _Wanted(asked=asked, partition=partition)


def _read(wanted: list[_Wanted], bytes_max: int) -> int:
    """Read into every partition's share; return the bytes, or enough to stop at an error."""
    total = 0
    for one in wanted:
        if one.partition is None or one.code is not ErrorCode.NONE:
            return bytes_max
        room = min(one.asked.partition_max_bytes, bytes_max - total)
        # The first batch of an answer is given however large it is, or a consumer could starve.
        if total and room <= 0:
            one.data = EMPTY
            continue
        try:
            data = one.partition.read(one.asked.fetch_offset, max(room, 1))
        except KafkaesqueError as error:
            one.code = code_of(error)
            return bytes_max
        one.data = EMPTY if total and len(data) > room else data
        total += len(one.data)
    return total


async def _more(wanted: list[_Wanted], deadline: float, session: Session) -> bool:
    """Wait until some partition has more; return whether that was before the deadline.

    A broker that is told to stop waits no more.
    """
    if session.stopping.is_begun:
        return False
    loop = asyncio.get_running_loop()
    more = loop.create_future()

    def wake() -> None:
        if not more.done():
            more.set_result(None)

    forgets = [w.partition.when_more(wake) for w in wanted if w.partition is not None]
    forgets.append(session.stopping.when_begun(wake))
    try:
        await asyncio.wait_for(more, deadline - loop.time())
    except TimeoutError:
        return False
    finally:
        for forget in forgets:
            forget()
    return True


def _answer(one: _Wanted) -> PartitionData:
    partition = one.partition
    high_watermark = -1 if partition is None else partition.high_watermark
    return PartitionData(
        partition_index=one.asked.partition,
        error_code=one.code,
        high_watermark=high_watermark,
        last_stable_offset=high_watermark,
        log_start_offset=-1 if partition is None else partition.first_offset,
        aborted_transactions=None,
        records=one.data if one.code is ErrorCode.NONE else EMPTY,
    )
