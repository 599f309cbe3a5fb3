"""What a run found, and how it lies in a JSON file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafkaesque.cli.histogram import Histogram

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure of one way of running a system, in one round."""

    figure: str
    """As in `throughput-100.produce`."""
    variant: str
    round: int
    messages: int
    seconds: float
    message_bytes: int
    cpu_seconds: float
    """Processor time of the system's own processes."""
    client_cpu_seconds: float
    resident_bytes: int
    """Memory of the system's own processes right after it."""
    others_cpu_share: float
    """Share of all cores that others took meanwhile, neither the system nor its client."""
    load: float
    """The machine's load average over a minute, before it began."""
    first_seconds: float | None = None
    """Until the first message came, where something was read."""
    read: int | None = None
    """All that was read, where what came first of it does not count."""
    histogram_ns: Sequence[tuple[int, int]] = ()

    @property
    def rate(self) -> float:
        """Messages a second."""
        return self.messages / self.seconds

    @property
    def bytes_rate(self) -> float:
        """Bytes of messages a second."""
        return self.rate * self.message_bytes

    @property
    def cpu_per_million(self) -> float:
        """The system's processor seconds for a million messages."""
        return self.cpu_seconds * _MILLION / (self.read or self.messages)

    @property
    def client_cpu_per_million(self) -> float:
        """The client's processor seconds for a million messages."""
        return self.client_cpu_seconds * _MILLION / (self.read or self.messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Participant:
    """One way of running a system, as it was run."""

    variant: str
    title: str
    system: str
    version: str
    durability: str
    is_default: bool
    settings: str
    client: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What was not measured, and what would change that."""

    what: str
    reason: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where it ran, and under which circumstances."""

    processor: str
    cores: int
    memory_bytes: int
    system: str
    loopback_bytes_per_second: float
    load_before: float
    load_after: float
    is_pinned: bool
    touched_bytes: int = 0
    """How much memory was touched before measurements, all of them together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """One whole run."""

    plan: str
    commit: str
    date: str
    rounds: int
    machine: Machine
    participants: Sequence[Participant]
    skipped: Sequence[Skipped]
    failures: Sequence[str]
    measurements: Sequence[Measurement]
    titles: dict[str, str] = field(default_factory=dict)
    """What each workload is, in words."""

    def of(self, figure: str, variant: str) -> list[Measurement]:
        """Return all rounds of one figure."""
        return [m for m in self.measurements if (m.figure, m.variant) == (figure, variant)]

    def fastest(self, figure: str, variant: str) -> Measurement | None:
        """Return the round with the highest rate: what else the machine did only takes away."""
        return max(self.of(figure, variant), key=lambda m: m.rate, default=None)

    def cheapest(self, figure: str, variant: str) -> Measurement | None:
        """Return the round that cost the system the least."""
        return min(self.of(figure, variant), key=lambda m: m.cpu_per_million, default=None)

    def latencies(self, figure: str, variant: str) -> Histogram | None:
        """Return the latencies of all rounds together; none is left out."""
        rounds = [m for m in self.of(figure, variant) if m.histogram_ns]
        if not rounds:
            return None
        all_of_them = Histogram()
        for measurement in rounds:
            all_of_them.merge(Histogram(measurement.histogram_ns))
        return all_of_them

    def figures(self) -> list[str]:
        """Return every figure that was measured, in the order of the run."""
        return list(dict.fromkeys(m.figure for m in self.measurements))


def save(results: Results, path: Path) -> None:
    """Write a run to a file, one measurement a line."""
    whole = asdict(results)
    rows = whole.pop("measurements")
    head = json.dumps(whole, indent=1)
    lines = ",\n".join("  " + json.dumps(_short(row)) for row in rows)
    path.write_text(f'{head[:-2]},\n "measurements": [\n{lines}\n ]\n}}\n')


def load(path: Path) -> Results:
    """Read a run from a file."""
    whole: dict[str, Any] = json.loads(path.read_text())
    whole["machine"] = Machine(**whole["machine"])
    whole["participants"] = [Participant(**row) for row in whole["participants"]]
    whole["skipped"] = [Skipped(**row) for row in whole["skipped"]]
    whole["measurements"] = [_measurement(row) for row in whole["measurements"]]
    return Results(**whole)


def _measurement(row: dict[str, Any]) -> Measurement:
    pairs: Iterable[Sequence[int]] = row.pop("histogram_ns", ())
    return Measurement(**row, histogram_ns=[(pair[0], pair[1]) for pair in pairs])


def _short(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: round(value, 6) if isinstance(value, float) else value
        for name, value in row.items()
        if value is not None and value != ()
    }
