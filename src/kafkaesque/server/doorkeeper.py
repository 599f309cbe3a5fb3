"""Who may come in, who is in, and who has stayed too long without a word.

Times are looked at now and then by `sweep`, not by a timer for each connection: ten thousand idle
ones then cost a walk over a dictionary each second and nothing else.
"""

import logging
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from kafkaesque.clock import Clock
from kafkaesque.config import LimitsConfig
from kafkaesque.server.counters import Counters, Kind, Refusal

log = logging.getLogger(__name__)

WINDOW_MS = 1_000
"""Rates are counted in windows of a second."""


class Guest(Protocol):
    """A connection, as the doorkeeper sees it."""

    def overdue(self, now_ms: int) -> Refusal | None:
        """Return why it should be closed by now, if so."""
        ...

    def abort(self) -> None:
        """Hang up at once."""
        ...

    def finish(self) -> None:
        """Take no more requests, and hang up when the last one is answered."""
        ...


class Doorkeeper:
    """Counts the connections of one broker and keeps their limits."""

    def __init__(self, limits: LimitsConfig, clock: Clock, counters: Counters) -> None:
        self._limits = limits
        self.now_ms = clock.monotonic_ms
        """The time by which guests are judged; asked with every read."""
        self._counters = counters
        self._guests: dict[Guest, tuple[Kind, str]] = {}
        self._by_address: Counter[str] = Counter()
        self._window_start_ms = 0
        self._window_total = 0
        self._window_by_address: Counter[str] = Counter()
        self._lines = 0
        self._lines_left_out = 0
        self.on_empty: Callable[[], None] = _ignore
        """Called when the last client left."""

    def configure(self, limits: LimitsConfig) -> None:
        """Let other limits hold; who is in stays."""
        self._limits = limits

    @property
    def clients(self) -> list[Guest]:
        """Everyone who is in, but for other brokers."""
        return [guest for guest, (kind, _) in self._guests.items() if kind is not Kind.LINK]

    def enter(self, guest: Guest, address: str) -> bool:
        """Let a new connection in, or say no; then it must be closed without an answer."""
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
        """Learn what a connection is, and who speaks for it from now on."""
        before, address = self._guests.pop(guest)
        self._guests[successor] = (kind, address)
        self._counters.open[before] -= 1
        self._counters.open[kind] += 1
        self._counters.accepted[kind] += 1

    def leave(self, guest: Guest) -> None:
        """Learn that a connection is gone; one that was never let in may leave, too."""
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
        """Close those who are overdue; to be called about once a second."""
        self._turn_window()
        now_ms = self.now_ms()
        for guest, (kind, address) in list(self._guests.items()):
            reason = guest.overdue(now_ms)
            if reason is Refusal.CONTROLLER_LOST:  # no fault of the client's: it leaves in peace
                self._counters.refused[reason] += 1
                guest.finish()
            elif reason is not None:
                self.complain(reason, address, f"a {kind} connection")
                guest.abort()

    def complain(self, reason: Refusal, peer: object, text: object) -> None:
        """Say in one line why a connection is closed, unless too many lines say such things."""
        self._counters.refused[reason] += 1
        self._turn_window()
        if self._lines < self._limits.refusals_logged_max:
            self._lines += 1
            log.warning("connection_closed reason=%s peer=%s: %s", reason, peer, _one_line(text))
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
            log.warning("connections_closed more=%d", self._lines_left_out)
            self._lines_left_out = 0


def is_loopback(address: str) -> bool:
    """Return whether an IP address is this machine's own; a local socket has none at all."""
    return address.startswith("127.") or address in ("::1", "")


def _one_line(text: object) -> str:
    """Return a text as one line: what a client sent must not look like a line of ours."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))


def _ignore() -> None:
    """Nobody waits for it."""
