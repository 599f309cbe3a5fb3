"""Runs a pipeline's queries to their end, and shows their progress."""

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kafkaesque.spark.errors import QueryFailed

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

    from kafkaesque.spark.pipelines.blocks import Done

_LOOK_SECONDS = 0.5
_OURS = re.compile(r"kafkaesque\.[\w.]+: (.+)")
"""The line below a traceback that ends in one of our errors, from any module."""
_IMPATIENCE = "failed to connect back"
"""Spark's error when the Python process that plans a stream did not start within 10 s.

That time cannot be set. Only streams have such a process: Spark waits for the planning of batches.
"""
_RESTARTS_MAX = 5
"""How often a query is restarted for that; it continues from its checkpoint."""
_HINT = (
    "Spark gives a Python process 10 s to start, and this machine was too busy "
    f"{_RESTARTS_MAX + 1} times in a row: run it again when it is less busy, and it continues "
    "from its checkpoint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fare:
    """The progress of one query."""

    name: str
    batch: int
    rows: int
    rows_per_s: float
    lag: int
    state_rows: int
    state_bytes: int
    batch_ms: int


class _Running:
    """A query, and how to restart it."""

    def __init__(self, job: "Callable[[], StreamingQuery]", query: "StreamingQuery") -> None:
        self.job = job
        self.query = query
        self.restarts_left = _RESTARTS_MAX

    def check(self) -> bool:
        """Raise QueryFailed if it failed; if Spark only timed out, restart it and return True."""
        error = self.query.exception()
        if error is None:
            return False
        text = str(error)
        if _IMPATIENCE in text and self.restarts_left:
            self.restarts_left -= 1
            self.query = self.job()
            return True
        lines = [line for line in text.splitlines() if line.strip()]
        reason = _HINT if _IMPATIENCE in text else _sentence(lines)
        raise QueryFailed(f"query {self.query.name} failed: {reason}")


def run(
    jobs: "Sequence[Callable[[], StreamingQuery | Done]]",
    show: Callable[[list[Fare]], None],
    *,
    is_in_turn: bool,
) -> list[Fare]:
    """Run jobs to their end, and return their progress; raises QueryFailed.

    With `is_in_turn` they run one after another, because each takes several processes to start.
    If one fails, or the user interrupts, all are stopped.
    """
    running: list[_Running] = []
    done: list[Fare] = []
    rows: dict[str, tuple[int, int]] = {}
    try:
        for job in jobs:
            started = job()
            if not hasattr(started, "isActive"):
                done.append(_fare_of_done(started.name, started.rows))
                show(done)
                continue
            running.append(_Running(job, started))
            if is_in_turn:
                _wait(running, rows, show)
        _wait(running, rows, show)
        return done + [_fare(one.query, rows) for one in running]
    finally:
        for one in running:
            one.query.stop()


def _wait(
    running: Sequence[_Running],
    rows: dict[str, tuple[int, int]],
    show: Callable[[list[Fare]], None],
) -> None:
    # Ends: queries end on their own or when the user interrupts.
    is_over = False
    while not is_over:
        # Check this first: a query that fails after it is noticed in the next pass.
        is_over = not any(one.query.isActive for one in running)
        for one in running:
            if one.check():
                is_over = False
        show([_fare(one.query, rows) for one in running])
        if not is_over:
            time.sleep(_LOOK_SECONDS)


def table(fares: Sequence[Fare]) -> Table:
    """Return the live view."""
    drawn = Table(title="Pipeline", title_justify="left")
    drawn.add_column("query")
    for column in ("batch", "rows", "rows/s", "lag", "state rows", "state KB", "batch ms"):
        drawn.add_column(column, justify="right")
    for one in fares:
        state_kb = one.state_bytes // 1_024
        numbers = (one.batch, one.rows, round(one.rows_per_s), one.lag, one.state_rows, state_kb)
        drawn.add_row(one.name, *(f"{number:,}" for number in numbers), f"{one.batch_ms:,}")
    return drawn


def lag(source: dict[str, Any]) -> int:
    """Return how many offsets a source has not read yet."""
    ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
    return sum(
        max(offset - ends.get(topic, {}).get(partition, 0), 0)
        for topic, partitions in latest.items()
        for partition, offset in partitions.items()
    )


def _offsets(found: Any) -> dict[str, dict[str, int]]:
    parsed = json.loads(found) if isinstance(found, str) else found
    return {name: each for name, each in (parsed or {}).items() if isinstance(each, dict)}


def _sentence(lines: Sequence[str]) -> str:
    """Return the line with the reason: of a Python error, the one below its traceback."""
    ours = [found[1] for line in lines if (found := _OURS.match(line))]
    return ours[-1] if ours else (lines[0] if lines else "unknown reason")


def _fare_of_done(name: str, rows: int) -> Fare:
    """Return the result of a job that was not a stream, which has only rows."""
    return Fare(
        name=name,
        batch=0,
        rows=rows,
        rows_per_s=0.0,
        lag=0,
        state_rows=0,
        state_bytes=0,
        batch_ms=0,
    )


def _fare(query: "StreamingQuery", rows: dict[str, tuple[int, int]]) -> Fare:
    last = query.lastProgress
    said: dict[str, Any] = {} if last is None else json.loads(last.json)
    batch, seen = rows.get(query.name, (-1, 0))
    for progress in query.recentProgress:
        if progress.batchId > batch:
            batch, seen = progress.batchId, seen + progress.numInputRows
    rows[query.name] = (batch, seen)
    sources, states = said.get("sources", []), said.get("stateOperators", [])
    return Fare(
        name=query.name,
        batch=batch,
        rows=seen,
        rows_per_s=said.get("processedRowsPerSecond", 0.0),
        lag=sum(lag(source) for source in sources),
        state_rows=sum(one.get("numRowsTotal", 0) for one in states),
        state_bytes=sum(one.get("memoryUsedBytes", 0) for one in states),
        batch_ms=said.get("durationMs", {}).get("triggerExecution", 0),
    )
