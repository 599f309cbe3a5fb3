"""The settings of one simulated run of whole brokers, drawn from its seed, swarm style."""

import random
from dataclasses import dataclass, field, replace

from kafkaesque.cluster_config import ClusterConfig
from kafkaesque.config import BrokerConfig, HousekeepingConfig, LogConfig, RaftConfig
from kafkaesque.coordinator_config import GroupConfig, TransactionConfig
from kafkaesque.sim.inode import DiskFaults
from kafkaesque.sim.settings import NetworkFaults


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Everything that distinguishes one run of a cluster of brokers from another."""

    brokers: int = 3
    voters: int = 3
    """How many of them store the catalog and vote on it; the others are learners."""

    late: int = 0
    """How many more join during the run."""

    racks: int = 1
    tick_ms: int = 10
    drift: float = 0.0
    work_pause_max: int = 20
    """The longest time between two client requests."""

    ask_ms: int = 300
    """A command to another broker without an answer in this time has an unknown outcome."""

    pause_mean: int = 400
    """The mean time between two faults."""

    late_ms: int = 0
    """The last broker, if it does not vote, starts only after this time."""

    transactors: int = 0
    """Number of producers with transactional ids."""

    members: int | None = 0
    """Number of members of a group whose coordinator assigns; None leaves it to the seed."""

    queries: int = 0
    """Number of queries that write batches, each of several transactions."""

    sharers: int | None = 0
    """Number of members of share groups; None leaves it to the seed."""

    forgets: bool = False
    """Whether a loss of power may take the end of the share groups' topic, on its only broker."""

    retention_ms: int | None = None
    """How long topics keep records; None leaves it to the broker."""

    segment_bytes: int | None = None
    """Segment size of topics; None leaves it to the broker."""

    value_bytes: int = 0
    """Minimum length of record values."""

    faults: tuple[str, ...] = ()
    log: LogConfig = field(default_factory=LogConfig)
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    disk: DiskFaults = field(default_factory=DiskFaults)
    network: NetworkFaults = field(default_factory=NetworkFaults)


KINDS = (
    "kills",
    "power_losses",
    "cuts",
    "pauses",
    "slow_disks",
    "sync_failures",
    "moves",
    "drains",
)
"""The faults that `draw_brokers` chooses from; the other functions add more."""


CLOCK_APART_MS_MAX = 100
"""How far clocks of simulated brokers may differ before nothing is deleted by age."""

_PREPARED_MS_MAX = 10_000
"""Longer than any live client leaves a prepared transaction alone."""


def draw_brokers(chance: random.Random) -> BrokerSettings:
    """Draw the settings of one seed."""
    brokers, late = chance.choice([(3, 0), (3, 0), (5, 0), (1, 2), (1, 4), (3, 2)])
    return BrokerSettings(
        brokers=brokers,
        voters=min(chance.choice([3, brokers]), brokers),
        late=late,
        racks=chance.choice([1, 2, 3]),
        drift=chance.choice([0.0, 0.1, 0.3]),
        work_pause_max=chance.choice([8, 20, 60]),
        pause_mean=chance.choice([150, 300, 1000]),
        late_ms=chance.choice([0, 1_000, 4_000]),
        faults=tuple(kind for kind in KINDS if chance.random() < 0.5),
        log=LogConfig(
            segment_bytes_max=chance.choice([700, 2000, 100_000]),
            internal_segment_bytes_max=chance.choice([700, 100_000]),
            index_interval_bytes=chance.choice([200, 4096]),
            journal_rewrite_bytes=chance.choice([2000, 100_000]),
            snapshot_growth_bytes=chance.choice([300, 1 << 20]),
            slice_bytes=400,
        ),
        broker=BrokerConfig(
            groups=GroupConfig(
                offsets_partitions=chance.choice([1, 2]),
                consumer_session_timeout_ms=700,
                consumer_heartbeat_ms=100,
                consumer_hasty_heartbeat_ms=50,
                share_state_partitions=2,
            ),
            transactions=TransactionConfig(state_partitions=2, prepared_ms_max=_PREPARED_MS_MAX),
            cluster=ClusterConfig(
                look_ms=chance.choice([30, 100]),
                plan_ms=200,
                voter_replace_ms=chance.choice([500, 3000]),
                replica_replace_ms=chance.choice([1000, 5000]),
            ),
            raft=RaftConfig(
                append_bytes_max=chance.choice([150, 1000, 100_000]),
                inflight_max=chance.choice([1, 8]),
                lag_ticks_max=chance.choice([3, 20, 200]),
                lag_entries_max=chance.choice([20, 1 << 22]),
                campaigns_per_tick=chance.choice([1, 100]),
                transfers_per_tick=chance.choice([1, 50]),
                piece_bytes_max=chance.choice([50, 300, 1 << 20]),
            ),
        ),
        disk=DiskFaults(
            sync_delay_max=chance.choice([1, 4, 20]), page_bytes=chance.choice([64, 512])
        ),
        network=NetworkFaults(
            delay_max=chance.choice([1, 5, 20]),
            drop_rate=chance.choice([0.0, 0.0, 0.01, 0.05]),
            duplicate_rate=chance.choice([0.0, 0.02]),
            late_rate=chance.choice([0.0, 0.05]),
        ),
        transactors=chance.choice([0, 0, 2, 3]),
        members=None,
        queries=chance.choice([0, 0, 1, 2]),
        sharers=None,
    )


def draw_copies(seed: int) -> BrokerSettings:
    """Draw the settings of a seed in which machines are restored from images of their disks.

    Everything has three replicas: a restored machine rightly loses data that has only one.
    """
    chance = random.Random(seed)
    drawn = draw_brokers(chance)
    kept = tuple(kind for kind in drawn.faults if kind not in ("moves", "drains"))
    return replace(
        drawn,
        brokers=3,
        voters=3,
        late=0,
        late_ms=0,
        pause_mean=60,
        faults=(*kept[:2], *("copies" for _ in range(20))),
    )


def draw_setters(seed: int) -> BrokerSettings:
    """Draw the settings of a seed in which operators keep changing broker settings."""
    drawn = draw_brokers(random.Random(seed))
    return replace(drawn, faults=(*drawn.faults, "settings"))


def draw_tails(seed: int) -> BrokerSettings:
    """Draw the settings of a seed in which disks silently lose the ends of logs, or journals.

    Other faults are few: the leader that counted the lost data must be alive to detect the loss.
    """
    chance = random.Random(seed)
    drawn = draw_brokers(chance)
    kept = tuple(kind for kind in drawn.faults if kind not in ("moves", "drains"))
    return replace(
        drawn,
        brokers=3,
        voters=3,
        late=0,
        late_ms=0,
        pause_mean=150,
        transactors=0,
        queries=0,
        faults=(*kept[:1], *("tails" for _ in range(8)), *("journals" for _ in range(4))),
    )


def draw_rot(seed: int) -> BrokerSettings:
    """Draw the settings of a seed in which disks lose old data.

    Nothing is moved: moving a partition to its damaged copy alone is a choice to lose it.
    """
    chance = random.Random(seed)
    drawn = draw_brokers(chance)
    housekeeping = HousekeepingConfig(
        repair_look_ms=chance.choice([30, 200]),
        repair_retry_ms=100,
        repair_piece_bytes_max=chance.choice([1, 300, 1 << 20]),
    )
    faults = [kind for kind in drawn.faults if kind not in ("moves", "drains")]
    return replace(
        drawn,
        brokers=chance.choice([3, 5]),
        voters=3,
        late=0,
        late_ms=0,
        segment_bytes=1024,
        value_bytes=200,
        work_pause_max=chance.choice([2, 8]),
        pause_mean=100,
        transactors=0,
        queries=0,
        faults=(*faults, *("rot" for _ in range(4))),
        broker=replace(
            drawn.broker,
            housekeeping=housekeeping,
            # Records are large here: followers must keep up with the producers.
            raft=replace(drawn.broker.raft, append_bytes_max=100_000, inflight_max=8),
        ),
    )


def draw_clocks(seed: int) -> BrokerSettings:
    """Draw the settings of a seed in which clocks are wrong, and old data is deleted.

    Times are short, so that much expires during the run: a second stands for a day.
    """
    chance = random.Random(seed)
    drawn = draw_brokers(chance)
    housekeeping = HousekeepingConfig(
        check_interval_ms=60,
        retry_interval_ms=30,
        clock_look_ms=50,
        clock_apart_ms_max=CLOCK_APART_MS_MAX,
        clock_heard_ms_max=300,
    )
    groups = replace(drawn.broker.groups, offsets_check_ms=200)
    return replace(
        drawn,
        brokers=chance.choice([3, 5]),
        voters=3,
        late=0,
        late_ms=0,
        retention_ms=chance.choice([500, 1_000]),
        work_pause_max=20,
        pause_mean=100,
        transactors=0,
        queries=0,
        faults=(*drawn.faults, *("clocks" for _ in range(4))),
        log=replace(drawn.log, segment_bytes_max=700),
        broker=replace(drawn.broker, housekeeping=housekeeping, groups=groups),
    )
