"""The events of a broker in a test: kept for the test, and logged like a broker logs them."""

from typing import TypeVar

from kafkaesque.clock import Clock, SystemClock
from kafkaesque.events import Event
from kafkaesque.server.edge.event_log import EventLog
from kafkaesque.sim.node import EVERY_LINE

E = TypeVar("E", bound=Event)


class Heard:
    """Receives a broker's events. Complaints fail a test, as its log lines do."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.all: list[Event] = []
        self._log = EventLog(clock or SystemClock(), EVERY_LINE)

    def tell(self, event: Event) -> None:
        """Receive one event."""
        self.all.append(event)
        self._log.tell(event)

    def of(self, kind: type[E]) -> list[E]:
        """Return the events of one kind, oldest first."""
        return [one for one in self.all if isinstance(one, kind)]
