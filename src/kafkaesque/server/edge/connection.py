"""One Kafka client's connection: requests are started and answered in the order of arrival.

    received ──whole requests──▶ frames ──started in order──▶ calls ──answered in order──▶ written

A request starts when it arrives and runs until it first waits; it appends before that, so appends
keep the order of their requests. All appends of one event are written to the log together at its
end, and so are all responses that are ready then.
"""

import asyncio
import logging
from collections import deque
from struct import Struct
from typing import cast

from kafkaesque.errors import KafkaesqueError, WireError
from kafkaesque.net.frame_reader import LARGE_BYTES
from kafkaesque.net.frame_writer import joined, write_parts
from kafkaesque.server.edge.counters import Refusal
from kafkaesque.server.edge.dispatch import Requests
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.edge.request_receiver import RequestReceiver
from kafkaesque.server.requests.coroutine_runner import Awaited
from kafkaesque.types import Buffer

log = logging.getLogger(__name__)

LARGE_KEYS = frozenset({1, 78})
"""Responses of Fetch and ShareFetch are so large that each waits until earlier ones are sent."""

QUIET_MS = 250
"""A client silent for this long does not wait for a response that is in transit."""

_LENGTH_BYTES = 4
_KEY = Struct(">h")


class Call:
    """One started request."""

    __slots__ = ("awaited", "began", "key", "parts", "size")

    def __init__(self, key: int, size: int, began: float) -> None:
        self.key = key
        self.size = size
        self.began = began
        self.parts: list[Buffer] = []
        self.awaited: Awaited[list[Buffer]] | None = None


class Connection(asyncio.BufferedProtocol):
    """Serves one client until either side closes."""

    __slots__ = (
        "_calls",
        "_edge",
        "_frame_since_ms",
        "_frames",
        "_held",
        "_is_finishing",
        "_is_over_budget",
        "_is_reading",
        "_is_writable",
        "_is_write_due",
        "_loop",
        "_losses",
        "_receiver",
        "_requests",
        "_seen_ms",
        "_transport",
        "_untaken",
    )

    def __init__(self, edge: Edge) -> None:
        self._edge = edge
        self._receiver = RequestReceiver(edge.slab, edge.limits)
        self._frames: deque[memoryview] | None = None
        self._calls: deque[Call] | None = None
        self._held = 0
        self._losses = edge.controllers.losses
        """Controller losses when the client came, or last learned of a controller here."""
        self._seen_ms = edge.doorkeeper.now_ms()
        self._frame_since_ms: int | None = None
        self._is_reading = True
        self._is_writable = True
        self._is_write_due = False
        self._is_finishing = False
        self._is_over_budget = False
        self._untaken = 0
        self._loop: asyncio.AbstractEventLoop
        self._transport: asyncio.Transport
        self._requests: Requests

    # ── transport callbacks ──────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Record the local address that the client used: it is advertised to the client."""
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is not a subclass
        session = self._edge.session(
            transport.get_extra_info("sockname"),
            transport.get_extra_info("peername"),
            self._dismiss,
            self._controller_told,
        )
        self._requests = Requests(session, self._edge.turn)
        self._transport.set_write_buffer_limits(high=self._edge.limits.write_buffer_bytes_max)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes; a small one while too many are in flight."""
        buffer = self._receiver.buffer()
        return buffer[:LARGE_BYTES] if self._edge.budget.is_over else buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Start every complete request; close on an invalid one.

        Requests that this wakes are answered before the sender's: they wait for its data, and a
        write may cost this process its time slice, because the kernel tends to run the receiver at
        once (`bench/latency.py`).
        """
        edge = self._edge
        edge.turn.begin()
        try:
            edge.counters.received_bytes += nbytes
            edge.budget.take(nbytes)
            self._held += nbytes
            self._seen_ms = edge.doorkeeper.now_ms()
            try:
                frames = self._receiver.received(nbytes)
                if frames:
                    self._frame_since_ms = None
                    if self._frames is None:
                        self._frames, self._calls = deque(), deque()
                    self._frames.extend(frames)
                    self._begin_all()
            except WireError as error:
                self._refuse(error)
            if self._receiver.is_within_frame and self._frame_since_ms is None:
                self._frame_since_ms = self._seen_ms
        finally:
            edge.turn.end()
        if not self._transport.is_closing():
            self._answer_all()
            self._read_or_pause()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all pending calls."""
        edge = self._edge
        edge.doorkeeper.leave(self)
        edge.budget.forget(self)
        edge.budget.give(self._held)
        self._held = 0
        self._set_untaken(0)
        self._receiver.forget()  # the session refers to it, so it stays until garbage collection
        calls, self._calls = self._calls, None
        self._frames = None
        for call in calls or ():
            if call.awaited is not None:
                call.awaited.cancel()
        self._requests.lost()

    def pause_writing(self) -> None:
        """Note that the client does not read: responses pile up here."""
        self._is_writable = False
        self._set_untaken(self._transport.get_write_buffer_size())
        self._read_or_pause()

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        self._is_writable = True
        self._set_untaken(0)
        self._seen_ms = self._edge.doorkeeper.now_ms()
        self._go_on()

    def _set_untaken(self, count: int) -> None:
        self._edge.untaken.held_bytes += count - self._untaken
        self._untaken = count

    # ── doorkeeper and budget ────────────────────────────────────────────────────────────────

    @property
    def held_bytes(self) -> int:
        """Bytes received here and not yet answered."""
        return self._held

    @property
    def is_within_frame(self) -> bool:
        """Whether part of a request has arrived."""
        return self._receiver.is_within_frame

    def resume(self) -> None:
        """Resume reading, unless something else prevents it."""
        self._read_or_pause()

    def overdue(self, now_ms: int) -> Refusal | None:
        """Check for a request that arrives too slowly, and for silence.

        While the broker does not read, the client is not to blame, unless it does not read either.
        But over the limit of bytes in flight the deadline still runs: no client may fill memory
        forever.
        """
        limits = self._edge.limits
        since_ms = self._frame_since_ms
        is_its_turn = self._is_reading or self._is_over_budget
        if since_ms is not None and is_its_turn and now_ms - since_ms > limits.frame_ms_max:
            return Refusal.REQUEST_TIME
        is_waited_for = bool(self._calls) and self._is_writable
        if not is_waited_for and now_ms - self._seen_ms > limits.idle_ms_max:
            return Refusal.IDLE
        if self._waits_for_the_lost(now_ms):
            return Refusal.CONTROLLER_LOST
        return None

    def _waits_for_the_lost(self, now_ms: int) -> bool:
        """Whether the client may wait for a lost controller, with nothing else in progress.

        See `server/edge/controllers.py`.
        """
        if self._losses >= self._edge.controllers.due:
            return False
        if self._calls or self._frames or self._receiver.is_within_frame:
            return False
        return now_ms - self._seen_ms >= QUIET_MS

    def abort(self) -> None:
        """Close at once: the broker stops, and this tells clients soonest."""
        self._transport.abort()

    def finish(self) -> None:
        """Take no more requests, and close when the last one is answered."""
        self._is_finishing = True
        self._go_on()

    # ── requests and answers ─────────────────────────────────────────────────────────────────

    def _dismiss(self) -> None:
        """Close after the current response; called by its handler."""
        self._is_finishing = True

    def _controller_told(self) -> None:
        self._losses = self._edge.controllers.losses

    def _go_on(self) -> None:
        """Start deferred requests, then read or close."""
        try:
            self._work()
        except WireError as error:
            self._refuse(error)
        self._read_or_pause()

    def _work(self) -> None:
        """Start as many requests as allowed, and write ready responses."""
        self._begin_all()
        if not self._transport.is_closing():
            self._answer_all()

    def _answer_all(self) -> None:
        """Write ready responses; close after the last."""
        self._write_answers()
        if self._is_finishing and not self._calls and not self._frames:
            self._transport.close()

    def _answer_now(self) -> None:
        """Flush the broker before the event ends, and write ready responses."""
        self._edge.broker.flush()
        self._write_answers()

    def _begin_all(self) -> None:
        """Start as many requests as allowed; write only where that makes room for more."""
        frames, calls = self._frames, self._calls
        requests_pending_max = self._edge.limits.requests_pending_max
        now = self._loop.time()
        while frames and calls is not None and self._is_writable:
            frame = frames[0]
            key = _KEY.unpack_from(frame)[0] if len(frame) >= _KEY.size else -1
            if len(calls) >= requests_pending_max or (calls and key in LARGE_KEYS):
                self._answer_now()
                if len(calls) >= requests_pending_max or (calls and key in LARGE_KEYS):
                    break
                continue
            frames.popleft()
            call = Call(key, _LENGTH_BYTES + len(frame), now)
            if not self._begin(call, frame):
                return
            calls.append(call)

    def _begin(self, call: Call, frame: memoryview) -> bool:
        """Start one request; False if an internal error closed the connection."""
        try:
            answer = self._requests.begin(frame)
        except WireError:
            raise
        except Exception:  # noqa: BLE001  # a bug must cost one connection, not all
            self._fail(call.key)
            return False
        if isinstance(answer, list):
            call.parts = answer
        else:
            call.awaited = answer
        return True

    def _on_answered(self) -> None:
        """Write soon: one write covers all responses that become ready in this turn."""
        if not self._is_write_due:
            self._is_write_due = True
            self._edge.turn.soon(self._write_due)

    def _write_due(self) -> None:
        self._is_write_due = False
        self._go_on()

    def _write_answers(self) -> None:
        """Write ready responses, up to the first pending one, which calls back."""
        calls = self._calls
        if not calls:
            return
        counters = self._edge.counters
        now = self._loop.time()
        out: list[Buffer] = []
        answered, alike, last = 0, 0, calls[0]
        failed: tuple[int, BaseException] | None = None
        while calls:
            call = calls[0]
            awaited = call.awaited
            if awaited is None:
                out += call.parts
            elif awaited.is_done:
                try:
                    out += awaited.answer()
                except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  # as above
                    failed = call.key, error
                    break
            else:
                awaited.when_done(self._on_answered, call.began)
                break
            calls.popleft()
            answered += call.size
            if call.key != last.key or call.began != last.began:
                counters.answered(last.key, now - last.began, alike)
                alike, last = 0, call
            alike += 1
        if answered:
            counters.answered(last.key, now - last.began, alike)
            self._held -= answered
            self._edge.budget.give(answered)
        if len(out) == 1:
            counters.sent_bytes += len(out[0])
            self._transport.write(out[0])
        elif out:
            counters.sent_bytes += sum(map(len, out))
            write_parts(self._transport, joined(out))
        if failed is not None and not self._transport.is_closing():
            self._fail(*failed)

    def _read_or_pause(self) -> None:
        """Pause reading for a client that does not read, or has too many pending requests."""
        if (  # the usual case
            self._is_reading
            and self._is_writable
            and not (self._frames or self._calls or self._is_finishing or self._is_over_budget)
            and self._edge.budget.is_calm
        ):
            return
        if self._transport.is_closing():
            return
        may_read = (
            self._is_writable
            and not self._frames
            and not self._is_finishing
            and (not self._calls or len(self._calls) < self._edge.limits.requests_pending_max)
        )
        was_over_budget = self._is_over_budget
        self._is_over_budget = may_read and not self._edge.budget.admits(self)
        may_read = may_read and not self._is_over_budget
        if may_read is self._is_reading:
            return
        self._is_reading = may_read
        if may_read:
            if self._frame_since_ms is not None and not was_over_budget:
                self._frame_since_ms = self._edge.doorkeeper.now_ms()
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def _refuse(self, error: KafkaesqueError) -> None:
        """Close because of an invalid request; earlier responses are still written."""
        self._edge.doorkeeper.complain(Refusal.REQUEST, self._peer(), error)
        self._answer_now()
        self._close()

    def _fail(self, key: int, error: BaseException | None = None) -> None:
        """Close because of an internal error."""
        self._edge.counters.api(key).errors += 1
        self._edge.counters.refused[Refusal.FAILURE] += 1
        log.error("request_failed api=%d peer=%s", key, self._peer(), exc_info=error or True)
        self._close()

    def _close(self) -> None:
        """Close after pending writes; requests behind an invalid one are dropped."""
        if self._frames:
            self._frames.clear()
        self._transport.close()

    def _peer(self) -> object:
        return self._transport.get_extra_info("peername")
