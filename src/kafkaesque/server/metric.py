"""What a metric is: declared once, read when it is asked for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kafkaesque.server.edge import Edge

Samples = Iterable[tuple[tuple[str, ...], float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric: what it is called, and how its values are read."""

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
