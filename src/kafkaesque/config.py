"""Every setting and every limit, with its default and the reason for it.

Checked once when built, then passed down in slices: a package is given only its own class. What one
number may be, `settings.py` says; settings that contradict each other are refused here.
"""

from dataclasses import dataclass, field
from pathlib import Path

from kafkaesque.cluster_config import ClusterConfig, MoveConfig
from kafkaesque.coordinator_config import GroupConfig, TransactionConfig
from kafkaesque.errors import BadConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLimits:
    """What a producer may send inside one batch."""

    decompressed_bytes_max: int = 64 << 20
    """A batch may unpack to this much: above any sane batch, small enough to hold in memory."""

    decompression_ratio_max: int = 200
    """Compressed zeros reach 1,000 and more; text and logs stay below 50."""

    decompression_always_bytes: int = 1 << 20
    """Up to this much the ratio is not looked at: the same records would be let in uncompressed."""

    records_max: int = 1 << 18
    """Records in one batch: 1 MiB has room for 150,000; each takes some 200 bytes as an object."""

    headers_max: int = 1 << 18
    """Headers in one batch, all records together: 2 bytes packed, some 100 as an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How our own client talks to brokers."""

    client_id: str = "kafkaesque"
    """What brokers see in their logs and in `group describe`."""

    frame_bytes_max: int = 100 << 20
    """The largest answer: as much as the largest request."""

    in_flight_max: int = 100
    """Requests of one connection that are not answered yet."""

    connect_ms_max: int = 5_000
    """How long to wait for a connection: machines that are there answer far sooner."""

    request_ms_max: int = 30_000
    """How long to wait for one answer: Kafka's own default."""

    deadline_ms: int = 40_000
    """How long to try again in all: longer than one answer may take, shorter than patience."""

    backoff_ms_min: int = 50
    """The first pause before trying again; each further one is twice as long."""

    backoff_ms_max: int = 1_000
    """The longest pause: a new leader is usually there by then."""

    fetch_bytes_max: int = 8 << 20
    """How much one fetch of batches asks for: a few of the largest batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """How one partition's log lies on disk."""

    segment_bytes_max: int = 1 << 30
    """Roll a new segment at this size: large enough to be few, small enough to delete."""

    segment_age_ms_max: int = 7 * 24 * 3600 * 1000
    """Roll a segment whose first record is older than this, so that retention by time can act."""

    internal_segment_bytes_max: int = 1 << 20
    """The same for what machines live on: small, for only closed segments are dropped."""

    index_interval_bytes: int = 4096
    """One index entry per this many bytes of batches; a lookup reads about this much too much."""

    index_sync_bytes: int = 32 << 20
    """Sync the index files each time this much was appended: recovery need not read more."""

    indexes_loaded_max: int = 4
    """Closed segments whose indexes stay in memory: readers gather at few places."""

    compaction_keys_max: int = 1_000_000
    """Keys that one pass of compaction remembers, about 100 bytes each; the rest waits."""

    read_bytes_max: int = 64 << 20
    """One read returns no more, whatever was asked for, unless its first batch is larger."""

    snapshot_growth_bytes: int = 1 << 20
    """A machine's state is saved when its log has grown by this much, and as much as the state."""

    snapshot_age_ms_max: int = 3600 * 1000
    """Or when a change is this old, so that a start has little to replay."""

    journal_rewrite_bytes: int = 4 << 20
    """Rewrite the journal when it has grown by this much: replaying it stays well below 0.1 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaftConfig:
    """Timing and limits of one Raft group; times are counted in ticks."""

    election_ticks: int = 10
    """Without news of a leader for this long, up to twice as long, a follower campaigns."""

    heartbeat_ticks: int = 2
    """A leader lets no follower wait longer than this for news; several fit into an election."""

    append_bytes_max: int = 1 << 20
    """One append message carries about this much: enough to fill a connection, not to stall it."""

    inflight_max: int = 64
    """Appends sent to one follower and not yet answered; the pipeline is never deeper."""

    piece_bytes_max: int = 1 << 20
    """One piece of a state that a follower fetches, and all of it that is under way at a time."""

    transfer_ticks: int = 20
    """A transfer of leadership that takes longer than two elections is given up."""

    lag_ticks_max: int = 200
    """A follower that was last level with its leader longer ago is not in sync; Kafka: 30 s."""

    lag_entries_max: int = 1 << 22
    """Nor is one that lacks more records and marks than this: far more than any burst brings."""

    campaigns_per_tick: int = 100
    """Groups of a lost broker to ask votes for in one tick: the whole round fits into the tick."""

    campaigns_again_max: int = 5
    """How often to ask again, a heartbeat apart: the others may notice the loss a little later."""

    transfers_per_tick: int = 50
    """Groups to hand over in one tick when a broker stops: each is led by nobody for a moment."""

    hand_over_ticks: int = 100
    """A broker that stops hands over for this long at most: the rest is elected without it."""

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
    """How a broker keeps its logs in shape while it runs."""

    check_interval_ms: int = 30_000
    """How often each log is looked at; Kafka does so every five minutes, but a look is cheap."""

    retry_interval_ms: int = 1_000
    """How soon it is looked at again when something was begun that takes several looks."""

    slice_ms: int = 2
    """How long all of this may take in one tick: a stalled loop would look like a dead node."""

    steps_max: int = 256
    """Steps in one tick, however short they are: a step is a look, or a batch that is compacted."""

    segments_per_look: int = 4
    """Segments of one log that a look may delete: to delete a large file takes time."""

    dirty_share_min: float = 0.5
    """Compact when this share of a log was never compacted, so that a pass is worth its reading."""

    scrub_bytes_per_second: int = 4 << 20
    """How fast closed segments are read through in the background, so that damage is found before
    somebody needs what is damaged: a terabyte in three days, for a hundredth of a core. 0 is off:
    then nothing seals what a crash or an earlier version left unsealed either."""

    clock_look_ms: int = 1_000
    """How often a broker compares its clocks with each other, and tells the others its time."""

    clock_apart_ms_max: int = 60_000
    """Delete nothing by age while the wall clock is off by more from the monotonic clock, or from
    most other brokers: a clock that is ahead makes fresh records look old."""

    clock_heard_ms_max: int = 10_000
    """For how long another broker's time counts after it was heard."""

    repair_look_ms: int = 1_000
    """How often a broker looks whether one of its logs is damaged; it mends one at a time."""

    repair_retry_ms: int = 5_000
    """How long a log waits that could not be mended."""

    repair_piece_bytes_max: int = 1 << 20
    """Asked of another broker at once, with nothing else under way: so a repair takes little of
    memory and of the links, and at most 20 MB in a second."""

    clock_pause_ms: int = 3600 * 1000
    """For how long a jump of the clock is doubted that no other broker confirms or contradicts;
    afterwards it is believed, or the disk would fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """What is remembered of idempotent producers, so that a retry is told from a new batch."""

    expiration_ms: int = 24 * 3600 * 1000
    """Forget a producer that was idle for this long in a partition; Kafka's own default."""

    producers_max: int = 10_000
    """Per partition, about 500 bytes each; beyond it those idle longest are forgotten."""

    all_max: int = 500_000
    """Of all partitions of a broker; each forgets its share, those idle longest, beyond it."""

    snapshot_bytes: int = 64 << 20
    """Write the state down each time this much was appended: a restart reads no more anew."""

    snapshot_at_stop_bytes: int = 1 << 20
    """At a clean stop only if this much would have to be read anew: less is quicker read."""

    ids_per_block: int = 1000
    """Producer ids that a broker takes at once: most requests for one write nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchConfig:
    """What consumers may ask for at once, and what is remembered of them."""

    answer_bytes_max: int = 55 << 20
    """One answer carries no more, whatever was asked for, unless its first batch is larger."""

    sessions_max: int = 1000
    """Fetch sessions of one broker; a consumer that loses its own sends one full request."""

    session_partitions_max: int = 10_000
    """Partitions of one session; a consumer of more names them all in each request."""

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
    """Partitions of a topic that is created without saying how many, as test suites expect."""

    auto_create_topics: bool = True
    """Create a topic when a client asks for its metadata, as Kafka does by default."""

    tick_ms: int = 50
    """How often replicas look at the time; an election takes 10 to 20 of these."""

    groups: GroupConfig = field(default_factory=GroupConfig)
    """Timing and limits of consumer groups."""

    producers: ProducerConfig = field(default_factory=ProducerConfig)
    """What is remembered of idempotent producers."""

    transactions: TransactionConfig = field(default_factory=TransactionConfig)
    """Timing and limits of transactions."""

    fetch: FetchConfig = field(default_factory=FetchConfig)
    """What consumers may ask for at once."""

    housekeeping: HousekeepingConfig = field(default_factory=HousekeepingConfig)
    """How retention and compaction are paced."""

    raft: RaftConfig = field(default_factory=RaftConfig)
    """Timing and limits of each Raft group."""

    cluster: ClusterConfig = field(default_factory=ClusterConfig)
    """How a cluster looks after itself."""

    moves: MoveConfig = field(default_factory=MoveConfig)
    """How partitions are moved to other brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Where a broker listens, what it calls itself and where it keeps its data."""

    listen: str = "localhost"
    """The address to listen on; `localhost` is this machine only, by IPv4 and IPv6."""

    port: int = 9092
    """The one port for all protocols, as Kafka has it; 0 takes a free one."""

    advertised: str = ""
    """`host:port` that clients are told; empty tells each the address by which it came."""

    data: Path = Path("data")
    """The folder that holds everything."""

    join: str = ""
    """`host:port` of any broker of the cluster to join; a folder that was used remembers it."""

    rack: str = ""
    """Where this broker stands: replicas are spread over racks, and clients may prefer theirs."""

    secret_file: Path = Path()
    """The file with the cluster's secret, which brokers on several machines must share."""

    stop_ms: int = 5_000
    """On being told to stop, requests under way have this long to finish."""

    linger_ms: int = 500
    """A broker of several that stops stays this long when others lead: clients go there in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """What one client, and all together, may take of a broker; beyond it they wait or are shut."""

    frame_bytes_max: int = 100 << 20
    """The largest Produce request, Kafka's own default; a larger one closes the connection."""

    request_bytes_max: int = 2 << 20
    """The largest request of any other API: tiny elements take 25 times their size in memory."""

    inflight_bytes_max: int = 256 << 20
    """Bytes received and not yet answered, of all connections; who holds much then waits."""

    requests_pending_max: int = 500
    """Requests of one connection that are not answered yet; it is not read from beyond that."""

    write_buffer_bytes_max: int = 1 << 20
    """Answers that one client has not taken yet; it is not served on before it takes them."""

    untaken_bytes_max: int = 256 << 20
    """Answers that all clients have not taken yet; beyond it a Fetch is answered with little."""

    connections_max: int = 10_000
    """Connections of all kinds; a further one is closed at once. Each takes a descriptor."""

    connections_per_address_max: int = 1_000
    """Connections from one address, so that one machine cannot take them all."""

    connection_rate_max: int = 200
    """New connections per second: accepting must leave time for serving."""

    connection_rate_per_address_max: int = 20
    """New connections per second from one address; a client that fails tries again and again."""

    loopback_is_limited: bool = False
    """Whether rates and limits per address hold for this machine's own programs too."""

    listen_backlog: int = 1024
    """Connections that the system keeps until we accept them: a burst fits in."""

    first_byte_ms_max: int = 10_000
    """A connection must show its protocol in this time, or is closed."""

    frame_ms_max: int = 30_000
    """A request that began to arrive must be whole in this time, or its connection is closed."""

    idle_ms_max: int = 600_000
    """A connection on which nothing happens for this long is closed: Kafka's own default."""

    http_head_bytes_max: int = 8_192
    """The request line and headers of an HTTP request, as most servers have it."""

    http_head_ms_max: int = 10_000
    """An HTTP request must be whole in this time, or its connection is closed."""

    refusals_logged_max: int = 10
    """Lines per second that tell of refused connections; beyond it they are only counted."""

    metrics_series_max: int = 1_000
    """Topics, and partitions, that have lines of their own in /metrics; the rest is in the sums."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLimits:
    """What one connection of the text protocol may take of the broker."""

    line_bytes_max: int = (1 << 20) + (1 << 16)
    """A line: the largest message that a topic takes by default, its quoting and its command."""

    read_ahead_bytes: int = 1 << 16
    """While a command is being done no more than this is read of those that follow."""

    write_buffer_bytes: int = 1 << 18
    """Answers and pushed records that a client may leave unread before it is kept waiting."""

    records_per_answer_max: int = 100
    """Records in one answer to CONS: what a person can look at."""

    answer_bytes_max: int = 4 << 20
    """Keys and bodies in one answer to CONS; the first record is given however large it is."""

    fetch_bytes: int = 1 << 18
    """How much is asked for at a time, for CONS and PUSH; a larger batch still comes whole."""

    publish_records_max: int = 500
    """PUBS lines that wait together are written together, up to this many."""

    publish_bytes_max: int = 1 << 18
    """The same in bytes: well below what a topic takes as one batch."""

    timeout_ms: int = 30_000
    """Publishing and creating end after this long, outcome unknown; so does a leaderless push."""

    push_wait_ms: int = 30_000
    """A push asks again after this long without new records; sooner where others lead."""

    commit_interval_ms: int = 1_000
    """A push notes its group's position this often at most, and when it ends."""

    subscriptions_per_connection_max: int = 1_000
    """Subscriptions that one connection may hold."""

    subscriptions_max: int = 100_000
    """Subscriptions that all connections together may hold, some 500 bytes each."""
