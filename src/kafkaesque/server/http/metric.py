"""A metric: declared once, read when scraped."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkaesque.server.edge.edge import Edge

Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: its name, and how to read its values."""

    name: str
    text: str
    labels: tuple[str, ...] = ()
    read: Callable[[Edge], Samples]

    @property
    def is_counter(self) -> bool:
        """Whether it only grows."""
        return self.name.endswith("_total")


def one(value: float) -> Samples:
    """Return the samples of a metric without labels."""
    return [((), value)]
