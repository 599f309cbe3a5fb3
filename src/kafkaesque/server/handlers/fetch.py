"""Fetch: return committed batches as stored in the log, and wait for more on request."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from kafkaesque.broker.fetch import Share, bytes_waiting, find_shares, read_shares
from kafkaesque.broker.partition.fetch_sessions import (
    FINAL_EPOCH,
    FULL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchSessions,
    Place,
    TopicRef,
    Want,
)
from kafkaesque.broker.partition.partition_errors import FetchSessionError
from kafkaesque.broker.rack_reads import nearby
from kafkaesque.server.answers.leader_hints import Hints
from kafkaesque.server.requests.callback_waits import WAIT_MS_MAX
from kafkaesque.server.requests.coroutine_runner import Moment
from kafkaesque.server.requests.errors import code_of
from kafkaesque.server.requests.session import Session
from kafkaesque.server.requests.stop_signal import Stopping
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

IDS_SINCE = 13
"""From this version topics are named by id alone."""

READ_COMMITTED = 1
NO_DIVERGENCE = EpochEndOffset()
NO_LEADER = LeaderIdAndEpoch()
NO_REPLICA = -1


async def handle(request: FetchRequest, version: int, session: Session) -> FetchResponse:
    """Read; with less data than requested, wait for more or the timeout, and read again."""
    broker = session.broker
    wants = _wants(request, uses_ids=version >= IDS_SINCE)
    is_full = request.session_epoch in (FULL_EPOCH, FINAL_EPOCH)
    try:
        memory = _session(request, wants, broker.fetch_sessions, uses_ids=version >= IDS_SINCE)
    except FetchSessionError as error:
        return FetchResponse(error_code=code_of(error), responses=())
    wanted = wants if is_full or memory is None else memory.wants()
    # Only the leader knows which transactions are decided.
    is_nearby_enough = request.isolation_level != READ_COMMITTED
    near = nearby(broker, request.rack_id) if is_nearby_enough else None
    shares = find_shares(broker, wanted, near)
    await _read(shares, request, session)
    if memory is None:
        return _answer(shares, request, NO_SESSION, Hints(session))
    if not is_full and memory.epoch != request.session_epoch:
        # Another request of the same session overtook this one, which clients must avoid.
        return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, responses=())
    news = [share for share in shares if _is_news(share, memory)]
    return _answer(shares if is_full else news, request, memory.session_id, Hints(session))


def _wants(request: FetchRequest, *, uses_ids: bool) -> list[Want]:
    """Return the requested reads; of a partition named twice the last one counts."""
    wants: dict[Place, Want] = {}
    for topic in request.topics:
        ref: TopicRef = topic.topic_id if uses_ids else topic.topic
        for asked in topic.partitions:
            wants[ref, asked.partition] = Want(
                ref,
                asked.partition,
                asked.fetch_offset,
                asked.partition_max_bytes,
                asked.current_leader_epoch,
                asked.last_fetched_epoch,
            )
    return list(wants.values())


def _session(
    request: FetchRequest, wants: Sequence[Want], sessions: FetchSessions, *, uses_ids: bool
) -> FetchSession | None:
    """Return the session that the request opens or continues; None if it wants none."""
    if request.session_epoch in (FULL_EPOCH, FINAL_EPOCH):
        if request.session_id != NO_SESSION:
            sessions.close(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None
        return sessions.open(wants, uses_ids=uses_ids)
    return sessions.resume(
        request.session_id,
        request.session_epoch,
        wants,
        _forgotten(request, uses_ids=uses_ids),
        uses_ids=uses_ids,
    )


def _forgotten(request: FetchRequest, *, uses_ids: bool) -> Iterable[Place]:
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if uses_ids else topic.topic), index


def _is_news(share: Share, memory: FetchSession) -> bool:
    """Record in the session what the consumer learns; return whether anything is new."""
    place = share.want.place
    if share.error is not None:
        memory.failed(place)
        return True
    is_news = memory.tell(place, share.high_watermark, share.first_offset)
    if share.data:
        memory.served(place)
        return True
    return is_news or share.diverging is not None or share.preferred is not None


async def _read(shares: Sequence[Share], request: FetchRequest, session: Session) -> None:
    """Read once there are `min_bytes`, or at the timeout."""
    wanted = min(request.max_bytes, session.broker.config.fetch.answer_bytes_max)
    bytes_max = session.untaken.fitting(wanted)
    bytes_min = min(request.min_bytes, bytes_max)
    only_stable = request.isolation_level == READ_COMMITTED
    if request.max_wait_ms <= 0:
        read_shares(shares, bytes_max, only_stable=only_stable)
        return
    if _is_enough(shares, bytes_min, bytes_max, only_stable=only_stable):
        return
    deadline = asyncio.get_running_loop().time() + min(request.max_wait_ms, WAIT_MS_MAX) / 1000
    while await _more(shares, deadline, session.stopping):
        bytes_max = session.untaken.fitting(wanted)
        bytes_min = min(request.min_bytes, bytes_max)
        # Each pass reads everything again, so wait until it can be enough.
        if bytes_min > 1 and bytes_waiting(shares) < bytes_min:
            continue
        if _is_enough(shares, bytes_min, bytes_max, only_stable=only_stable):
            return
    if bytes_min > 1:
        bytes_max = session.untaken.fitting(wanted)
        read_shares(shares, bytes_max, only_stable=only_stable)


def _is_enough(
    shares: Sequence[Share], bytes_min: int, bytes_max: int, *, only_stable: bool
) -> bool:
    """Read; return whether that is worth a response. Errors are reported without delay."""
    total = read_shares(shares, bytes_max, only_stable=only_stable)
    if total >= bytes_min:
        return True
    for share in shares:
        if share.is_odd:
            return True
    if total:
        for share in shares:
            share.drop()
    return False


async def _more(shares: Sequence[Share], deadline: float, stopping: Stopping) -> bool:
    """Wait until some partition has more; return False at the deadline.

    A stopping broker does not wait.
    """
    loop = asyncio.get_running_loop()
    if deadline <= loop.time() or stopping.is_begun:
        return False
    more: Moment[bool] = Moment()  # calling `Moment[bool]` costs a microsecond more
    wake, give_up = partial(more.come, value=True), partial(more.come, value=False)
    partitions = [share.partition for share in shares if share.partition is not None]
    for partition in partitions:
        partition.when_more(wake)
    stopping.when_begun(give_up)
    timer = loop.call_at(deadline, give_up)
    try:
        return await more
    finally:
        timer.cancel()
        stopping.forget(give_up)
        for partition in partitions:
            partition.forget(wake)


def _answer(
    shares: Sequence[Share], request: FetchRequest, session_id: int, hints: Hints
) -> FetchResponse:
    topics: dict[TopicRef, list[PartitionData]] = {}
    only_stable = request.isolation_level == READ_COMMITTED
    for share in shares:
        aborted = _aborted(share) if only_stable else None
        topics.setdefault(share.want.topic, []).append(_partition(share, aborted, hints))
    return FetchResponse(
        session_id=session_id,
        responses=tuple(
            [
                FetchableTopicResponse(topic=topic, partitions=tuple(partitions))
                if isinstance(topic, str)
                else FetchableTopicResponse(topic_id=topic, partitions=tuple(partitions))
                for topic, partitions in topics.items()
            ]
        ),
        node_endpoints=tuple(
            [
                NodeEndpoint(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
                for one in hints.places
            ]
        ),
    )


def _aborted(share: Share) -> tuple[AbortedTransaction, ...]:
    return tuple(
        AbortedTransaction(producer_id=producer_id, first_offset=first)
        for producer_id, first in share.aborted
    )


def _partition(
    share: Share, aborted: tuple[AbortedTransaction, ...] | None, hints: Hints
) -> PartitionData:
    diverging = NO_DIVERGENCE
    if share.diverging is not None:
        diverging = EpochEndOffset(epoch=share.diverging[0], end_offset=share.diverging[1])
    code, leader = ErrorCode.NONE, NO_LEADER
    if share.error is not None:
        code = code_of(share.error)
        node, term = hints.leader(share.want.topic, share.want.partition, code)
        leader = LeaderIdAndEpoch(leader_id=node, leader_epoch=term)
    return PartitionData(
        partition_index=share.want.partition,
        error_code=code,
        high_watermark=share.high_watermark,
        last_stable_offset=share.stable_offset,
        log_start_offset=share.first_offset,
        diverging_epoch=diverging,
        current_leader=leader,
        preferred_read_replica=NO_REPLICA if share.preferred is None else share.preferred,
        aborted_transactions=aborted,
        records=share.data,
    )
