"""RegisterDriver: a new driver takes over a query's sink."""

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transaction_commands import DriverRegistered, RegisterDriver
from kafkaesque.server.asking_transactions import ask_sink
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.session import Session
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
        registered = await ask_sink(
            session,
            request.query,
            request.sink,
            lambda machine, to, now, _: machine.register(command, to, now),
            DriverRegistered,
        )
    except KafkaesqueError as error:
        return RegisterDriverResponse(error_code=code_of(error), error_message=message_of(error))
    return RegisterDriverResponse(error_code=ErrorCode.NONE, driver_epoch=registered.driver_epoch)
