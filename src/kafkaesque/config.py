"""The settings of a broker and its logs, each with its default and the reason for it.

Checked once when built, then passed down in slices: each package gets only its own class.
`settings.py` holds the range of each number; settings that contradict each other are refused here.
Others are in `server_config.py`, `coordinator_config.py` and `cluster_config.py`; limits that
nobody can set are in the package that keeps them.
"""

from dataclasses import dataclass, field

from kafkaesque.cluster_config import ClusterConfig, MoveConfig
from kafkaesque.coordinator_config import GroupConfig, TransactionConfig
from kafkaesque.errors import BadConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How one partition's log is stored on disk."""

    segment_bytes_max: int = 1 << 30
    """Roll a new segment at this size: large enough to be few, small enough to delete."""

    segment_age_ms_max: int = 7 * 24 * 3600 * 1000
    """Roll a segment whose first record is older than this, so that retention by time works."""

    internal_segment_bytes_max: int = 1 << 20
    """The same for machines' logs: small, because only closed segments are deleted."""

    index_interval_bytes: int = 4096
    """Bytes of batches per index entry; a lookup reads about this much extra."""

    index_sync_bytes: int = 32 << 20
    """Sync the index files after this many appended bytes: recovery reads no more than that."""

    indexes_loaded_max: int = 4
    """Closed segments whose indexes stay in memory: readers cluster at few positions."""

    compaction_keys_max: int = 1_000_000
    """Keys that one compaction pass holds, about 100 bytes each; the rest waits."""

    read_bytes_max: int = 64 << 20
    """The most one read returns, unless its first batch is larger."""

    snapshot_growth_bytes: int = 1 << 20
    """Save a machine's state when its log has grown by this much, and by the size of the state."""

    snapshot_age_ms_max: int = 3600 * 1000
    """Or when an unsaved change is this old, so that a start replays little."""

    slice_bytes: int = 24 << 10
    """Bytes of a machine's log or snapshot read or written between two events: about 1 ms."""

    journal_rewrite_bytes: int = 4 << 20
    """Rewrite the journal when it has grown by this much: replay stays well below 0.1 s."""

    slow_sync_ms: int = 1_000
    """A sync round that takes this long is reported (`slow_sync`): clients notice it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """Timing and limits of one Raft group; times are counted in ticks."""

    election_ticks: int = 10
    """A follower campaigns after hearing nothing from a leader for one to two times this long."""

    heartbeat_ticks: int = 2
    """A leader contacts each follower at least this often; several fit into an election timeout."""

    append_bytes_max: int = 1 << 20
    """Approximate size of one append message: enough to fill a connection, not to stall it."""

    inflight_max: int = 64
    """Unanswered appends to one follower; the pipeline is never deeper."""

    piece_bytes_max: int = 1 << 20
    """Size of one snapshot piece that a follower fetches; only this much is in flight at a time."""

    transfer_ticks: int = 20
    """A leadership transfer that takes longer than two elections is abandoned."""

    lag_ticks_max: int = 200
    """A follower that last caught up with its leader longer ago is not in sync; Kafka: 30 s."""

    lag_entries_max: int = 1 << 22
    """Nor is a follower that lags by more records and marks: far more than any burst brings."""

    campaigns_per_tick: int = 100
    """Groups of a lost broker to request votes for per tick: the whole round fits into the tick."""

    campaigns_again_max: int = 5
    """Vote retries, a heartbeat apart: the other replicas may notice the loss a little later."""

    transfers_per_tick: int = 50
    """Groups to hand over per tick when a broker stops: each is briefly without a leader."""

    hand_over_ticks: int = 100
    """A stopping broker hands over for this long at most; the other groups elect without it."""

    def __post_init__(self) -> None:
        if self.heartbeat_ticks >= self.election_ticks:
            raise BadConfiguration(
                f"raft.heartbeat_ticks is {self.heartbeat_ticks} and must be below "
                f"raft.election_ticks, which is {self.election_ticks}"
            )
        assert self.heartbeat_ticks > 0
        assert self.lag_ticks_max > 0
        assert self.lag_entries_max > 0
        assert self.campaigns_per_tick > 0
        assert self.transfers_per_tick > 0
        assert self.append_bytes_max > 0
        assert self.piece_bytes_max > 0
        assert self.inflight_max > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HousekeepingConfig:
    """How a broker maintains its logs while it runs."""

    check_interval_ms: int = 30_000
    """How often each log is checked; Kafka checks every five minutes, but a check is cheap."""

    retry_interval_ms: int = 1_000
    """How soon it is checked again while work that takes several checks is in progress."""

    slice_ms: int = 2
    """How long all of this may take per tick: a stalled loop would look like a dead node."""

    steps_max: int = 256
    """Steps per tick, however short: a step is a check, or the compaction of one batch."""

    segments_per_look: int = 4
    """Segments of one log that a check may delete: deleting a large file takes time."""

    dirty_share_min: float = 0.5
    """Compact when this share of a log was never compacted, so that a pass is worth its reads."""

    scrub_bytes_per_second: int = 4 << 20
    """How fast the background scrub reads closed segments, to find damage before a client needs the
    data: a terabyte in three days, for a hundredth of a core. 0 turns it off; then segments that a
    crash or an earlier version left unsealed stay unsealed."""

    clock_look_ms: int = 1_000
    """How often a broker compares its clocks with each other, and sends its time to the others."""

    clock_apart_ms_max: int = 60_000
    """Delete nothing by age while the wall clock differs by more from the monotonic clock, or from
    most other brokers: a clock that is ahead makes fresh records look old."""

    clock_heard_ms_max: int = 10_000
    """How long another broker's reported time counts."""

    repair_look_ms: int = 1_000
    """How often a broker checks its logs for damage; it repairs one at a time."""

    repair_retry_ms: int = 5_000
    """How long to wait after a failed repair."""

    repair_piece_bytes_max: int = 1 << 20
    """Bytes requested from another broker at a time, one request in flight: a repair takes little
    memory and link capacity, and at most 20 MB in a second."""

    clock_pause_ms: int = 3600 * 1000
    """How long to distrust a clock jump that no other broker confirms or contradicts; afterwards it
    is trusted, or the disk would fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """State kept for idempotent producers, to tell a retry from a new batch."""

    expiration_ms: int = 24 * 3600 * 1000
    """Forget a producer that was idle for this long in a partition: Kafka's own default."""

    producers_max: int = 10_000
    """Per partition, about 500 bytes each; beyond it the longest idle are forgotten."""

    all_max: int = 500_000
    """Over all partitions of a broker; beyond it each partition forgets its share, longest idle
    first."""

    snapshot_bytes: int = 64 << 20
    """Save the state after this many appended bytes: a restart replays no more than that."""

    snapshot_at_stop_bytes: int = 1 << 20
    """At a clean stop, save only if at least this much would be replayed: less is faster to
    replay."""

    ids_per_block: int = 1000
    """Producer ids that a broker reserves at once: most requests for an id then write nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """What consumers may request at once, and the state kept for them."""

    answer_bytes_max: int = 55 << 20
    """The largest response, whatever was requested, unless its first batch is larger."""

    sessions_max: int = 1000
    """Fetch sessions of one broker; a consumer whose session is evicted sends one full request."""

    session_partitions_max: int = 10_000
    """Partitions of one session; a consumer with more lists them all in each request."""

    sessions_partitions_max: int = 100_000
    """Partitions of all sessions together, about 500 bytes each."""

    def __post_init__(self) -> None:
        if self.session_partitions_max > self.sessions_partitions_max:
            raise BadConfiguration(
                f"fetch.session_partitions_max is {self.session_partitions_max} and must be at "
                f"most fetch.sessions_partitions_max, which is {self.sessions_partitions_max}"
            )
        assert self.session_partitions_max > 0
        assert self.sessions_max > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """What a broker offers to its clients."""

    partitions_default: int = 4
    """Partitions of a topic created without a partition count, as test suites expect."""

    auto_create_topics: bool = True
    """Create a topic when a client requests its metadata, as Kafka does by default."""

    tick_ms: int = 50
    """How often replicas check the time; an election takes 10 to 20 ticks."""

    groups: GroupConfig = field(default_factory=GroupConfig)
    """Timing and limits of consumer groups."""

    producers: ProducerConfig = field(default_factory=ProducerConfig)
    """State kept for idempotent producers."""

    transactions: TransactionConfig = field(default_factory=TransactionConfig)
    """Timing and limits of transactions."""

    fetch: FetchConfig = field(default_factory=FetchConfig)
    """What consumers may request at once."""

    housekeeping: HousekeepingConfig = field(default_factory=HousekeepingConfig)
    """How retention and compaction are paced."""

    raft: RaftConfig = field(default_factory=RaftConfig)
    """Timing and limits of each Raft group."""

    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """How a cluster reacts to lost brokers."""

    moves: MoveConfig = field(default_factory=MoveConfig)
    """How partitions move to other brokers."""
