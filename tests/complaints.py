"""Fails a test whose broker complained: logged a warning, an error or a traceback.

Clients retry, so a broker that drops every second connection can hide behind a green test. A test
that provokes a complaint on purpose names it with `@pytest.mark.complains("connection_closed …")`:
the exact text of the line, with `*` for the parts that differ from run to run (ports, folders). The
sentence that explains an event can be left out.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkaesque.testing.process import BrokerProcess

LOGGERS = ("kafkaesque", "asyncio")
OF_CLIENTS = ("kafkaesque.spark.",)
"""Loggers of ours that do not belong to a broker."""
WITHOUT_LEADERS = pytest.mark.complains(
    "problem kind=no-majority: the catalog has no leader, so nothing can be changed *",
    "problem kind=leaderless: no leader for *",
)
"""For tests that take brokers away for so long that the others may report it."""

_LINE = re.compile(
    rb"^[\d-]+ [\d:,]+ (?:WARNING|ERROR|CRITICAL) (.*)$|^(Traceback .*)$", re.MULTILINE
)


class _Kept(logging.Handler):
    """Collects what brokers in this process complain about."""

    def __init__(self, complaints: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._complaints = complaints

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(OF_CLIENTS):
            return
        cause = f": {record.exc_info[1]!r}" if record.exc_info else ""
        self._complaints.append(record.getMessage() + cause)


class Complaints:
    """What all brokers of this session complained about and no test has claimed yet."""

    def __init__(self) -> None:
        self.new: list[str] = []
        self._handler = _Kept(self.new)
        self._read_to: dict[Path, int] = {}

    def begin(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self._handler)
        BrokerProcess.output_watchers.append(self.look)

    def end(self) -> None:
        for name in LOGGERS:
            logging.getLogger(name).removeHandler(self._handler)
        BrokerProcess.output_watchers.remove(self.look)

    def look(self, output: Path) -> None:
        """Read new output of a broker; of one not seen before only later output."""
        is_there = output.exists()
        if output not in self._read_to:
            self._read_to[output] = output.stat().st_size if is_there else 0
            return
        if not is_there:
            del self._read_to[output]
            return
        with output.open("rb") as file:
            file.seek(self._read_to[output])
            printed = file.read()
        whole = printed[: printed.rfind(b"\n") + 1]
        self._read_to[output] += len(whole)
        for found in _LINE.finditer(whole):
            self.new.append((found[1] or found[2]).decode(errors="replace"))

    def take(self) -> list[str]:
        """Return what is new, in all brokers, and forget it."""
        for output in list(self._read_to):
            self.look(output)
        taken = self.new.copy()
        self.new.clear()
        return taken


@pytest.fixture(scope="session")
def _complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    complaints.begin()
    yield complaints
    complaints.end()
    assert not complaints.take(), "brokers complained after the last test"


@pytest.fixture(autouse=True)
def _no_complaints(_complaints: Complaints, request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    texts = [text for mark in request.node.iter_markers("complains") for text in mark.args]
    assert not any(text.startswith("*") for text in texts), "say what is expected"
    patterns = [re.escape(text).replace(r"\*", ".*") + "(: .*)?" for text in texts]
    expected = [re.compile(pattern, re.DOTALL) for pattern in patterns]
    surprising = [
        said for said in _complaints.take() if not any(text.fullmatch(said) for text in expected)
    ]
    assert not surprising, "a broker complained:\n" + "\n".join(surprising[:20])
