"""ShareAcknowledge: settle records that a member of a share group holds."""

from kafkaesque.broker.queues.share_sessions import CLOSING, OPENING, ShareEpochWrong
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.answers.leader_hints import Hints
from kafkaesque.server.answers.share_requests import (
    Settling,
    acks_of,
    check_renewals,
    session_of,
)
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.share_acknowledge import (
    AcknowledgedPartition,
    LeaderIdAndEpoch,
    NodeEndpoint,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)


async def handle(
    request: ShareAcknowledgeRequest, version: int, session: Session
) -> ShareAcknowledgeResponse:
    """Answer when everything acknowledged is durable; a closing session releases the rest."""
    epoch = request.share_session_epoch
    try:
        acks = acks_of(request.topics)
        if epoch == OPENING:
            raise ShareEpochWrong("a session is opened by a fetch")
        owner = session_of(session, request.group_id, request.member_id, epoch, acks)
        check_renewals(session, owner.group, acks, is_renewal=request.is_renew_ack)
    except KafkaesqueError as error:
        return ShareAcknowledgeResponse(
            error_code=code_of(error),
            error_message=message_of(error),
            acquisition_lock_timeout_ms=0,
            responses=(),
            node_endpoints=(),
        )
    settling = Settling()
    settling.begin(session, owner, acks)
    await settling.finish()
    if epoch == CLOSING:
        session.broker.shares.sessions.end(owner)
    return _answer(settling, owner.group, session)


def _answer(settling: Settling, group: str, session: Session) -> ShareAcknowledgeResponse:
    hints = Hints(session)
    topics: dict[bytes, list[AcknowledgedPartition]] = {}
    for (topic_id, index), error in settling.errors.items():
        code = ErrorCode.NONE if error is None else code_of(error)
        node, term = hints.leader(topic_id, index, code)
        topics.setdefault(topic_id, []).append(
            AcknowledgedPartition(
                partition_index=index,
                error_code=code,
                error_message=None if error is None else message_of(error),
                current_leader=LeaderIdAndEpoch(leader_id=node, leader_epoch=term),
            )
        )
    return ShareAcknowledgeResponse(
        error_code=ErrorCode.NONE,
        acquisition_lock_timeout_ms=session.broker.shares.settings.of(group).lock_ms,
        responses=tuple(
            ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=tuple(
            NodeEndpoint(node_id=one.node, host=one.host, port=one.port, rack=one.rack)
            for one in hints.places
        ),
    )
