"""What can be set for groups and for transactions, and what both are limited to.

Like `config.py`, of which these are parts.
"""

from dataclasses import dataclass
from enum import StrEnum

from kafkaesque.errors import BadConfiguration


class MigrationPolicy(StrEnum):
    """Whether classic groups become groups whose coordinator assigns while they run, and back."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def may_upgrade(self) -> bool:
        """Whether a member that cannot assign may come into a classic group."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def may_downgrade(self) -> bool:
        """Whether a group becomes classic when only classic members are left."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Timing and limits of consumer groups."""

    offsets_partitions: int = 16
    """Partitions of `__consumer_offsets`, for good once it exists: groups spread over them."""

    initial_rebalance_delay_ms: int = 100
    """How long an empty group gathers members that start together; Kafka waits 3 s."""

    session_timeout_ms_min: int = 1
    """Members may ask for any time-out from here on: test suites ask for less than Kafka's 6 s."""

    session_timeout_ms_max: int = 1_800_000
    """The longest time-out that a member may ask for, as in Kafka."""

    new_member_wait_ms_max: int = 300_000
    """A new member whose first join goes unanswered for this long is dropped, as in Kafka."""

    consumer_session_timeout_ms: int = 45_000
    """A member of a group whose coordinator assigns is dropped after this silence, as in Kafka."""

    consumer_heartbeat_ms: int = 1_000
    """How often such a member is to be heard from; Kafka asks for 5 s, and rebalances as slowly."""

    consumer_hasty_heartbeat_ms: int = 200
    """How often while its group is being rebalanced, so that this is soon over."""

    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """How groups change their kind while in use: Kafka's `group.consumer.migration.policy`."""

    members_max: int = 1_000
    """Members of one consumer group, those who were only given an id included."""

    member_bytes_max: int = 1 << 20
    """What one member says of itself: a list of 10,000 partitions takes about 200 kB."""

    group_bytes_max: int = 16 << 20
    """All members of a group, or all their assignments: both are written as one record."""

    protocols_max: int = 100
    """Ways to share the work that one member knows: clients know one to three."""

    groups_max: int = 2_000
    """Groups of one partition of `__consumer_offsets`; 16 times as many on one broker."""

    group_name_bytes_max: int = 1024
    """The longest name of a group: far above any that is in use."""

    offset_metadata_bytes_max: int = 4096
    """What a client may note beside an offset: Kafka's own default."""

    offsets_bytes_max: int = 16 << 20
    """All offsets of one partition of `__consumer_offsets`, with what clients note there and the
    names of their groups; 256 bytes more are counted for each, and 400 for a group. That is about
    65,000 bare ones; those that are kept can move on."""

    members_bytes_max: int = 32 << 20
    """All members of the groups of one such partition, with what they are assigned; 1 KiB more is
    counted for each, and 384 bytes for a partition that the coordinator assigned."""

    offsets_retention_ms: int = 7 * 24 * 3600 * 1000
    """Offsets are forgotten this long after their group became empty: Kafka's own default."""

    offsets_check_ms: int = 600_000
    """How often to look for offsets to forget; empty groups without any go at the same time."""

    def __post_init__(self) -> None:
        if self.session_timeout_ms_min > self.session_timeout_ms_max:
            raise BadConfiguration(
                f"groups.session_timeout_ms_min is {self.session_timeout_ms_min} and must be at "
                f"most groups.session_timeout_ms_max, which is {self.session_timeout_ms_max}"
            )
        if self.consumer_hasty_heartbeat_ms > self.consumer_heartbeat_ms:
            raise BadConfiguration(
                f"groups.consumer_hasty_heartbeat_ms is {self.consumer_hasty_heartbeat_ms} and must"
                f" be at most groups.consumer_heartbeat_ms, which is {self.consumer_heartbeat_ms}"
            )
        if self.consumer_heartbeat_ms >= self.consumer_session_timeout_ms:
            raise BadConfiguration(
                f"groups.consumer_heartbeat_ms is {self.consumer_heartbeat_ms} and must be below "
                "groups.consumer_session_timeout_ms, which is "
                f"{self.consumer_session_timeout_ms}"
            )
        assert self.offsets_partitions > 0
        assert self.session_timeout_ms_min > 0
        assert self.consumer_hasty_heartbeat_ms > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Timing and limits of transactions."""

    state_partitions: int = 16
    """Partitions of `__transaction_state`, for good once it exists: ids spread over them."""

    timeout_ms_max: int = 900_000
    """The longest time-out that a producer may ask for: Kafka's own default."""

    ids_max: int = 10_000
    """Transactional ids of one partition of `__transaction_state`, some 500 bytes each."""

    open_max: int = 1_000
    """Transactions of one such partition that are not ended everywhere yet."""

    places_max: int = 100_000
    """Partitions of all these transactions together, some 130 bytes each."""

    id_expiration_ms: int = 7 * 24 * 3600 * 1000
    """Ids that were not used for this long are forgotten: Kafka's own default."""

    prepared_ms_max: int = 7 * 24 * 3600 * 1000
    """A prepared transaction that nobody ended is aborted after this long."""

    sinks_max: int = 10_000
    """Sinks of queries whose batches are decided on one such partition, some 500 bytes each."""

    sink_attempts_max: int = 100_000
    """Tasks whose transactions the newest batches of all these sinks consist of, some 130 bytes
    each: a sink is known by its newest batch alone."""

    sink_expiration_ms: int = 90 * 24 * 3600 * 1000
    """A sink that wrote no batch for this long is forgotten, and with it its newest decision: a
    query that stopped in the midst of that batch and comes back later would write it twice."""
