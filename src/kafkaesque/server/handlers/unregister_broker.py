"""UnregisterBroker: remove a broker that holds nothing from the cluster, for good."""

from functools import partial

from kafkaesque.errors import KafkaesqueError
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


async def handle(
    request: UnregisterBrokerRequest, version: int, session: Session
) -> UnregisterBrokerResponse:
    """Remove the broker, or report what it still holds."""
    code, message = ErrorCode.NONE, None
    try:
        await carried_out(partial(session.broker.remove_broker, request.broker_id))
    except KafkaesqueError as error:
        code, message = code_of(error), message_of(error)
    return UnregisterBrokerResponse(error_code=code, error_message=message)
