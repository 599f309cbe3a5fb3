"""Settings and limits of consumer groups and transactions.

Part of `config.py`.
"""

from dataclasses import dataclass
from enum import StrEnum

from kafkaesque.errors import BadConfiguration


class MigrationPolicy(StrEnum):
    """Whether live groups may switch between classic and coordinator-assigned."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def may_upgrade(self) -> bool:
        """Whether a member that cannot assign may join a classic group."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def may_downgrade(self) -> bool:
        """Whether a group becomes classic when only classic members are left."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """Timing and limits of consumer groups."""

    offsets_partitions: int = 16
    """Partitions of `__consumer_offsets`, fixed once it exists: groups spread over them."""

    initial_rebalance_delay_ms: int = 100
    """How long an empty group waits for members that start together; Kafka waits 3 s."""

    session_timeout_ms_min: int = 1
    """The shortest timeout a member may request: test suites request less than Kafka's 6 s."""

    session_timeout_ms_max: int = 1_800_000
    """The longest timeout a member may request, as in Kafka."""

    new_member_wait_ms_max: int = 300_000
    """A new member whose first join is unanswered for this long is dropped, as in Kafka."""

    consumer_session_timeout_ms: int = 45_000
    """A member is dropped after this silence if its coordinator assigns, as in Kafka."""

    consumer_heartbeat_ms: int = 1_000
    """Heartbeat interval of such a member; Kafka uses 5 s, and rebalances as slowly."""

    consumer_hasty_heartbeat_ms: int = 200
    """Heartbeat interval during a rebalance, so that it ends soon."""

    share_state_partitions: int = 16
    """Partitions of `__share_group_state`, fixed once it exists: share groups spread over them."""

    consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    """How live groups change their protocol: Kafka's `group.consumer.migration.policy`."""

    share_session_timeout_ms: int = 45_000
    """A member of a share group is dropped after this silence, as in Kafka."""

    share_heartbeat_ms: int = 1_000
    """Heartbeat interval of such a member; Kafka uses 5 s, and reassigns as slowly."""

    members_max: int = 1_000
    """Members of one group, including those that only hold a member id."""

    member_bytes_max: int = 1 << 20
    """Metadata of one member: a list of 10,000 partitions takes about 200 kB."""

    group_bytes_max: int = 16 << 20
    """All members of a group, or all their assignments: each is written as one record."""

    protocols_max: int = 100
    """Assignment protocols of one member: clients know one to three."""

    groups_max: int = 2_000
    """Groups on one partition of `__consumer_offsets`; 16 times as many on one broker."""

    group_name_bytes_max: int = 1024
    """The longest group name: far above any in use."""

    offset_metadata_bytes_max: int = 4096
    """Metadata that a client may store with an offset: Kafka's own default."""

    offsets_bytes_max: int = 16 << 20
    """All offsets on one partition of `__consumer_offsets`, with their metadata and group names;
    each counts 256 bytes extra, and each group 400. That is about 65,000 bare offsets; beyond it,
    stored offsets can still advance."""

    members_bytes_max: int = 32 << 20
    """All members of the groups on one such partition, with their assignments; each counts 1 KiB
    extra, and each partition that the coordinator assigned 384 bytes."""

    offsets_retention_ms: int = 7 * 24 * 3600 * 1000
    """Offsets expire this long after their group became empty: Kafka's own default."""

    offsets_check_ms: int = 600_000
    """How often to look for expired offsets; empty groups without offsets are removed then too."""

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
        if self.share_heartbeat_ms >= self.share_session_timeout_ms:
            raise BadConfiguration(
                f"groups.share_heartbeat_ms is {self.share_heartbeat_ms} and must be below "
                f"groups.share_session_timeout_ms, which is {self.share_session_timeout_ms}"
            )
        assert self.offsets_partitions > 0
        assert self.session_timeout_ms_min > 0
        assert self.consumer_hasty_heartbeat_ms > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Timing and limits of transactions."""

    state_partitions: int = 16
    """Partitions of `__transaction_state`, fixed once it exists: ids spread over them."""

    timeout_ms_max: int = 900_000
    """The longest timeout that a producer may request: Kafka's own default."""

    ids_max: int = 10_000
    """Transactional ids on one partition of `__transaction_state`, some 500 bytes each."""

    open_max: int = 1_000
    """Transactions on one such partition that are not yet ended everywhere."""

    places_max: int = 100_000
    """Partitions of all these transactions together, some 130 bytes each."""

    id_expiration_ms: int = 7 * 24 * 3600 * 1000
    """Ids that were unused for this long are forgotten: Kafka's own default."""

    prepared_ms_max: int = 7 * 24 * 3600 * 1000
    """A prepared transaction that was not ended is aborted after this long."""

    sinks_max: int = 10_000
    """Sinks whose batches are decided on one such partition, some 500 bytes each."""

    sink_attempts_max: int = 100_000
    """Tasks in the newest batches of all these sinks, some 130 bytes each: only the newest batch of
    a sink is kept."""

    sink_expiration_ms: int = 90 * 24 * 3600 * 1000
    """A sink that wrote no batch for this long is forgotten, with its newest decision: a query that
    stopped in the middle of that batch and resumes later would write it twice."""
