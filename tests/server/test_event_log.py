"""How events become log lines and counts: readable, bounded, in text and in JSON."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaesque.errors import BadConfiguration
from kafkaesque.events import (
    ConnectionClosed,
    DamageFound,
    Event,
    LeaderElected,
    Level,
    RepairBegun,
    VotersChanged,
)
from kafkaesque.server.edge.event_log import LOGGER, EventLog, JsonLines, set_up, shown
from kafkaesque.server_config import EventsConfig, LogFormat
from tests.server.running import ManualClock

ELECTED = LeaderElected(partition="orders.1/0", term=7)
BEGUN = RepairBegun(partition="a/0", offset=3, source=2)
DAMAGED = DamageFound(partition="orders.1/0", reason="a bit flipped")


@pytest.fixture
def levels() -> Iterator[None]:
    """Restore the levels and handlers of all loggers."""
    names = [LOGGER, f"{LOGGER}.raft", f"{LOGGER}.log"]
    before = {name: logging.getLogger(name).level for name in names}
    root, handlers = logging.root.level, logging.root.handlers[:]
    yield
    logging.root.setLevel(root)
    logging.root.handlers[:] = handlers
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ELECTED, "leader_elected partition=orders.1/0 term=7"),
        (
            BEGUN,
            "repair_begun partition=a/0 offset=3 from=2",
        ),
        (
            VotersChanged(partition="a/0", voters=(1, 2), learners=()),
            "voters_changed partition=a/0 voters=1,2 learners=",
        ),
        (
            ConnectionClosed(reason="request", peer="192.0.2.1", text="x\r\nleader_elected"),
            "connection_closed reason=request peer=192.0.2.1: x??leader_elected",
        ),
    ],
)
def test_a_line_has_the_name_the_fields_and_one_sentence(event: Event, line: str) -> None:
    assert shown(event) == line


def test_a_warning_says_what_it_means() -> None:
    line = shown(DAMAGED)
    assert line.startswith("damage_found partition=orders.1/0 reason=a bit flipped: the disk ")
    assert line.endswith("kafkaesque doctor`")


@pytest.mark.event("events_left_out")
def test_of_many_events_per_second_a_few_have_lines_and_all_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    log = EventLog(clock, EventsConfig(lines_per_second_max=3))
    for term in range(10_000):
        log.tell(LeaderElected(partition="orders.1/0", term=term))
    log.tell(BEGUN)
    log.sweep()
    assert [line.split()[0] for line in lines(caplog)] == ["leader_elected"] * 3 + ["repair_begun"]
    clock.ms += 1_000
    log.sweep()
    assert [(one.getMessage(), one.levelname, one.name) for one in caplog.records] == [
        ("events_left_out name=leader_elected more=9997", "INFO", f"{LOGGER}.raft")
    ]
    assert log.counts == {"leader_elected": 10_000, "repair_begun": 1, "events_left_out": 1}
    caplog.clear()
    log.tell(ELECTED)
    assert len(lines(caplog)) == 1, "another second has its own lines"


def test_events_left_out_in_the_last_second_are_reported_at_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    log = EventLog(ManualClock(), EventsConfig(lines_per_second_max=1))
    log.tell(ELECTED)
    log.tell(ELECTED)
    log.flush()
    assert lines(caplog)[1:] == ["events_left_out name=leader_elected more=1"]


@pytest.mark.usefixtures("levels")
def test_a_component_below_its_level_is_counted_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    logging.getLogger(f"{LOGGER}.raft").setLevel(logging.WARNING)
    log = EventLog(ManualClock())
    log.tell(ELECTED)
    log.tell(BEGUN)
    assert [line.split()[0] for line in lines(caplog)] == ["repair_begun"]
    assert log.counts == {"leader_elected": 1, "repair_begun": 1}


def written(*events: Event) -> list[dict[str, Any]]:
    """Return the lines that a collector of JSON logs reads."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger(LOGGER)
    logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        log = EventLog(ManualClock())
        for event in events:
            log.tell(event)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.complains("damage_found partition=orders.1/0 reason=a bit flipped")
def test_a_line_of_json_has_the_fields_as_values() -> None:
    begun, damaged = written(BEGUN, DAMAGED)
    assert begun.pop("time").endswith("+00:00")
    assert begun == {
        "level": "info",
        "component": "log",
        "event": "repair_begun",
        "partition": "a/0",
        "offset": 3,
        "from": 2,
    }
    assert damaged["level"] == "error"
    assert "offset" not in damaged
    assert damaged["text"].startswith("the disk returned data")


def test_a_json_line_that_is_not_an_event_has_its_logger_and_the_traceback() -> None:
    info = (OSError, OSError("gone"), None)
    record = logging.LogRecord("kafkaesque.net", logging.ERROR, "", 1, "lost %d", (2,), info)
    said = json.loads(JsonLines().format(record))
    assert (said["logger"], said["text"]) == ("kafkaesque.net", "lost 2")
    assert said["trace"].endswith("OSError: gone")


@pytest.mark.usefixtures("levels")
@pytest.mark.parametrize("form", LogFormat)
def test_settings_choose_the_format_and_the_level_of_each_component(form: LogFormat) -> None:
    logging.root.handlers.clear()
    set_up(EventsConfig(format=form, level=Level.WARNING, levels="raft=info log=error"))
    assert logging.root.level == logging.WARNING
    assert logging.getLogger(f"{LOGGER}.raft").level == logging.INFO
    assert logging.getLogger(f"{LOGGER}.log").level == logging.ERROR
    (handler,) = logging.root.handlers
    assert isinstance(handler.formatter, JsonLines) is (form is LogFormat.JSON)


@pytest.mark.parametrize("levels", ["raft", "raft=loud", "nowhere=info", "raft=info,log=info"])
def test_invalid_levels_are_refused(levels: str) -> None:
    with pytest.raises(BadConfiguration, match=r"events\.levels has"):
        EventsConfig(levels=levels)
