"""Admits connections, tracks them, and closes those that are silent too long.

`sweep` checks deadlines periodically instead of a timer per connection: ten thousand idle
connections then cost one walk over a dictionary each second and nothing else.
"""

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock
from kafkaesque.events import ConnectionClosed, ConnectionsClosed, Events
from kafkaesque.server.edge.counters import Counters, Kind, Refusal
from kafkaesque.server.requests.addresses import is_loopback
from kafkaesque.server_config import LimitsConfig

WINDOW_MS = 1_000
"""Rates are counted per window of a second."""


class Guest(Protocol):
    """A connection as the doorkeeper sees it."""

    def overdue(self, now_ms: int) -> Refusal | None:
        """Return why it should be closed by now, or None."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...

    def finish(self) -> None:
        """Take no more requests, and close when the last one is answered."""
        ...


class Doorkeeper:
    """Counts the connections of one broker and enforces their limits."""

    def __init__(
        self, limits: LimitsConfig, clock: Clock, counters: Counters, events: Events
    ) -> None:
        self._limits = limits
        self.now_ms = clock.monotonic_ms
        """The clock for guests' deadlines; read on every receive."""
        self._counters = counters
        self._events = events
        self._guests: dict[Guest, tuple[Kind, str]] = {}
        self._by_address: Counter[str] = Counter()
        self._window_start_ms = 0
        self._window_total = 0
        self._window_by_address: Counter[str] = Counter()
        self._lines = 0
        self._lines_left_out = 0
        self.on_empty: Callable[[], None] = ignore
        """Called when the last client has left."""

    def configure(self, limits: LimitsConfig) -> None:
        """Apply new limits; open connections stay."""
        self._limits = limits

    @property
    def clients(self) -> list[Guest]:
        """All open connections except links to other brokers."""
        return [guest for guest, (kind, _) in self._guests.items() if kind is not Kind.LINK]

    def enter(self, guest: Guest, address: str) -> bool:
        """Admit a new connection; if False, it must be closed without a response."""
        self._turn_window()
        reason = self._objection(address)
        if reason is not None:
            self.complain(reason, address, "too many")
            return False
        if self._is_limited(address):
            self._window_total += 1
            self._window_by_address[address] += 1
        self._by_address[address] += 1
        self._guests[guest] = (Kind.NEW, address)
        self._counters.open[Kind.NEW] += 1
        self._counters.accepted[Kind.NEW] += 1
        return True

    def becomes(self, guest: Guest, successor: Guest, kind: Kind) -> None:
        """Record a connection's kind and the object that now represents it."""
        before, address = self._guests.pop(guest)
        self._guests[successor] = (kind, address)
        self._counters.open[before] -= 1
        self._counters.open[kind] += 1
        self._counters.accepted[kind] += 1

    def leave(self, guest: Guest) -> None:
        """Record that a connection has closed; it may never have been admitted."""
        found = self._guests.pop(guest, None)
        if found is None:
            return
        kind, address = found
        self._counters.open[kind] -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        if not any(other is not Kind.LINK for other, _ in self._guests.values()):
            self.on_empty()

    def sweep(self) -> None:
        """Close overdue connections; to be called about once a second."""
        self._turn_window()
        now_ms = self.now_ms()
        for guest, (kind, address) in list(self._guests.items()):
            reason = guest.overdue(now_ms)
            if reason is Refusal.CONTROLLER_LOST:  # not the client's fault: closed gracefully
                self._counters.refused[reason] += 1
                guest.finish()
            elif reason is not None:
                self.complain(reason, address, f"a {kind} connection")
                guest.abort()

    def complain(self, reason: Refusal, peer: object, text: object) -> None:
        """Log why a connection is closed, unless the line limit is reached."""
        self._counters.refused[reason] += 1
        self._turn_window()
        if self._lines < self._limits.refusals_logged_max:
            self._lines += 1
            told = ConnectionClosed(reason=reason, peer=str(peer), text=str(text))
            self._events.tell(told)
        else:
            self._lines_left_out += 1

    def _objection(self, address: str) -> Refusal | None:
        limits = self._limits
        if len(self._guests) >= limits.connections_max:
            return Refusal.CONNECTIONS
        if not self._is_limited(address):
            return None
        if self._by_address[address] >= limits.connections_per_address_max:
            return Refusal.CONNECTIONS_PER_ADDRESS
        if self._window_by_address[address] >= limits.connection_rate_per_address_max:
            return Refusal.RATE_PER_ADDRESS
        if self._window_total >= limits.connection_rate_max:
            return Refusal.RATE
        return None

    def _is_limited(self, address: str) -> bool:
        return self._limits.loopback_is_limited or not is_loopback(address)

    def _turn_window(self) -> None:
        now_ms = self.now_ms()
        if now_ms - self._window_start_ms < WINDOW_MS:
            return
        self._window_start_ms = now_ms
        self._window_total = 0
        self._window_by_address.clear()
        self._lines = 0
        if self._lines_left_out:
            self._events.tell(ConnectionsClosed(more=self._lines_left_out))
            self._lines_left_out = 0
