"""What can be set for the life of a cluster: who votes, what moves, how brokers talk.

Like `config.py`, of which these are parts.
"""

from dataclasses import dataclass

from kafkaesque.errors import BadConfiguration

PIECE_BYTES_MAX = 1 << 20
"""What one piece of a large frame between brokers carries at most."""


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

    catalog_version_max: int = 4
    """The highest `catalog.version` to support. Lower only in tests: so an older version plays."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkConfig:
    """How brokers hold the links between them."""

    frame_bytes_max: int = 128 << 20
    """The largest frame: the largest Produce request as one batch, and its head."""

    whole_bytes_max: int = 2 << 20
    """A larger frame goes in pieces: usual appends, which have up to 2 MB, are not cut."""

    piece_bytes: int = 256 << 10
    """What one piece carries: a heartbeat that comes behind it waits 10 ms at 200 Mbit/s."""

    queue_bytes_max: int = 32 << 20
    """What waits for one peer to read on, in each of three lanes: small messages, appends and large
    frames; more are dropped. A larger frame is taken when it is alone in its lane."""

    queue_messages_max: int = 1 << 16
    """Messages that wait in each lane: each takes some 200 bytes more than its parts."""

    write_buffer_bytes_max: int = 256 << 10
    """What is handed over for one peer at a time and not taken by the system yet: what comes later
    cannot overtake it."""

    unsent_bytes_max: int = 256 << 10
    """What the system takes for one peer beyond what it has sent; nothing overtakes that either."""

    claimed_bytes_max: int = 4 << 20
    """Memory that a proven peer gets for a frame by its length alone: an append is not copied."""

    dial_ms_max: int = 2_000
    """How long a connection may take to be made: regions are 300 ms apart at most."""

    handshake_ms_max: int = 5_000
    """How long a peer may take to prove itself, once it is connected."""

    handshakes_max: int = 64
    """Incoming connections that have proven nothing yet; a further one is closed."""

    backoff_ms_min: int = 50
    """The first pause before dialing again; each further one is up to twice as long."""

    backoff_ms_max: int = 1_000
    """The longest pause: a broker that is back is found within about a second."""

    refused_backoff_ms: int = 5_000
    """The pause after a refusal: only a person can change a wrong secret."""

    silence_ms_max: int = 5_000
    """What was sent must be received by the peer's system in this time, or the link is cut."""

    calls_pending_max: int = 10_000
    """Calls over one link that are not answered yet, each way."""

    call_ms_max: int = 30_000
    """How long an answer is waited for where the caller says nothing else."""

    lines_per_second_max: int = 10
    """Lines of the log that tell of refused peers; beyond it they are only counted."""

    version_max: int = 3
    """The highest protocol to speak. Lower only in tests: so an older version plays."""

    def __post_init__(self) -> None:
        if not 0 < self.piece_bytes <= min(PIECE_BYTES_MAX, self.whole_bytes_max):
            raise BadConfiguration(
                f"links.piece_bytes is {self.piece_bytes} and must be from 1 to {PIECE_BYTES_MAX}, "
                f"and at most links.whole_bytes_max, which is {self.whole_bytes_max}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipConfig:
    """How brokers spread word of each other; times are counted in ticks and periods of them."""

    period_ticks: int = 10
    """One member is asked in each period whether it is there: a cluster's cost per broker."""

    answer_ticks: int = 4
    """Without an answer for this long others are asked to try: the way may be at fault."""

    helpers: int = 3
    """How many others are asked: one that has a way is very likely among them."""

    suspicion_periods: int = 3
    """Periods to speak up against a suspicion, for each doubling of the cluster's size."""

    sync_periods: int = 20
    """How often two members compare all that they know, which heals what chance left out."""

    repeats: int = 4
    """How often a piece of news is passed on, for each doubling of the cluster's size."""

    updates_max: int = 8
    """Pieces of news in one packet: it stays far below 1,500 bytes."""

    members_max: int = 1_000
    """Members that are known at a time, the dead included."""

    forget_periods: int = 10_000
    """A member that is dead or has left is forgotten after this long."""

    def __post_init__(self) -> None:
        assert 0 < self.answer_ticks < self.period_ticks, "helpers need time within the period"
