"""Generates log lines of several formats from a seed: the lines of the pipeline `logs`."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkaesque.spark.pipelines.messages import Message, broken, is_broken
from kafkaesque.spark.pipelines.settings import PipelineSettings

LEVELS = ("debug", "info", "warning", "error")
_PRIORITIES = {"debug": 7, "info": 6, "warning": 4, "error": 3}
_STATUSES = {"debug": 200, "info": 204, "warning": 404, "error": 503}
_FACILITY = 16
_PROGRAMS = ("sshd", "cron", "billing")
_PATHS = ("/", "/items/7", "/cart?id=3", "/search?q=a%20b")
_TEXTS = ("it is done", 'he said "no"', "disk sda1: 91 % full", "größer als erwartet")
_PACE_MS = 700
_BROKEN = (
    "hello",
    '{"level":"info"',
    '10.0.0.1 - - [99/Foo/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 5 "-" "-"',
    '{"time":"yesterday","message":"when?"}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsSettings(PipelineSettings):
    """The names of the topics."""

    topic: str = "logs"
    lines_topic: str = "logs-lines"
    dead_letter_topic: str = "logs-dead-letters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The expected result of a line, whatever its format."""

    at: int
    format: str
    host: str
    program: str
    level: str
    message: str


def generate(
    seed: int, count: int, start_ms: int, broken_share: float = 0.01
) -> Iterator[Message[Line]]:
    """Yield lines of all formats; the same seed yields the same lines."""
    chance = random.Random(seed)
    makers = (_combined, _rfc3164, _rfc5424, _json)
    at_ms = start_ms
    for _ in range(count):
        at_ms += chance.randrange(_PACE_MS)
        host = f"host-{chance.randrange(4)}"
        if is_broken(chance, broken_share):
            yield broken(chance, host, _BROKEN)
            continue
        level = chance.choice(LEVELS)
        text, line = chance.choice(makers)(chance, at_ms, host, level)
        yield Message(key=host, value=text, event=line)


def _combined(chance: random.Random, at_ms: int, host: str, level: str) -> tuple[str, Line]:
    request = f"GET {chance.choice(_PATHS)} HTTP/1.1"
    level = "info" if level == "debug" else level
    size = chance.choice(("-", "512"))
    text = (
        f"10.0.0.{chance.randrange(256)} - {chance.choice(('-', 'anna'))} "
        f'[{_time(at_ms):%d/%b/%Y:%H:%M:%S +0000}] "{request}" '
        f'{_STATUSES[level]} {size} "-" "Mozilla/5.0 (X11; Linux)"'
    )
    return text, _line(at_ms // 1_000 * 1_000, "combined", host, "http", level, request)


def _rfc3164(chance: random.Random, at_ms: int, host: str, level: str) -> tuple[str, Line]:
    when, program, message = _time(at_ms), chance.choice(_PROGRAMS), chance.choice(_TEXTS)
    time = f"{when:%b} {when.day:>2} {when:%H:%M:%S}"
    pid = chance.choice(("", "[321]"))
    text = f"<{_FACILITY * 8 + _PRIORITIES[level]}>{time} {host} {program}{pid}: {message}"
    return text, _line(at_ms // 1_000 * 1_000, "rfc3164", host, program, level, message)


def _rfc5424(chance: random.Random, at_ms: int, host: str, level: str) -> tuple[str, Line]:
    program, message = chance.choice(_PROGRAMS), chance.choice(_TEXTS)
    data = chance.choice(("-", '[ex@32473 a="b c"]', '[a@1 x="1"][b@2 y="2"]'))
    priority = _FACILITY * 8 + _PRIORITIES[level]
    text = f"<{priority}>1 {_iso(at_ms)} {host} {program} 77 ID1 {data} {message}"
    return text, _line(at_ms, "rfc5424", host, program, level, message)


def _json(chance: random.Random, at_ms: int, host: str, level: str) -> tuple[str, Line]:
    program, message = chance.choice(_PROGRAMS), chance.choice(_TEXTS)
    times: tuple[dict[str, object], ...] = ({"time": _iso(at_ms)}, {"ts": at_ms})
    word = {"warning": "WARN", "error": "critical"}.get(level, level)
    said = {
        **chance.choice(times),
        "severity": word,
        "host": host,
        "service": program,
        "msg": message,
    }
    return json.dumps(said), _line(at_ms, "json", host, program, level, message)


def _line(at: int, format_: str, host: str, program: str, level: str, message: str) -> Line:
    return Line(at=at, format=format_, host=host, program=program, level=level, message=message)


def _time(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1_000, UTC)


def _iso(at_ms: int) -> str:
    return f"{_time(at_ms // 1_000 * 1_000):%Y-%m-%dT%H:%M:%S}.{at_ms % 1_000:03d}Z"
