"""One client's connection: requests are begun in order, waits overlap, answers keep the order."""

import asyncio
import logging
from collections import deque

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import WireError
from kafkaesque.server.dispatch import begin
from kafkaesque.server.session import Session
from kafkaesque.types import Buffer
from kafkaesque.wire.frame import FrameSplitter

log = logging.getLogger(__name__)

REQUESTS_PENDING_MAX = 500
"""Requests of one connection that are not answered yet; it is not read from beyond that."""


class Connection(asyncio.Protocol):
    """Serves one client until either side closes."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._splitter = FrameSplitter(broker.config.frame_bytes_max)
        self._answers: deque[asyncio.Future[list[Buffer]]] = deque()
        self._transport: asyncio.Transport
        self._session: Session
        self._is_reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Learn by which address the client came: it is told to come by it again."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        host, port = transport.get_extra_info("sockname")[:2]
        self._session = Session(broker=self._broker, host=host, port=port)

    def data_received(self, data: bytes) -> None:
        """Begin every request that is whole; close on what is no request."""
        try:
            for request in self._splitter.feed(data):
                self._begin(request)
        except WireError as error:
            peer = self._transport.get_extra_info("peername")
            log.info("connection_refused peer=%s reason=%s", peer, error)
            self._transport.close()
        self._broker.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what is still being waited for."""
        for answer in self._answers:
            answer.cancel()
        self._answers.clear()

    def _begin(self, request: memoryview) -> None:
        # The task runs up to its first wait before anything else happens, so appends keep the
        # order of their requests.
        task = asyncio.ensure_future(begin(request, self._session))
        self._answers.append(task)
        task.add_done_callback(self._send_ready)
        if len(self._answers) >= REQUESTS_PENDING_MAX and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def _send_ready(self, _: object) -> None:
        out: list[Buffer] = []
        while self._answers and self._answers[0].done():
            answer = self._answers.popleft()
            if answer.cancelled():
                continue
            error = answer.exception()
            if error is not None:
                log.error("request_failed", exc_info=error)
                self._transport.close()
                return
            out += answer.result()
        if out:
            self._transport.writelines(out)
        if not self._is_reading and len(self._answers) < REQUESTS_PENDING_MAX // 2:
            self._is_reading = True
            self._transport.resume_reading()
