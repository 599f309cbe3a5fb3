"""One connection of the text protocol: bytes in, lines out, one command at a time.

There is no task while it is idle. Queued PUBS lines are published together. After the client's end
of file, its earlier lines are still executed and answered; then the connection is closed. An
unterminated line is never executed.
"""

import asyncio
import logging
import socket
from typing import TypeAlias, cast

from msgspec import Struct

from kafkaesque.gateway import text_replies
from kafkaesque.gateway.telnet import TelnetFilter
from kafkaesque.gateway.text_commands import Command, Disconnect, Publish, Stop, parse
from kafkaesque.gateway.text_desk import TextDesk
from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.gateway.text_lines import BadLine, LineSplitter
from kafkaesque.gateway.text_message import Message
from kafkaesque.gateway.text_session import TextSession

log = logging.getLogger(__name__)

_HTTP_LINE_ENDS = (" HTTP/1.0", " HTTP/1.1")


class _Refused(Struct, frozen=True, kw_only=True):
    """A line that is refused without calling the broker."""

    reason: str
    is_end: bool = False


class _Publishing(Struct, frozen=True, kw_only=True):
    """Queued PUBS lines of one topic."""

    topic: str
    messages: list[Message]


_Step: TypeAlias = Command | _Refused | _Publishing


class TextConnection(asyncio.Protocol):
    """Serves one client until either side closes; `closed` is done once all resources are freed."""

    def __init__(self, desk: TextDesk, open_connections: "set[TextConnection]") -> None:
        self._limits = desk.limits
        self._open = open_connections
        self.closed: asyncio.Future[None]
        self._filter = TelnetFilter()
        self._splitter = LineSplitter(desk.limits.line_bytes_max)
        self._session = TextSession(desk, self._send)
        self._transport: asyncio.Transport
        self._writable = asyncio.Event()
        self._writable.set()
        self._worker: asyncio.Future[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._ahead: Command | _Refused | None = None
        self._is_interrupted = False
        self._is_ending = False
        self._is_reading = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start; nothing is sent before the client sends."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        self.closed = asyncio.get_running_loop().create_future()
        self._transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        # A client that receives a push may be silent for days: this detects a dead one.
        sock: socket.socket | None = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._open.add(self)

    def data_received(self, data: bytes) -> None:
        """Receive bytes, and start to work unless a command is running."""
        if self._is_ending:
            return
        try:
            cleaned = self._filter.clean(data)
        except BadCommand as error:
            self._transport.write(text_replies.failure(str(error)))
            self._end()
            return
        # A client that does not read gets no refusals either: they would pile up.
        if cleaned.refusals and self._writable.is_set():
            self._transport.write(cleaned.refusals)
        self._is_interrupted |= cleaned.is_interrupt
        self._splitter.feed(cleaned.text)
        self._work()
        self._read_or_pause()

    def eof_received(self) -> bool:
        """Execute earlier lines, then close: True keeps the transport open until then."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the running command, and free resources."""
        self._is_ending = True
        self._writable.set()
        if self._worker is not None:
            self._worker.cancel()
        self._closing = asyncio.ensure_future(self._session.close())
        self._closing.add_done_callback(self._on_closed)

    def pause_writing(self) -> None:
        """Note that the client does not read: commands and pushes wait."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        self._writable.set()

    @property
    def is_listening(self) -> bool:
        """Whether the client waits for records and need not send anything."""
        return self._session.is_pushing

    def finish(self) -> None:
        """Execute received lines, then close."""
        self._end()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def _end(self) -> None:
        """Stop reading; close once all received lines are executed."""
        self._is_ending = True
        self._work()

    def _work(self) -> None:
        if self._worker is None:
            self._worker = asyncio.ensure_future(self._run())
            self._worker.add_done_callback(self._on_worked)

    def _on_worked(self, worker: "asyncio.Future[None]") -> None:
        if not worker.cancelled() and (error := worker.exception()) is not None:
            log.error("text_command_failed", exc_info=error)
            self._transport.close()

    def _on_closed(self, closing: "asyncio.Future[None]") -> None:
        self._open.discard(self)
        if not self.closed.done():
            self.closed.set_result(None)
        if not closing.cancelled() and (error := closing.exception()) is not None:
            log.error("text_connection_failed", exc_info=error)

    async def _run(self) -> None:
        try:
            await self._do_all()
        finally:
            # Not in the done callback: a line that arrives in between needs a new task.
            self._worker = None
            self._read_or_pause()

    async def _do_all(self) -> None:
        """Execute all queued commands; more may arrive meanwhile."""
        while (step := self._next_step()) is not None:
            match step:
                case _Refused(reason=reason):
                    reply = text_replies.failure(reason)
                case _Publishing(topic=topic, messages=messages):
                    reply = await self._session.publish(topic, messages)
                case _:
                    reply = await self._session.answer(step)
            if isinstance(step, Disconnect) or (isinstance(step, _Refused) and step.is_end):
                self._transport.write(reply)
                self._is_ending = True
                self._transport.close()
                return
            await self._send(reply)
            self._read_or_pause()
        if self._is_ending:
            self._transport.close()

    async def _send(self, data: bytes) -> None:
        """Write bytes, and wait until there is room for more."""
        if not self._transport.is_closing():
            self._transport.write(data)
        await self._writable.wait()

    def _next_step(self) -> _Step | None:
        if self._is_interrupted:
            self._is_interrupted = False
            if self._session.is_pushing:
                return Stop()
        first = self._next_command()
        if not isinstance(first, Publish):
            return first
        messages = [first.message]
        size = first.message.size
        limits = self._limits
        while len(messages) < limits.publish_records_max and size < limits.publish_bytes_max:
            following = self._next_command()
            if not isinstance(following, Publish) or following.topic != first.topic:
                self._ahead = following
                break
            messages.append(following.message)
            size += following.message.size
        return _Publishing(topic=first.topic, messages=messages)

    def _next_command(self) -> Command | _Refused | None:
        if self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            return ahead
        while (line := self._splitter.take()) is not None:
            if isinstance(line, BadLine):
                return _Refused(reason=line.reason)
            if line.endswith(_HTTP_LINE_ENDS):
                # Otherwise a web page could make its reader's browser send commands in the body of
                # a POST.
                return _Refused(reason="this is not a web server", is_end=True)
            try:
                command = parse(line)
            except BadCommand as error:
                return _Refused(reason=str(error))
            if command is not None:
                return command
        return None

    def _read_or_pause(self) -> None:
        """Limit read-ahead while a command runs."""
        if self._transport.is_closing():
            return
        is_full = self._splitter.held_bytes > self._limits.read_ahead_bytes
        if is_full and self._worker is not None:
            # Every time, because the guest wrapper may have resumed reading.
            self._transport.pause_reading()
            self._is_reading = False
        elif not self._is_reading:
            self._transport.resume_reading()
            self._is_reading = True
