"""Generates services that report their numbers from a seed: the samples of `metrics`."""

import json
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from kafkaesque.spark.pipelines.messages import Message, broken, is_broken
from kafkaesque.spark.pipelines.settings import PipelineSettings

_SERVICES = ("cart", "search", "payment")
_METRICS = {"latency_ms": 40.0, "cpu_share": 0.4, "queue_length": 12.0}
_HOSTS = 4
_PACE_MS = 400
_DISORDER_MS = 3_000
_BROKEN = (
    '{"service":"cart"',
    '{"service":"cart","metric":"latency_ms","value":"much","at":1}',
    '{"metric":"latency_ms","value":1.5,"at":1}',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings(PipelineSettings):
    """The names of the topics, and the times."""

    topic: str = "metrics"
    windows_topic: str = "metrics-windows"
    dead_letter_topic: str = "metrics-dead-letters"
    window_s: int = 60
    """The length of a window."""
    lateness_s: int = 30
    """Samples that arrive later than this after others are dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One number of one service on one host."""

    service: str
    host: str
    metric: str
    value: float
    at: int


def generate(
    seed: int, count: int, start_ms: int, broken_share: float = 0.01
) -> Iterator[Message[Sample]]:
    """Yield samples in almost rising order of time; the same seed yields the same samples."""
    chance = random.Random(seed)
    at_ms = start_ms
    for _ in range(count):
        at_ms += chance.randrange(_PACE_MS)
        if is_broken(chance, broken_share):
            yield broken(chance, "host-0", _BROKEN)
            continue
        metric = chance.choice(list(_METRICS))
        sample = Sample(
            service=chance.choice(_SERVICES),
            host=f"host-{chance.randrange(_HOSTS)}",
            metric=metric,
            value=round(chance.expovariate(1 / _METRICS[metric]), 3),
            at=at_ms - chance.randrange(_DISORDER_MS),
        )
        yield Message(key=sample.host, value=json.dumps(asdict(sample)), event=sample)
