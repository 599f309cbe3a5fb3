"""The pace and the limits of gossip, with the reason for each."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipConfig:
    """How brokers gossip about each other; times are in ticks, or in periods of ticks."""

    period_ticks: int = 10
    """Each broker probes one member per period; this sets its cost."""

    answer_ticks: int = 4
    """Without an answer for this long, other members probe too: the path may be at fault."""

    helpers: int = 3
    """How many other members probe: very likely one of them has a working path."""

    suspicion_periods: int = 3
    """Periods in which a suspected member can object, for each doubling of the cluster's size."""

    sync_periods: int = 20
    """How often two members compare all they know, to repair what random gossip missed."""

    repeats: int = 4
    """How often an update is passed on, for each doubling of the cluster's size."""

    updates_max: int = 8
    """Updates in one packet: it stays far below 1,500 bytes."""

    members_max: int = 1_000
    """Members known at a time, dead ones included."""

    forget_periods: int = 10_000
    """A member that is dead or has left is forgotten after this long."""

    def __post_init__(self) -> None:
        assert 0 < self.answer_ticks < self.period_ticks, "helpers need time within the period"
