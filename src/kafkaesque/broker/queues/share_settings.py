"""The settings of share groups as they act on partitions, resolved once per change."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from kafkaesque.broker.partition.partition import Partition
from kafkaesque.group_settings import (
    DEFAULTS,
    EARLIEST,
    GROUP_SETTINGS,
    GroupSettings,
    Isolation,
    Switch,
    reset_ms,
    resolve_group,
)
from kafkaesque.machines.queues.share_values import ShareLimits
from kafkaesque.types import Offset


class ShareSettings(Struct, frozen=True, kw_only=True):
    """What holds for one share group."""

    limits: ShareLimits
    reset: str
    only_committed: bool
    may_renew: bool

    @property
    def lock_ms(self) -> int:
        """How long a member has a record."""
        return self.limits.lock_ms

    def first_offset(self, partition: Partition, now_ms: int) -> Offset:
        """Return where a new group starts in a partition."""
        if self.reset == EARLIEST:
            return partition.first_offset
        back_ms = reset_ms(self.reset)
        if back_ms is not None:
            found = partition.find_time(now_ms - back_ms, partition.high_watermark)
            if found is not None:
                return found[0]
        return partition.high_watermark


class ShareSettingsInForce:
    """The settings of every group; `known` returns those that are not the default."""

    def __init__(self, known: Callable[[], Mapping[str, Mapping[str, str]]]) -> None:
        self._known = known
        self._default = _shared(DEFAULTS)
        self._resolved: dict[str, tuple[Mapping[str, str], ShareSettings]] = {}
        """With the texts they come from; bounded by the groups that have some."""

    def of(self, group: str) -> ShareSettings:
        """Return a group's settings."""
        texts = self._known().get(group)
        if texts is None:
            self._resolved.pop(group, None)
            return self._default
        found = self._resolved.get(group)
        if found is None or found[0] is not texts:
            # A newer broker may know more of them.
            ours = {name: text for name, text in texts.items() if name in GROUP_SETTINGS}
            found = self._resolved[group] = texts, _shared(resolve_group(ours))
        return found[1]


def _shared(settings: GroupSettings) -> ShareSettings:
    return ShareSettings(
        limits=ShareLimits(
            lock_ms=settings.share_record_lock_duration_ms,
            delivery_max=settings.share_delivery_count_limit,
            window=settings.share_partition_max_record_locks,
            locks_max=settings.share_partition_max_record_locks,
        ),
        reset=settings.share_auto_offset_reset,
        only_committed=settings.share_isolation_level is Isolation.READ_COMMITTED,
        may_renew=settings.share_renew_acknowledge_enable is Switch.TRUE,
    )
