"""What can be set for the life of a cluster: who votes, what moves, and how fast.

Like `config.py`, of which these are parts.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """How a cluster looks after itself when brokers come, go and stay away."""

    look_ms: int = 1_000
    """How often the leader of the catalog looks who is there, and who is to vote."""

    plan_ms: int = 5_000
    """How often it looks where partitions are, and where they should be."""

    voter_replace_ms: int = 600_000
    """A voter of the catalog that was away for this long is replaced: longer than a restart."""

    replica_replace_ms: int = 1_800_000
    """So are a broker's replicas, later, because all their records must be copied."""

    moves_max: int = 10
    """Partitions that are moved at a time on the cluster's own account."""

    auto_rebalance: bool = True
    """Give a broker that was added its share of partitions without being asked to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveConfig:
    """How partitions are moved between brokers; it holds for those that a broker leads."""

    moves_max: int = 8
    """Partitions whose new replicas catch up at a time: each reads its log from the beginning."""

    catch_up_bytes_per_second: int = 32 << 20
    """What all new replicas together are sent: a third of a gigabit leaves room for clients."""

    def __post_init__(self) -> None:
        assert self.moves_max > 0
        assert self.catch_up_bytes_per_second > 0
