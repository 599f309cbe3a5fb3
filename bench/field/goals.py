"""The goals of Kafkaesque, as ratios to the other systems in the same run."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from bench.field.results import Results

OURS = "kafkaesque"
_MS_NS = 1_000_000


class Bound(Enum):
    """The side of the goal on which a ratio should be."""

    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One target ratio, and the result."""

    what: str
    against: str
    bound: Bound
    asked: float
    ours: float | None
    theirs: float | None
    unit: str
    why_not: str = "not measured in this run"

    @property
    def ratio(self) -> float | None:
        """Ours divided by theirs; None if either is missing."""
        if self.ours is None or not self.theirs:
            return None
        return self.ours / self.theirs

    @property
    def is_reached(self) -> bool | None:
        """Whether the goal is reached; None if it was not measured."""
        ratio = self.ratio
        if ratio is None:
            return None
        return ratio >= self.asked if self.bound is Bound.AT_LEAST else ratio <= self.asked


def goals(results: Results) -> list[Goal]:
    """Return every goal with the result of this run."""
    return [
        *_against_kafka(results),
        *_against_the_rest(results),
        *_in_place(results),
        *_latencies(results),
        _unbatched(results),
        *_footprint(results),
        _large_batches(results),
        _tail(results),
        *_three_brokers(results),
    ]


def _rate(results: Results, figure: str, variant: str) -> float | None:
    found = results.fastest(figure, variant)
    return None if found is None else found.rate


def _cpu(results: Results, figure: str, variant: str) -> float | None:
    found = results.cheapest(figure, variant)
    return None if found is None else found.cpu_per_million


def _against_kafka(results: Results) -> Iterator[Goal]:
    for durability in ("os", "always"):
        for size in (100, 1024):
            for side in ("produce", "consume"):
                figure = f"throughput-{size}.{side}"
                ours, theirs = f"{OURS}-{durability}", f"kafka-{durability}"
                yield Goal(
                    what=f"{side}, {size:,} B, {durability}",
                    against="Apache Kafka",
                    bound=Bound.AT_LEAST,
                    asked=1.0,
                    ours=_rate(results, figure, ours),
                    theirs=_rate(results, figure, theirs),
                    unit="messages/s",
                )
                yield Goal(
                    what=f"{side}, {size:,} B, {durability}: broker's processor time",
                    against="Apache Kafka",
                    bound=Bound.AT_MOST,
                    asked=0.7,
                    ours=_cpu(results, figure, ours),
                    theirs=_cpu(results, figure, theirs),
                    unit="s per million",
                )


def _against_the_rest(results: Results) -> Iterator[Goal]:
    rows = {
        ("NATS JetStream", "nats"): ({100: 5.0, 1024: 2.0}, ("os", "always")),
        ("Redis Streams", "redis"): ({100: 3.0, 1024: 2.0}, ("os", "always")),
        ("RabbitMQ stream", "rabbitmq-stream"): ({100: 3.0, 1024: 2.0}, ("os",)),
    }
    for (title, system), (asked, durabilities) in rows.items():
        for durability in durabilities:
            for size, least in asked.items():
                for side in ("produce", "consume"):
                    figure = f"throughput-{size}.{side}"
                    yield Goal(
                        what=f"{side}, {size:,} B, {durability}",
                        against=title,
                        bound=Bound.AT_LEAST,
                        asked=least,
                        ours=_rate(results, figure, f"{OURS}-{durability}"),
                        theirs=_rate(results, figure, f"{system}-{durability}"),
                        unit="messages/s",
                    )


def _in_place(results: Results) -> Iterator[Goal]:
    """Yield the goals of reading streams again, with equivalent clients on both sides."""
    for size, least in {100: 3.0, 1024: 2.0}.items():
        figure = f"in-place-{size}.consume"
        yield Goal(
            what=f"consume, {size:,} B, os, both read in place",
            against="RabbitMQ stream",
            bound=Bound.AT_LEAST,
            asked=least,
            ours=_rate(results, figure, f"{OURS}-os"),
            theirs=_rate(results, figure, "rabbitmq-stream-os"),
            unit="messages/s",
        )


def _latencies(results: Results) -> Iterator[Goal]:
    rows = (
        ("p50", 50.0, "NATS JetStream", "nats-os", 2.0),
        ("p99", 99.0, "Apache Kafka", "kafka-os", 1.0),
    )
    for name, percent, title, variant, asked in rows:
        figure = "latency-1000.latency"

        def milliseconds(of: str, percent: float = percent, figure: str = figure) -> float | None:
            found = results.latencies(figure, of)
            return None if found is None else found.percentile(percent) / _MS_NS

        yield Goal(
            what=f"end to end at 1,000 messages/s, {name}, os",
            against=title,
            bound=Bound.AT_MOST,
            asked=asked,
            ours=milliseconds(f"{OURS}-os"),
            theirs=milliseconds(variant),
            unit="ms",
        )


def _unbatched(results: Results) -> Goal:
    return Goal(
        what="one message of 100 B per request, produce, os",
        against="NATS JetStream",
        bound=Bound.AT_LEAST,
        asked=0.5,
        ours=_rate(results, "unbatched-100.produce", f"{OURS}-os"),
        theirs=_rate(results, "throughput-100.produce", "nats-os"),
        unit="messages/s",
    )


def _footprint(results: Results) -> Iterator[Goal]:
    def seconds(variant: str) -> float | None:
        return min((m.seconds for m in results.of("start", variant)), default=None)

    def megabytes(variant: str) -> float | None:
        return min((m.resident_bytes / 1e6 for m in results.of("start", variant)), default=None)

    rows: tuple[tuple[str, str, Callable[[str], float | None]], ...] = (
        ("start to first acknowledged message", "s", seconds),
        ("memory when idle", "MB", megabytes),
    )
    for what, unit, value in rows:
        yield Goal(
            what=what,
            against="Apache Kafka",
            bound=Bound.AT_MOST,
            asked=0.2,
            ours=value(f"{OURS}-os"),
            theirs=value("kafka-os"),
            unit=unit,
        )


def _large_batches(results: Results) -> Goal:
    found = results.fastest("replay-1m.produce", f"{OURS}-os")
    return Goal(
        what="produce in prebuilt requests of 1 MB, os",
        against="loopback TCP",
        bound=Bound.AT_LEAST,
        asked=0.3,
        ours=None if found is None else found.bytes_rate / 1e6,
        theirs=results.machine.loopback_bytes_per_second / 1e6,
        unit="MB/s",
    )


def _tail(results: Results) -> Goal:
    """Return the goal of the tail; only one round stores much, so only that one counts."""
    little, much = (results.of(f"tail-{name}.consume", f"{OURS}-os") for name in ("small", "large"))
    rounds = {found.round for found in much}
    return Goal(
        what="read of the tail with much stored",
        against="itself with little stored",
        bound=Bound.AT_LEAST,
        asked=0.9,
        ours=max((found.rate for found in much), default=None),
        theirs=max((found.rate for found in little if found.round in rounds), default=None),
        unit="messages/s",
    )


def _three_brokers(results: Results) -> Iterator[Goal]:
    for durability in ("os", "always"):
        for size in (100, 1024):
            figure = f"replicated-{size}.produce"
            yield Goal(
                what=f"three brokers, RF 3, acks=all, {size:,} B, {durability}",
                against="Apache Kafka",
                bound=Bound.AT_LEAST,
                asked=1.0,
                ours=_rate(results, figure, f"{OURS}-{durability}-3"),
                theirs=_rate(results, figure, f"kafka-{durability}-3"),
                unit="messages/s",
            )
    yield Goal(
        what="longest pause of a producer after kill -9 of the leader, os",
        against="Apache Kafka",
        bound=Bound.AT_MOST,
        asked=1.0,
        ours=_pause(results, f"{OURS}-os-3"),
        theirs=_pause(results, "kafka-os-3"),
        unit="s",
    )


def _pause(results: Results, variant: str) -> float | None:
    """Return the longest of all rounds: users cannot choose the mildest kill."""
    return max((m.seconds for m in results.of("failover.pause", variant)), default=None)
