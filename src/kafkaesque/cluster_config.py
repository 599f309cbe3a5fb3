"""Settings for the cluster: voters and partition moves.

Part of `config.py`.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """How a cluster reacts when brokers join, leave or stay away."""

    look_ms: int = 1_000
    """How often the catalog leader checks which brokers are alive and which should vote."""

    plan_ms: int = 5_000
    """How often it compares where partitions are with where they should be."""

    voter_replace_ms: int = 600_000
    """Replace a catalog voter that was away for this long: longer than a restart."""

    replica_replace_ms: int = 1_800_000
    """Replace a broker's replicas after this long: later, as all records must be copied."""

    moves_max: int = 10
    """Partitions that the cluster moves at a time on its own."""

    auto_rebalance: bool = True
    """Give a new broker its share of partitions automatically."""

    catalog_version_max: int = 5
    """The highest `catalog.version` to support. Lower only in tests, to act as an older version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveConfig:
    """How partitions move between brokers; applies to the partitions that a broker leads."""

    moves_max: int = 8
    """Partitions whose new replicas catch up at a time: each reads its log from the start."""

    catch_up_bytes_per_second: int = 32 << 20
    """Rate for all new replicas together: a third of a gigabit leaves room for clients."""

    def __post_init__(self) -> None:
        assert self.moves_max > 0
        assert self.catch_up_bytes_per_second > 0
