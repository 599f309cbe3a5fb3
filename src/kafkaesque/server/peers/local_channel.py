"""A Channel directly into this broker's handlers, with no bytes in between."""

from typing import Any, TypeVar

from kafkaesque.broker.broker import Broker
from kafkaesque.server.edge.dispatch import HANDLERS
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.errors import ApiNotServed
from kafkaesque.wire.message import api_of

R = TypeVar("R")


class LocalChannel:
    """Calls handlers in the newest version of each API.

    `host` and `port` are this broker's address in responses. Errors of a handler reach the caller;
    ApiNotServed if there is no handler.
    """

    def __init__(self, broker: Broker, host: str, port: int) -> None:
        self._session = Session(broker=broker, host=host, port=port)

    async def call(self, request: Any, response: type[R]) -> R:
        """Handle a request and return the response itself."""
        api = api_of(type(request))
        answer = await self.handle(request, api.last)
        assert isinstance(answer, response), f"{api.name} was answered by {type(answer).__name__}"
        return answer

    async def handle(self, request: Any, version: int) -> Any:
        """Handle a request as if it had arrived in this version."""
        api = api_of(type(request))
        handle = HANDLERS.get(api.key)
        if handle is None:
            raise ApiNotServed(f"{api.name} is not served here")
        return await handle(request, version, self._session)
