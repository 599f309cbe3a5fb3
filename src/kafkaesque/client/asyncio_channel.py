"""A channel over a socket, for programs with an event loop."""

import asyncio
from collections import deque
from typing import Any, TypeVar, cast

from kafkaesque.client.address import Address
from kafkaesque.client.channel import Channel
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import ConnectionLost, Unreachable
from kafkaesque.client.exchange import Exchange
from kafkaesque.errors import KafkaesqueError

R = TypeVar("R")


class SocketChannel(Channel):
    """A TCP channel to one broker; connects on the first call, and again after a loss.

    Calls from several tasks share the connection and are answered in order, so a long poll delays
    those behind it: give it a channel of its own.
    """

    def __init__(self, address: Address, config: ClientConfig | None = None) -> None:
        self._address = address
        self._config = config or ClientConfig()
        self._link: _Link | None = None
        self._connecting = asyncio.Lock()
        self._places = asyncio.Semaphore(self._config.in_flight_max)

    async def call(self, request: Any, response: type[R]) -> R:
        """Send a request and return the response.

        Raises Unreachable if there is no connection, ConnectionLost if it ends or goes silent.
        """
        async with self._places:
            link = await self._connected()
            try:
                async with asyncio.timeout(self._config.request_ms_max / 1000):
                    message: R = await link.ask(request, response)
                    return message
            except TimeoutError:
                link.close()
                raise ConnectionLost(f"{self._address} did not answer in time") from None

    def close(self) -> None:
        """Close the connection; pending calls raise ConnectionLost."""
        if self._link is not None:
            self._link.close()
            self._link = None

    async def _connected(self) -> "_Link":
        async with self._connecting:
            if self._link is None or self._link.is_closed:
                self._link = await self._connect()
            return self._link

    async def _connect(self) -> "_Link":
        loop = asyncio.get_running_loop()
        host, port = self._address.host, self._address.port
        try:
            async with asyncio.timeout(self._config.connect_ms_max / 1000):
                _, link = await loop.create_connection(
                    lambda: _Link(self._address, self._config), host, port
                )
                try:
                    await link.ready
                except BaseException:
                    link.close()
                    raise
        except (OSError, ConnectionLost) as error:
            reason = getattr(error, "strerror", None) or str(error) or "no answer in time"
            raise Unreachable(f"cannot reach a broker at {self._address}: {reason}") from error
        return link


class _Link(asyncio.Protocol):
    """One connection."""

    def __init__(self, address: Address, config: ClientConfig) -> None:
        self._address = address
        self._exchange = Exchange(config)
        self._in_flight_max = config.in_flight_max
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self._transport: asyncio.Transport
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_closed = False

    def ask(self, request: Any, response: type[Any]) -> "asyncio.Future[Any]":
        if self.is_closed:
            raise ConnectionLost(f"the connection to {self._address} was lost")
        if (
            self._exchange.in_flight >= self._in_flight_max
        ):  # callers left before their answers came
            self.close()
            raise ConnectionLost(
                f"{self._address} has left {self._in_flight_max} requests unanswered"
            )
        _, parts = self._exchange.send(request, response)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(answer)
        self._transport.writelines(parts)
        return answer

    def close(self) -> None:
        self.is_closed = True
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are not a subclass
        self._transport.writelines(self._exchange.begin())

    def data_received(self, data: bytes) -> None:
        try:
            answers, out = self._exchange.receive(data)
        except KafkaesqueError as error:
            self._fail(ConnectionLost(f"{self._address} sent an invalid response: {error}"))
            self._transport.abort()
            return
        if out:
            self._transport.writelines(out)
        if self._exchange.is_ready and not self.ready.done():
            self.ready.set_result(None)
        for answer in answers:
            waiting = self._waiting.popleft()
            if not waiting.done():  # its caller may have left
                waiting.set_result(answer.message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(ConnectionLost(f"the connection to {self._address} was lost"))

    def _fail(self, error: ConnectionLost) -> None:
        self.is_closed = True
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # the caller may have given up, so nothing awaits it
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)
        self._waiting.clear()
