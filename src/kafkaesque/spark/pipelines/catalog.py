"""Every pipeline by its name; what needs Spark is imported only when one is run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafkaesque.spark.pipelines.activity_events import Message, generate


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """One pipeline: what it does, the topic it reads, and where its code is."""

    name: str
    summary: str
    topic: str
    module: str
    """The module with `jobs` and the settings class."""
    settings: str

    def messages(self, seed: int, count: int, start_ms: int) -> Iterator[Message]:
        """Yield made-up records for its topic."""
        return generate(seed, count, start_ms)


PIPELINES: Mapping[str, Pipeline] = {
    one.name: one
    for one in (
        Pipeline(
            name="activity",
            summary="clicks and searches to sessions, funnels and counters by the minute",
            topic="clicks",
            module="kafkaesque.spark.pipelines.activity",
            settings="ActivitySettings",
        ),
    )
}
"""All of them, in the order of the list."""
