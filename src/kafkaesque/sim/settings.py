"""The settings of one simulated run, drawn from its seed, swarm style.

Every seed has a random subset of the faults, and small limits, because bugs hide in rare cases:
with large batches per message some broken rules are never noticed (Groce et al., "Swarm testing";
tried here, see `docs/explanation/simulator.md`). Times are in the world's own milliseconds.
"""

import random
from dataclasses import dataclass, field, replace

from kafkaesque.config import LogConfig, RaftConfig
from kafkaesque.net.config import LinkConfig
from kafkaesque.sim.inode import DiskFaults
from kafkaesque.topic_settings import FlushPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFaults:
    """How badly the network behaves; rates are per message."""

    delay_max: int = 5
    drop_rate: float = 0.0
    duplicate_rate: float = 0.0
    late_rate: float = 0.0
    """How often a message takes twenty times as long, and so comes after newer ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """Links on which bytes take time, and records that take long on them."""

    bytes_per_ms: int = 100
    large_rate: float = 0.0
    """How often a client writes a large record."""

    large_bytes: int = 0
    links: LinkConfig = field(
        default_factory=lambda: LinkConfig(whole_bytes_max=1_000, piece_bytes=500)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Which faults happen, and the mean time between two of them."""

    pause_mean: int = 400
    kills: bool = False
    power_losses: bool = False
    cuts: bool = False
    transfers: bool = False
    voter_changes: bool = False
    wipes: bool = False
    bit_flips: bool = False
    sync_failures: bool = False
    full_disks: bool = False
    slow_disks: bool = False
    trims: bool = False
    compactions: bool = False

    def kinds(self) -> list[str]:
        """Return the names of the enabled faults."""
        return [
            name for name in self.__slots__ if name != "pause_mean" and getattr(self, name) is True
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that distinguishes one run from another."""

    nodes: int = 3
    groups: int = 1
    tick_ms: int = 10
    drift: float = 0.0
    """Each node's clock runs up to this fraction faster or slower than the world's."""

    flush: FlushPolicy = FlushPolicy.ALWAYS
    """When a batch counts. With several voters and less than ALWAYS, power losses are limited so
    that the other voters still hold everything committed: no more is promised.
    """

    flush_ms: int = 50
    write_pause_max: int = 20
    log: LogConfig = field(default_factory=LogConfig)
    raft: RaftConfig = field(default_factory=RaftConfig)
    disk: DiskFaults = field(default_factory=DiskFaults)
    network: NetworkFaults = field(default_factory=NetworkFaults)
    narrow: Narrow | None = None
    """None if bytes take no time."""

    faults: Faults = field(default_factory=Faults)


def draw(chance: random.Random) -> Settings:
    """Draw the settings of one seed."""

    def often(rate: float) -> bool:
        return chance.random() < rate

    # A flipped bit may go unnoticed for long; together with a wiped disk it could destroy a
    # majority's copies, which no protocol survives. So a seed has one or the other.
    damage = chance.choice(["none", "none", "wipes", "bit_flips"])
    settings = Settings(
        nodes=chance.choice([1, 3, 3, 3, 4, 5]) if damage == "none" else chance.choice([3, 5]),
        groups=chance.choice([1, 1, 2]),
        drift=chance.choice([0.0, 0.1, 0.3]),
        write_pause_max=chance.choice([4, 20, 100]),
        log=LogConfig(
            segment_bytes_max=chance.choice([256, 700, 2000, 100_000]),
            index_interval_bytes=chance.choice([1, 200, 4096]),
            index_sync_bytes=chance.choice([200, 2000]),
            journal_rewrite_bytes=chance.choice([300, 2000, 100_000]),
        ),
        raft=RaftConfig(
            append_bytes_max=chance.choice([1, 150, 1000, 100_000]),
            inflight_max=chance.choice([1, 2, 8]),
        ),
        disk=DiskFaults(
            sync_delay_max=chance.choice([0, 3, 30]) + 1,
            page_bytes=chance.choice([16, 64, 512]),
        ),
        network=NetworkFaults(
            delay_max=chance.choice([1, 5, 30]),
            drop_rate=chance.choice([0.0, 0.0, 0.01, 0.1]),
            duplicate_rate=chance.choice([0.0, 0.02, 0.1]),
            late_rate=chance.choice([0.0, 0.05]),
        ),
        faults=Faults(
            pause_mean=chance.choice([100, 300, 1000]),
            kills=often(0.6),
            power_losses=often(0.6),
            cuts=often(0.5),
            transfers=often(0.3),
            # A group of two voters has no copies to spare for damage.
            voter_changes=damage != "bit_flips" and often(0.4),
            wipes=damage == "wipes",
            bit_flips=damage == "bit_flips",
            sync_failures=often(0.2),
            full_disks=often(0.2),
            slow_disks=often(0.2),
            trims=often(0.4),
            # In a compacted log a flipped bit in a base offset can look like a hole.
            compactions=damage != "bit_flips" and often(0.3),
        ),
    )
    if settings.nodes == 1:
        return replace(settings, flush=chance.choice(list(FlushPolicy)))
    if damage != "none" or settings.faults.voter_changes or not often(0.3):
        return settings
    return replace(settings, flush=chance.choice([FlushPolicy.OS, FlushPolicy.INTERVAL]))


def draw_narrow(seed: int) -> Settings:
    """Draw the settings of a seed on whose links a large record takes longer than an election."""
    chance = random.Random(seed)
    drawn = draw(chance)
    bytes_per_ms = chance.choice([50, 200])
    election_ms = drawn.raft.election_ticks * drawn.tick_ms
    return replace(
        drawn,
        nodes=max(drawn.nodes, 3),
        flush=drawn.flush if drawn.nodes > 1 else FlushPolicy.ALWAYS,
        write_pause_max=chance.choice([100, 300]),
        narrow=Narrow(
            bytes_per_ms=bytes_per_ms,
            large_rate=chance.choice([0.05, 0.1]),
            large_bytes=bytes_per_ms * election_ms * chance.choice([1, 3]),
            links=LinkConfig(
                whole_bytes_max=chance.choice([200, 1_000]),
                piece_bytes=chance.choice([100, 200]),
                queue_bytes_max=chance.choice([2_000, 1 << 20]),
            ),
        ),
    )
