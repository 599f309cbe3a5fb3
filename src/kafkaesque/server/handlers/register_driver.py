"""RegisterDriver: a new driver takes over a query's sink."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import RegisterDriver
from kafkaesque.server.answers.ask_coordinator import ask_sink
from kafkaesque.server.requests.errors import code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.register_driver import (
    RegisterDriverRequest,
    RegisterDriverResponse,
)


async def handle(
    request: RegisterDriverRequest, version: int, session: Session
) -> RegisterDriverResponse:
    """Give the driver an epoch above all before it."""
    command = RegisterDriver(query=request.query, sink=request.sink)
    try:
        registered = await ask_sink(session, command)
    except KafkaesqueError as error:
        return RegisterDriverResponse(error_code=code_of(error), error_message=message_of(error))
    return RegisterDriverResponse(error_code=ErrorCode.NONE, driver_epoch=registered.driver_epoch)
