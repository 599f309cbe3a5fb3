"""FindCoordinator: the coordinator of a group or transactional id; creates their topic."""

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC
from kafkaesque.broker.coordination.transactions import STATE_TOPIC
from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.answers.broker_addresses import places
from kafkaesque.server.answers.redirects import send_on_if_cut_off
from kafkaesque.server.requests.callback_waits import done
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

GROUP = 0
TRANSACTION = 1
MANY_KEYS_SINCE = 4
TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: STATE_TOPIC}


async def handle(
    request: FindCoordinatorRequest, version: int, session: Session
) -> FindCoordinatorResponse:
    """Return the leader of the partition that holds a group or a transactional id."""
    code, message = await _readiness(request.key_type, session)
    send_on_if_cut_off(session)
    topic = TOPICS.get(request.key_type, OFFSETS_TOPIC)
    if version >= MANY_KEYS_SINCE:
        found = [
            _coordinator(key, topic, code, message, session) for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=tuple(found))
    one = _coordinator(request.key, topic, code, message, session)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _readiness(key_type: int, session: Session) -> tuple[ErrorCode, str | None]:
    if key_type not in TOPICS:
        return ErrorCode.INVALID_REQUEST, f"unknown kind of coordinator {key_type}"
    broker = session.broker
    is_group = key_type == GROUP
    try:
        if is_group:
            await done(broker.coordinators.when_ready)
        else:
            await done(broker.transactions.coordinators.when_ready)
    except KafkaesqueError as error:
        # Any such error may be transient, and clients retry on this code.
        message = f"{code_of(error).name}: {message_of(error)}"
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, message
    return ErrorCode.NONE, None


def _coordinator(
    key: str, topic: str, code: ErrorCode, message: str | None, session: Session
) -> Coordinator:
    found = None
    if code is ErrorCode.NONE:
        node = session.broker.coordinator_of(key, topic)
        found = next((one for one in places(session) if one.node == node), None)
        if found is None:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            message = "the partition that holds this key has no leader"
    return Coordinator(
        key=key,
        node_id=-1 if found is None else found.node,
        host="" if found is None else found.host,
        port=-1 if found is None else found.port,
        error_code=code,
        error_message=message,
    )
