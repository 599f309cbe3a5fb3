"""A Channel straight into the handlers of the broker in this process, with no bytes in between."""

from typing import Any, TypeVar

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import ApiNotServed
from kafkaesque.server.dispatch import HANDLERS
from kafkaesque.server.session import Session
from kafkaesque.wire.message import api_of

R = TypeVar("R")


class LocalChannel:
    """Calls handlers as if by the newest version of each API.

    `host` and `port` are what answers name as this broker's address. What a handler raises reaches
    the caller; ApiNotServed if there is no handler.
    """

    def __init__(self, broker: Broker, host: str, port: int) -> None:
        self._session = Session(broker=broker, host=host, port=port)

    async def call(self, request: Any, response: type[R]) -> R:
        """Have the request handled and return the answer itself."""
        api = api_of(type(request))
        answer = await self.handle(request, api.last)
        assert isinstance(answer, response), f"{api.name} was answered by {type(answer).__name__}"
        return answer

    async def handle(self, request: Any, version: int) -> Any:
        """Have a request handled as if it had come in this version."""
        api = api_of(type(request))
        handle = HANDLERS.get(api.key)
        if handle is None:
            raise ApiNotServed(f"{api.name} is not served here")
        return await handle(request, version, self._session)
