"""ShareFetch: settle what a member of a share group holds, and hand out more records."""

import asyncio
from functools import partial

from kafkaesque.broker.queues.partition_shares import NOTHING, PartitionShares, Taken
from kafkaesque.broker.queues.share_sessions import CLOSING, ShareSession
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.queues.share_records import Place
from kafkaesque.server.answers.leader_hints import Hints
from kafkaesque.server.answers.share_requests import (
    Acks,
    Settling,
    acks_of,
    check_renewals,
    session_of,
    shares_of,
)
from kafkaesque.server.requests.callback_waits import WAIT_MS_MAX
from kafkaesque.server.requests.coroutine_runner import Moment
from kafkaesque.server.requests.errors import InvalidRequest, code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    SharePartitionData,
)

RECORD_LIMIT = 1
"""The acquire mode of a member that wants no more records than it says."""

Found = dict[Place, Taken | KafkaesqueError]


async def handle(request: ShareFetchRequest, version: int, session: Session) -> ShareFetchResponse:
    """Settle first; then hand out what there is, or wait for more."""
    epoch = request.share_session_epoch
    try:
        acks = acks_of(request.topics)
        _check(request, acks)
        owner = session_of(session, request.group_id, request.member_id, epoch, acks)
        check_renewals(session, owner.group, acks, is_renewal=request.is_renew_ack)
        _change(request, acks, owner, session)
    except KafkaesqueError as error:
        return ShareFetchResponse(
            error_code=code_of(error),
            error_message=message_of(error),
            acquisition_lock_timeout_ms=0,
            responses=(),
            node_endpoints=(),
        )
    settling = Settling()
    settling.begin(session, owner, acks)
    found: Found = {}
    if epoch != CLOSING and not request.is_renew_ack:
        found = await _found(request, owner, session)
    await settling.finish()
    if epoch == CLOSING:
        session.broker.shares.sessions.end(owner)
    return _answer(found, settling, owner.group, session)


def _check(request: ShareFetchRequest, acks: Acks) -> None:
    if not request.is_renew_ack:
        return
    wants = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    if any(wants) or not all(acks.values()):
        raise InvalidRequest("a request that renews locks cannot ask for records")


def _change(request: ShareFetchRequest, acks: Acks, owner: ShareSession, session: Session) -> None:
    forgotten = [
        (topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    added = [place for place in acks if place not in owner.places]
    session.broker.shares.sessions.change(owner, acks, forgotten)
    session.broker.shares.came(owner.group, added)


async def _found(request: ShareFetchRequest, owner: ShareSession, session: Session) -> Found:
    """Hand out records as soon as there are any, or nothing at the timeout.

    A request on the same session that does not wait its turn, or one from a new connection, may end
    the session meanwhile.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + min(max(request.max_wait_ms, 0), WAIT_MS_MAX) / 1000
    while not owner.is_ended:
        watched: list[PartitionShares] = []
        found = _take(request, owner, session, watched)
        if found or not await _more(watched, deadline, session):
            return found
    return {}


def _take(
    request: ShareFetchRequest,
    owner: ShareSession,
    session: Session,
    watched: list[PartitionShares],
) -> Found:
    """Hand out what there is in the session's partitions, those served longest ago first."""
    records_left = request.max_records
    wanted = min(request.max_bytes, session.broker.config.fetch.answer_bytes_max)
    bytes_left = session.untaken.fitting(wanted)
    found: Found = {}
    for place in tuple(owner.places):
        if records_left <= 0 or bytes_left <= 0:
            break
        try:
            shares = shares_of(session, place)
            watched.append(shares)
            taken = shares.take(
                owner.group,
                owner.member,
                records_left,
                bytes_left,
                whole_batches=request.share_acquire_mode != RECORD_LIMIT,
            )
        except KafkaesqueError as error:
            found[place] = error.with_traceback(None)
            continue
        if taken.acquired:
            owner.served(place)
            found[place] = taken
            bytes_left -= len(taken.data)
            records_left -= sum(one.last - one.first + 1 for one in taken.acquired)
    return found


async def _more(watched: list[PartitionShares], deadline: float, session: Session) -> bool:
    """Wait until a partition may have more; return False at the deadline."""
    loop = asyncio.get_running_loop()
    stopping = session.stopping
    if deadline <= loop.time() or stopping.is_begun:
        return False
    more: Moment[bool] = Moment()
    wake, give_up = partial(more.come, value=True), partial(more.come, value=False)
    for shares in watched:
        shares.when_more(wake)
        shares.partition.when_more(wake)
    stopping.when_begun(give_up)
    timer = loop.call_at(deadline, give_up)
    try:
        return await more
    finally:
        timer.cancel()
        stopping.forget(give_up)
        for shares in watched:
            shares.forget(wake)
            shares.partition.forget(wake)


def _answer(found: Found, settling: Settling, group: str, session: Session) -> ShareFetchResponse:
    """Name every partition that gives records, has an error, or was acknowledged."""
    hints = Hints(session)
    topics: dict[bytes, list[SharePartitionData]] = {}
    for place in dict.fromkeys((*found, *settling.errors)):
        got = found.get(place, NOTHING)
        data = _partition(place, got, settling.errors.get(place), hints)
        topics.setdefault(place[0], []).append(data)
    lock_ms = session.broker.shares.settings.of(group).lock_ms
    return ShareFetchResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=lock_ms,
        responses=tuple(
            ShareFetchableTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=tuple(
            NodeEndpoint(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
            for one in hints.places
        ),
    )


def _partition(
    place: Place,
    got: Taken | KafkaesqueError,
    unsettled: KafkaesqueError | None,
    hints: Hints,
) -> SharePartitionData:
    code = ack_code = ErrorCode.NONE
    message = None
    taken = NOTHING
    if isinstance(got, KafkaesqueError):
        code, message = code_of(got), message_of(got)
    else:
        taken = got
    if unsettled is not None:
        ack_code = code_of(unsettled)
    node, term = hints.leader(*place, code or ack_code)
    return SharePartitionData(
        partition_index=place[1],
        error_code=code,
        error_message=message,
        acknowledge_error_code=ack_code,
        acknowledge_error_message=None if unsettled is None else message_of(unsettled),
        current_leader=LeaderIdAndEpoch(leader_id=node, leader_epoch=term),
        records=taken.data,
        acquired_records=tuple(
            AcquiredRecords(first_offset=one.first, last_offset=one.last, delivery_count=one.count)
            for one in taken.acquired
        ),
    )
