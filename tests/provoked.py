"""Checks `@pytest.mark.event("disk_full")`: that the test provokes these events.

In this process they are seen on their way into the log; for brokers in separate processes their
output is read.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.events import Event
from kafkaesque.server.edge.event_log import LOGGER
from kafkaesque.testing.process import BrokerProcess


class _Seen(logging.Handler):
    """Keeps the names of logged events."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.printed: set[Path] = set()

    def emit(self, record: logging.LogRecord) -> None:
        event: Event | None = getattr(record, "event", None)
        if event is not None:
            self.names.add(event.name)

    def has(self, name: str) -> bool:
        line = re.compile(rf" {name}\b")
        printed = (path.read_text() for path in self.printed if path.exists())
        return name in self.names or any(map(line.search, printed))


@pytest.fixture(autouse=True)
def _provoked(request: pytest.FixtureRequest) -> Iterator[None]:
    names = {name for mark in request.node.iter_markers("event") for name in mark.args}
    if not names:
        yield
        return
    logger, seen = logging.getLogger(LOGGER), _Seen()
    before = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(seen)
    BrokerProcess.output_watchers.append(seen.printed.add)
    yield
    BrokerProcess.output_watchers.remove(seen.printed.add)
    logger.removeHandler(seen)
    logger.setLevel(before)
    missing = {name for name in names if not seen.has(name)}
    assert not missing, f"these events did not happen: {missing}"
