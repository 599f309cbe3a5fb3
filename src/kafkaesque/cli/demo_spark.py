"""The pipeline of the demonstration: `kafkaesque pipeline run activity`, in its own process."""

import dataclasses
import json
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from kafkaesque.spark.pipelines import activity_plain
from kafkaesque.spark.pipelines.activity_events import ActivitySettings, ActivityTimes, Event
from kafkaesque.testing.process import free_port

TIMES = ActivityTimes(gap_s=3, lateness_s=30)
"""Visits of the demonstration are short; no event may count as late, however long an election."""

DRAIN_SECONDS_MAX = 120.0
_STOP_SECONDS_MAX = 20
_ASK_SECONDS_MAX = 2.0
_LOOK_EVERY_S = 0.5
_PARTITIONS = 4
_QUERY = '{query="sessions"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Fares:
    """The progress of the pipeline: the numbers of its query for sessions."""

    rows: int
    rows_per_s: float
    lag: int
    batch_ms: int


class Pipeline:
    """A process that finds visits in the clicks as they arrive."""

    def __init__(self, python: Path, bootstrap: str, folder: Path) -> None:
        self._bootstrap = bootstrap
        self._port = free_port()
        self._settings = ActivitySettings(gap_s=TIMES.gap_s, lateness_s=TIMES.lateness_s)
        self.output = folder / "spark.out"
        command = [str(python), "-m", "kafkaesque", "pipeline", "run", "activity"]
        command += ["--bootstrap", bootstrap, "--folder", str(folder / "pipeline")]
        command += ["--metrics-port", str(self._port)]
        command += ["--set", f"gap_s={TIMES.gap_s}", "--set", f"lateness_s={TIMES.lateness_s}"]
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    @property
    def is_running(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def fares(self) -> Fares | None:
        """Return its progress; None while it is still starting."""
        url = f"http://127.0.0.1:{self._port}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=_ASK_SECONDS_MAX) as answer:
                text = answer.read().decode()
        except (urllib.error.URLError, OSError):
            return None
        found = _numbers(text)
        if "rows" not in found:
            return None
        return Fares(
            rows=int(found["rows"]),
            rows_per_s=found["rows_per_second"],
            lag=int(found["lag_offsets"]),
            batch_ms=int(found["batch_milliseconds"]),
        )

    def drain(self, events: Iterable[Event]) -> tuple[int, int]:
        """Wait until it has found all visits; return how many it found, and how many are correct.

        Correct means equal to what plain Python finds in the same events.
        """
        wanted = {_key(dataclasses.asdict(one)) for one in activity_plain.sessions(events, TIMES)}
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        found: list[str] = []
        while time.monotonic() < deadline and self.is_running:
            found = self._sessions()
            if len(found) >= len(wanted):
                break
            time.sleep(_LOOK_EVERY_S)
        equal = len(wanted & set(found)) if len(found) == len(set(found)) else 0
        return len(found), equal if len(found) == len(wanted) else min(equal, len(wanted) - 1)

    def stop(self) -> None:
        """Interrupt it as a user would, and kill it if it does not end."""
        if self.is_running:
            self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_STOP_SECONDS_MAX)

    def _sessions(self) -> list[str]:
        """Return the visits in the topic that it writes to."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        topic = self._settings.sessions_topic
        consumer.assign([TopicPartition(topic, index, 0) for index in range(_PARTITIONS)])
        found: list[str] = []
        ended: set[int | None] = set()
        deadline = time.monotonic() + DRAIN_SECONDS_MAX
        while len(ended) < _PARTITIONS and time.monotonic() < deadline:
            for message in consumer.consume(1_000, _ASK_SECONDS_MAX):
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    found.append(_key(json.loads(message.value() or b"{}")))
        consumer.close()
        return found


def wanted_sessions(events: Iterable[Event]) -> int:
    """Return how many visits plain Python finds."""
    return len(activity_plain.sessions(events, TIMES))


def _key(session: Mapping[str, object]) -> str:
    return json.dumps(session, sort_keys=True)


def _numbers(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.endswith(_QUERY):
            found[name.removesuffix(_QUERY).removeprefix("kafkaesque_pipeline_")] = float(value)
    return found
