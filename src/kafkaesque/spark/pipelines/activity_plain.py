"""Computes the expected results of the pipeline `activity` in plain Python."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafkaesque.spark.pipelines.activity_events import (
    KINDS,
    SECONDS_OF_A_WINDOW,
    ActivityTimes,
    Event,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One visit."""

    user: str
    started_at: int
    ended_at: int
    events: int
    searches: int
    clicks: int
    carts: int
    buys: int
    stage: str


def sessions(events: Iterable[Event], times: ActivityTimes) -> list[Session]:
    """Return the sessions that are over, by user and start.

    A session is over when the newest event is later than its end by the gap plus the allowed
    lateness.
    """
    by_user: defaultdict[str, list[Event]] = defaultdict(list)
    newest_ms = 0
    for event in events:
        by_user[event.user].append(event)
        newest_ms = max(newest_ms, event.at_ms)
    watermark_ms = newest_ms - times.lateness_s * 1_000
    return [
        _session(visit)
        for _, own in sorted(by_user.items())
        for visit in _visits(sorted(own, key=lambda event: event.at_ms), times.gap_s * 1_000)
        if visit[-1].at_ms + times.gap_s * 1_000 <= watermark_ms
    ]


def counters(events: Iterable[Event]) -> dict[tuple[int, str], int]:
    """Return the number of events by window and kind."""
    size_ms = SECONDS_OF_A_WINDOW * 1_000
    return Counter((event.at_ms // size_ms * size_ms, event.kind) for event in events)


def _visits(events: list[Event], gap_ms: int) -> Iterator[list[Event]]:
    visit: list[Event] = []
    for event in events:
        if visit and event.at_ms - visit[-1].at_ms > gap_ms:
            yield visit
            visit = []
        visit.append(event)
    yield visit


def _session(visit: list[Event]) -> Session:
    kinds = Counter(event.kind for event in visit)
    return Session(
        user=visit[0].user,
        started_at=visit[0].at_ms,
        ended_at=visit[-1].at_ms,
        events=len(visit),
        searches=kinds["search"],
        clicks=kinds["click"],
        carts=kinds["cart"],
        buys=kinds["buy"],
        stage=max((event.kind for event in visit), key=KINDS.index),
    )
