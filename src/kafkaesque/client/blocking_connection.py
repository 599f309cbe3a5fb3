"""A connection that blocks: for the command line, tools and Spark workers."""

import socket
from typing import Any, TypeVar

from kafkaesque.client.address import Address
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import ConnectionLost, NotServed, Unreachable
from kafkaesque.client.exchange import Exchange
from kafkaesque.clock import Clock
from kafkaesque.errors import WireError
from kafkaesque.types import Buffer
from kafkaesque.wire.message import api_of

R = TypeVar("R")

_RECEIVE_BYTES = 256 << 10


class BlockingConnection:
    """One connection to one broker, for one thread; its owner must close it."""

    def __init__(
        self, address: Address, stream: socket.socket, config: ClientConfig, clock: Clock
    ) -> None:
        self._address = address
        self._socket = stream
        self._config = config
        self._clock = clock
        self._exchange = Exchange(config)
        self._answers: dict[int, Any] = {}  # received but not taken; bounded by in_flight_max
        self.is_closed = False

    @classmethod
    def open(
        cls, address: Address, config: ClientConfig, clock: Clock, deadline_ms: int
    ) -> "BlockingConnection":
        """Connect and negotiate versions; raises Unreachable.

        `deadline_ms` is a reading of the monotonic clock.
        """
        allowed_ms = min(config.connect_ms_max, deadline_ms - clock.monotonic_ms())
        if allowed_ms <= 0:
            raise Unreachable(f"no time left to connect to {address}")
        try:
            stream = socket.create_connection((address.host, address.port), allowed_ms / 1000)
        except OSError as error:
            reason = error.strerror or str(error)
            raise Unreachable(f"cannot reach a broker at {address}: {reason}") from error
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = cls(address, stream, config, clock)
        try:
            connection._begin(clock.monotonic_ms() + allowed_ms)
        except (ConnectionLost, WireError) as error:
            raise Unreachable(f"{address} does not speak Kafka's protocol: {error}") from error
        return connection

    def call(
        self,
        request: Any,
        response: type[R],
        deadline_ms: int,
        *,
        version_max: int | None = None,
    ) -> R:
        """Send a request and wait for the response.

        Raises ConnectionLost when none comes, which includes a passed deadline, and Unreachable
        when the broker had already closed the connection; either closes it. Error codes inside the
        response are the caller's business.
        """
        number = self.post(request, response, deadline_ms, version_max=version_max)
        message: R = self.take(number, deadline_ms)
        return message

    def post(
        self,
        request: Any,
        response: type[Any],
        deadline_ms: int,
        *,
        version_max: int | None = None,
    ) -> int:
        """Send a request without waiting, and return the number for `take`.

        Raises what `call` raises. The broker answers in order, whichever is taken first.
        """
        if not self._exchange.in_flight:
            self._check_open()
        number, parts = self._exchange.send(request, response, version_max=version_max)
        self._send(parts, deadline_ms)
        return number

    def take(self, number: int, deadline_ms: int) -> Any:
        """Wait for the response to the posted request of this number; once for each number."""
        # Ends: either the answer comes, or the deadline passes.
        while number not in self._answers:
            try:
                answers, _ = self._exchange.receive(self._receive(deadline_ms))
            except WireError as error:
                self.close()
                raise ConnectionLost(
                    f"{self._address} sent an invalid response: {error}"
                ) from error
            self._answers.update((answer.number, answer.message) for answer in answers)
        return self._answers.pop(number)

    def serves(self, request: type[Any]) -> bool:
        """Return whether the broker serves the API of a request, in a version that we know."""
        try:
            self._exchange.version_of(api_of(request))
        except NotServed:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self._socket.close()

    def _check_open(self) -> None:
        """Raise if the broker closed an idle connection: then no request was carried out."""
        self._socket.settimeout(0)
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return  # open and idle, as expected
        except OSError as error:
            raise Unreachable(str(self._lost(error))) from error
        self.close()
        raise Unreachable(f"{self._address} closed the connection")

    def _begin(self, deadline_ms: int) -> None:
        try:
            self._send(self._exchange.begin(), deadline_ms)
            # Ends: at most two responses are needed, and the deadline passes.
            while not self._exchange.is_ready:
                _, out = self._exchange.receive(self._receive(deadline_ms))
                if out:
                    self._send(out, deadline_ms)
        except BaseException:
            self.close()
            raise

    def _send(self, parts: list[Buffer], deadline_ms: int) -> None:
        try:
            self._wait_until(deadline_ms)
            self._socket.sendall(b"".join(parts))
        except OSError as error:
            raise self._lost(error) from error

    def _receive(self, deadline_ms: int) -> bytes:
        try:
            self._wait_until(deadline_ms)
            data = self._socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise self._lost(error) from error
        if not data:
            self.close()
            raise ConnectionLost(f"{self._address} closed the connection before it answered")
        return data

    def _wait_until(self, deadline_ms: int) -> None:
        left_ms = deadline_ms - self._clock.monotonic_ms()
        if left_ms <= 0:
            raise TimeoutError
        self._socket.settimeout(left_ms / 1000)

    def _lost(self, error: OSError) -> ConnectionLost:
        self.close()
        if isinstance(error, TimeoutError):
            return ConnectionLost(f"{self._address} did not answer in time")
        return ConnectionLost(f"the connection to {self._address} was lost: {error.strerror}")
