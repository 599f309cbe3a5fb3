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

    def __init__(self, broker: Broker, open_connections: "set[Connection]") -> None:
        self._broker = broker
        self._open = open_connections
        self._splitter = FrameSplitter(broker.config.frame_bytes_max)
        self._answers: deque[asyncio.Future[list[Buffer]]] = deque()
        self._transport: asyncio.Transport
        self._session: Session
        self._is_reading = True
        self._is_writable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Learn by which address the client came: it is told to come by it again."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)
        host, port = transport.get_extra_info("sockname")[:2]
        client_host = (transport.get_extra_info("peername") or ("",))[0]
        self._session = Session(broker=self._broker, host=host, port=port, client_host=client_host)

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
        self._open.discard(self)
        for answer in self._answers:
            answer.cancel()
        self._answers.clear()

    def abort(self) -> None:
        """Hang up at once: the broker stops, and clients find out soonest by this."""
        self._transport.abort()

    def pause_writing(self) -> None:
        """Learn that the client does not read: the answers pile up here."""
        self._is_writable = False
        self._read_or_pause()

    def resume_writing(self) -> None:
        """Learn that it has read on."""
        self._is_writable = True
        self._read_or_pause()

    def _begin(self, request: memoryview) -> None:
        # Tasks start in the order in which they are made, and a handler appends before it first
        # waits: so appends keep the order of their requests.
        task = asyncio.ensure_future(begin(request, self._session))
        self._answers.append(task)
        task.add_done_callback(self._send_ready)
        self._read_or_pause()

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
        self._read_or_pause()

    def _read_or_pause(self) -> None:
        """Take no more requests from one who does not read the answers, or waits for too many."""
        may_read = self._is_writable and len(self._answers) < REQUESTS_PENDING_MAX
        if may_read is self._is_reading or self._transport.is_closing():
            return
        self._is_reading = may_read
        if may_read:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
