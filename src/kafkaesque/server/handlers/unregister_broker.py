"""UnregisterBroker: a broker that holds nothing is removed from the cluster, for good."""

from functools import partial

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import carried_out
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def handle(
    request: UnregisterBrokerRequest, version: int, session: Session
) -> UnregisterBrokerResponse:
    """Remove the broker, or say what it still holds."""
    code, message = ErrorCode.NONE, None
    try:
        await carried_out(partial(session.broker.remove_broker, request.broker_id))
    except KafkaesqueError as error:
        code, message = code_of(error), message_of(error)
    return UnregisterBrokerResponse(error_code=code, error_message=message)
