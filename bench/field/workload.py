"""The workloads: the rows of the quick run and of the full one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from bench.field.system import BROKERS, Durability, Protocol, Variant

KIB = 1024
MIB = 1 << 20
LINGER_MS = 1.0
"""As in OpenMessaging's driver for Kafka."""
LINGER_FROM_RATE = 10_000
"""At this rate no client sends each message in its own request."""


class Kind(Enum):
    """How a workload is run."""

    THROUGHPUT = "throughput"
    """Send as fast as possible, then read everything."""
    LATENCY = "latency"
    """Send at a fixed rate, and record how late each message arrives."""
    FAN_OUT = "fan-out"
    """Several consumers read everything at once."""
    CATCH_UP = "catch-up"
    """Read stored messages while more are sent at a fixed rate."""
    TAIL = "tail"
    """Read the last messages of a topic that stores many."""
    REPLAY = "replay"
    """Send one prebuilt request repeatedly: the sender costs next to nothing."""
    FAILOVER = "failover"
    """Kill the leading server, and record how long nothing is acknowledged."""


class Scope(Enum):
    """Which systems can run it."""

    ALL = "all"
    STREAMS = "streams"
    READ = "read"
    """Systems that can read messages again, without syncing, which does not affect reading."""
    IN_PLACE = "in-place"
    """Systems for which the bench has its own reader, without syncing."""
    KAFKA = "kafka"
    """Only systems that speak Kafka's protocol, without syncing."""
    CLUSTER = "cluster"
    """Only several replicating servers."""
    CLUSTER_OS = "cluster-os"
    """Only several replicating servers, without syncing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One row of the run."""

    name: str
    title: str
    kind: Kind
    scope: Scope
    size: int = 100
    batch_bytes: int = 0
    is_unbatched: bool = False
    acks: str = "all"
    compression: str = "none"
    partitions: int = 1
    consumers: int = 1
    rate: float = 0
    linger_ms: float | None = None
    """How long a producer waits to fill a batch if it can; None leaves it to the driver."""
    is_in_place: bool = False
    """Whether the bench's own reader reads messages in place."""
    stored_bytes: int = 0
    is_once: bool = False
    """Whether one round is enough because preparation takes long."""

    def runs_on(self, variant: Variant) -> bool:
        """Return whether this variant can run it, and should."""
        if (variant.brokers > 1) is not (self.scope in (Scope.CLUSTER, Scope.CLUSTER_OS)):
            return False
        match self.scope:
            case Scope.ALL | Scope.CLUSTER:
                return True
            case Scope.CLUSTER_OS:
                return variant.durability is Durability.OS
            case Scope.STREAMS:
                return variant.protocol is not Protocol.QUEUE
            case Scope.READ:
                is_queue = variant.protocol is Protocol.QUEUE
                return not is_queue and variant.durability is Durability.OS
            case Scope.IN_PLACE:
                return variant.reader != "" and variant.durability is Durability.OS
            case Scope.KAFKA:
                is_kafka = variant.protocol is Protocol.KAFKA
                return is_kafka and variant.durability is Durability.OS


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run: what is measured, for how long and how often.

    Workloads that kill a server come last, because it is not restarted.
    """

    name: str
    rounds: int
    warm_up_seconds: float
    """How long a system is used before anything counts: a JVM compiles its hot code."""
    seconds: float
    """How long a producer sends."""
    latency_seconds: float
    bytes_max: int
    """The most that a workload stores, except those that set their own amount."""
    workloads: Sequence[Workload]

    def for_variant(self, variant: Variant, round_number: int) -> list[Workload]:
        """Return the workloads of one variant in one round."""
        return [
            workload
            for workload in self.workloads
            if workload.runs_on(variant) and not (workload.is_once and round_number)
        ]


def _throughput(size: int, scope: Scope = Scope.ALL) -> Workload:
    return Workload(
        name=f"throughput-{size}",
        title=f"messages of {size:,} B, the client's default batching, acks=all",
        kind=Kind.THROUGHPUT,
        scope=scope,
        size=size,
    )


def _batched(size: int, batch_bytes: int, name: str) -> Workload:
    return Workload(
        name=f"batch-{name}-{size}",
        title=f"messages of {size:,} B in batches of {name.upper()}B",
        kind=Kind.THROUGHPUT,
        scope=Scope.KAFKA,
        size=size,
        batch_bytes=batch_bytes,
    )


def _latency(rate: int, scope: Scope = Scope.ALL) -> Workload:
    is_many = rate >= LINGER_FROM_RATE
    gathered = f", gathered for {LINGER_MS:g} ms where a client can do that" if is_many else ""
    return Workload(
        name=f"latency-{rate}",
        title=f"end to end at {rate:,} messages of 100 B a second, open loop{gathered}",
        kind=Kind.LATENCY,
        scope=scope,
        rate=rate,
        linger_ms=LINGER_MS if is_many else None,
    )


def _in_place(size: int) -> Workload:
    return Workload(
        name=f"in-place-{size}",
        title=f"messages of {size:,} B, read by the bench's own reader where they lie",
        kind=Kind.FAN_OUT,
        scope=Scope.IN_PLACE,
        size=size,
        is_in_place=True,
    )


def _fan_out(consumers: int) -> Workload:
    return Workload(
        name=f"fan-out-{consumers}",
        title=f"{consumers} consumers read every message of 1 KiB",
        kind=Kind.FAN_OUT,
        scope=Scope.READ,
        size=KIB,
        consumers=consumers,
    )


def _partitions(count: int) -> Workload:
    return Workload(
        name=f"partitions-{count}",
        title=f"messages of 1 KiB over {count:,} partitions",
        kind=Kind.THROUGHPUT,
        scope=Scope.KAFKA,
        size=KIB,
        partitions=count,
    )


def _compression(name: str) -> Workload:
    return Workload(
        name=f"compression-{name}",
        title=f"messages of 1 KiB, packed by the producer with {name}",
        kind=Kind.THROUGHPUT,
        scope=Scope.KAFKA,
        size=KIB,
        compression=name,
    )


def _tail(stored_bytes: int, name: str) -> Workload:
    return Workload(
        name=f"tail-{name}",
        title=f"the last 4 MiB of a partition that holds {stored_bytes // MIB:,} MiB",
        kind=Kind.TAIL,
        scope=Scope.KAFKA,
        size=KIB,
        is_in_place=True,
        stored_bytes=stored_bytes,
        is_once=stored_bytes > 1024 * MIB,
    )


def _replicated(size: int) -> Workload:
    return Workload(
        name=f"replicated-{size}",
        title=f"messages of {size:,} B, {BROKERS} replicas, {BROKERS} partitions where there are "
        "any, the client's default batching, acks=all",
        kind=Kind.THROUGHPUT,
        scope=Scope.CLUSTER,
        size=size,
        partitions=BROKERS,
    )


UNBATCHED = Workload(
    name="unbatched-100",
    title="messages of 100 B, one per request",
    kind=Kind.THROUGHPUT,
    scope=Scope.KAFKA,
    is_unbatched=True,
)
ACKS_1 = Workload(
    name="acks-1-100",
    title="messages of 100 B, acks=1",
    kind=Kind.THROUGHPUT,
    scope=Scope.KAFKA,
    acks="1",
)
CATCH_UP = Workload(
    name="catch-up",
    title="what is stored, read while 10,000 messages of 1 KiB a second are sent",
    kind=Kind.CATCH_UP,
    scope=Scope.READ,
    size=KIB,
    rate=10_000,
)
REPLAY = Workload(
    name="replay-1m",
    title="prebuilt requests of 1 MB, five of them ahead of their answers",
    kind=Kind.REPLAY,
    scope=Scope.KAFKA,
    size=KIB,
)
STANDARD = Workload(
    name="standard",
    title="as OpenMessaging's 1 topic, 1 partition: 50,000 messages of 1 KiB a second, "
    f"gathered for {LINGER_MS:g} ms",
    kind=Kind.LATENCY,
    scope=Scope.KAFKA,
    size=KIB,
    rate=50_000,
    linger_ms=LINGER_MS,
)
FAILOVER = Workload(
    name="failover",
    title="one message after the other, each acknowledged by a majority, while the server that "
    "leads is killed (SIGKILL)",
    kind=Kind.FAILOVER,
    scope=Scope.CLUSTER,
    rate=200,
)

QUICK = Plan(
    name="quick",
    rounds=1,
    warm_up_seconds=1.0,
    seconds=0.6,
    latency_seconds=1.2,
    bytes_max=256 * MIB,
    workloads=(
        _throughput(100),
        _throughput(KIB, Scope.STREAMS),
        _latency(1_000),
        _throughput(10, Scope.KAFKA),
        _throughput(64 * KIB, Scope.KAFKA),
        _batched(100, 16_384, "16k"),
        _batched(KIB, 1_000_000, "1m"),
        UNBATCHED,
        ACKS_1,
        _compression("lz4"),
        _partitions(1),
        _partitions(100),
        _fan_out(5),
        _in_place(100),
        _in_place(KIB),
        CATCH_UP,
        REPLAY,
        STANDARD,
        _tail(5 * MIB, "small"),
        _tail(500 * MIB, "large"),
        _replicated(100),
        _replicated(KIB),
        replace(FAILOVER, scope=Scope.CLUSTER_OS),
    ),
)
FULL = Plan(
    name="full",
    rounds=3,
    warm_up_seconds=3.0,
    seconds=1.2,
    latency_seconds=3.0,
    bytes_max=1024 * MIB,
    workloads=(
        _throughput(100),
        _throughput(KIB),
        *(_throughput(size, Scope.STREAMS) for size in (10, 64 * KIB)),
        *(_batched(size, 16_384, "16k") for size in (100, KIB)),
        *(_batched(size, 1_000_000, "1m") for size in (100, KIB)),
        UNBATCHED,
        ACKS_1,
        *(_compression(name) for name in ("gzip", "snappy", "lz4", "zstd")),
        _latency(1_000),
        *(_latency(rate, Scope.READ) for rate in (100, 10_000)),
        STANDARD,
        *(_partitions(count) for count in (1, 10, 100, 1_000)),
        *(_fan_out(consumers) for consumers in (1, 5, 20)),
        _in_place(100),
        _in_place(KIB),
        CATCH_UP,
        REPLAY,
        _tail(5 * MIB, "small"),
        _tail(500 * MIB, "medium"),
        _tail(5 * 1024 * MIB, "large"),
        _replicated(100),
        _replicated(KIB),
        FAILOVER,
    ),
)
BRIEF = Plan(
    name="brief",
    rounds=1,
    warm_up_seconds=0.1,
    seconds=0.2,
    latency_seconds=0.5,
    bytes_max=16 * MIB,
    workloads=(_throughput(100), _latency(1_000), _replicated(100), FAILOVER),
)
"""As short as possible: to check that everything works."""
