"""The results of a run, and their JSON file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafkaesque.cli.histogram import Histogram

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure of one variant in one round."""

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
    """Memory of the system's own processes right after the measurement."""
    others_cpu_share: float
    """Share of all cores used by others, neither the system nor its client."""
    load: float
    """The machine's load average over a minute, before the start."""
    first_seconds: float | None = None
    """Time to the first message, if something was read."""
    read: int | None = None
    """Number of messages read, if the first ones do not count."""
    histogram_ns: Sequence[tuple[int, int]] = ()

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds

    @property
    def bytes_rate(self) -> float:
        """Bytes of messages per second."""
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
    """One variant of a system, as it was run."""

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
    """What was not measured, and what it needs."""

    what: str
    reason: str
    package: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine of a run, and its state."""

    processor: str
    cores: int
    memory_bytes: int
    system: str
    loopback_bytes_per_second: float
    load_before: float
    load_after: float
    is_pinned: bool
    touched_bytes: int = 0
    """Memory touched before measurements, in total."""


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
    """A description of each workload."""

    def of(self, figure: str, variant: str) -> list[Measurement]:
        """Return all rounds of one figure."""
        return [m for m in self.measurements if (m.figure, m.variant) == (figure, variant)]

    def fastest(self, figure: str, variant: str) -> Measurement | None:
        """Return the round with the highest rate: other load only slows down."""
        return max(self.of(figure, variant), key=lambda m: m.rate, default=None)

    def cheapest(self, figure: str, variant: str) -> Measurement | None:
        """Return the round that cost the system least."""
        return min(self.of(figure, variant), key=lambda m: m.cpu_per_million, default=None)

    def latencies(self, figure: str, variant: str) -> Histogram | None:
        """Return the latencies of all rounds together."""
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
    """Write a run to a file, one measurement per line."""
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
