"""Turns events into counts and log lines, with a limit per event name and second.

Ten thousand partitions that elect leaders at once must not write ten thousand lines. A line is

    2026-01-31 10:00:00,000 ERROR damage_found partition=… offset=… reason=…: what it means

or, by `events.format`, a JSON object with the same fields. Other lines (`logging` at the edges)
go through the same handler.
"""

import logging
from collections import Counter
from datetime import UTC, datetime

import msgspec

from kafkaesque.clock import Clock
from kafkaesque.events import Component, Event, EventsLeftOut, Level, meaning
from kafkaesque.server_config import EventsConfig, LogFormat

LOGGER = "kafkaesque.events"
"""Each component has a logger below it; its level can be changed at run time."""

WINDOW_MS = 1_000
"""Lines are limited per window of a second."""

_LEVELS = {level: getattr(logging, level.name) for level in Level}
_TEXT_FORMAT = "%(asctime)s %(levelname)s %(message)s"


class EventLog:
    """Receives the events of one broker; `sweep` is called about once a second."""

    def __init__(self, clock: Clock, config: EventsConfig | None = None) -> None:
        self.counts: Counter[str] = Counter()
        """Count of each event by its name, including events without a line."""
        self._clock = clock
        self._lines_max = (config or EventsConfig()).lines_per_second_max
        self._loggers = {one: logging.getLogger(f"{LOGGER}.{one}") for one in Component}
        self._window_start_ms = clock.monotonic_ms()
        self._lines: Counter[str] = Counter()
        self._left_out: Counter[type[Event]] = Counter()

    def tell(self, event: Event) -> None:
        """Count an event, and write its line unless the name has reached its limit."""
        self.counts[event.name] += 1
        if not self._loggers[event.component].isEnabledFor(_LEVELS[event.level]):
            return
        self.sweep()
        if self._lines[event.name] < self._lines_max:
            self._lines[event.name] += 1
            self._write(event, type(event))
        else:
            self._left_out[type(event)] += 1

    def sweep(self) -> None:
        """Start a new window when due, and report the lines left out of the last one."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._window_start_ms < WINDOW_MS:
            return
        self._window_start_ms = now_ms
        self._lines.clear()
        self.flush()

    def flush(self) -> None:
        """Report the lines left out so far; also called at the end."""
        left_out, self._left_out = self._left_out, Counter()
        for kind, more in left_out.items():
            self.counts[EventsLeftOut.name] += 1
            self._write(EventsLeftOut(event=kind.name, more=more), kind)

    def _write(self, event: Event, kind: type[Event]) -> None:
        """Write a line with the level and component of this kind."""
        logger = self._loggers[kind.component]
        logger.log(_LEVELS[kind.level], "%s", shown(event), extra={"event": event, "kind": kind})


def shown(event: Event) -> str:
    """Return the line of an event, without its time and level."""
    words = [event.name]
    for attribute, key in zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True):
        value = getattr(event, attribute)
        if attribute != "text" and value is not None:
            words.append(f"{key}={','.join(map(str, value)) if _is_list(value) else value}")
    sentence = _sentence(event)
    return one_line(" ".join(words) + (f": {sentence}" if sentence else ""))


def one_line(text: object) -> str:
    """Return a text as one line: client input must not look like another log line."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))


def _is_list(value: object) -> bool:
    return isinstance(value, tuple)


def _sentence(event: Event) -> str:
    """Return the sentence of a line; the name says enough for what goes well."""
    text: str | None = getattr(event, "text", None)
    if text is not None:
        return text
    if event.level is Level.INFO:
        return ""
    said = meaning(type(event)).removesuffix(".")
    return said[0].lower() + said[1:]


class JsonLines(logging.Formatter):
    """Formats each record as one JSON object with its time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        at = datetime.fromtimestamp(record.created, UTC)
        said: dict[str, object] = {
            "time": at.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
        }
        event: Event | None = getattr(record, "event", None)
        if event is None:
            said |= {"logger": record.name, "text": record.getMessage()}
            if record.exc_info:
                said["trace"] = self.formatException(record.exc_info)
        else:
            kind: type[Event] = record.kind  # type: ignore[attr-defined]
            fields = msgspec.to_builtins(event).items()
            said |= {"component": kind.component, "event": event.name}
            said |= {key: value for key, value in fields if value is not None}
            sentence = _sentence(event)
            if sentence:
                said["text"] = sentence
        return msgspec.json.encode(said).decode()


def set_up(config: EventsConfig) -> None:
    """Configure this process to log to stderr."""
    handler = logging.StreamHandler()
    is_json = config.format is LogFormat.JSON
    handler.setFormatter(JsonLines() if is_json else logging.Formatter(_TEXT_FORMAT))
    logging.basicConfig(handlers=[handler], level=_LEVELS[config.level])
    for component, level in config.by_component().items():
        logging.getLogger(f"{LOGGER}.{component}").setLevel(_LEVELS[level])
