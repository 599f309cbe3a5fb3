"""The target topics of a restore: checked, created, and finally given their own settings.

During the restore a topic has settings that keep records unchanged: no timestamp is overwritten,
nothing is recompressed, and nothing is deleted or compacted, however old it is.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kafkaesque.backup.errors import BackupError, TopicNotEmpty
from kafkaesque.backup.limits import BackupLimits
from kafkaesque.backup.manifest import SavedTopic
from kafkaesque.backup.state import OwnTopic
from kafkaesque.client.admin import Admin
from kafkaesque.client.router import NOBODY
from kafkaesque.client.topics import AS_THE_BROKER_LIKES, LATEST, TopicInfo
from kafkaesque.errors import UnknownTopic

_MEANWHILE: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
_BATCH_SETTING = "max.message.bytes"
_BATCH_BYTES_MIN = 1_048_588
"""Kafka's default."""
_BATCH_BYTES_MAX = 64 << 20
"""The most that our brokers can be set to."""
_TEMPORARY = (*_MEANWHILE, _BATCH_SETTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """How the restored topics should differ from the saved ones."""

    put: Mapping[str, str] = field(default_factory=dict)
    drop: frozenset[str] = frozenset()
    replicas: int = AS_THE_BROKER_LIKES

    def settings_of(self, topic: SavedTopic) -> dict[str, str]:
        """Return the final settings of a topic."""
        kept = {name: text for name, text in topic.settings.items() if name not in self.drop}
        return {**kept, **self.put}


class Target:
    """The topics of the target cluster."""

    def __init__(self, admin: Admin, limits: BackupLimits, sleep: Callable[[float], None]) -> None:
        self._admin = admin
        self._limits = limits
        self._sleep = sleep

    def forget_gone(self, own: dict[str, OwnTopic]) -> None:
        """Remove from our own topics those deleted since, or recreated by another client."""
        there = {info.name for info in self._admin.topics.list() if self._is_own(info, own)}
        for name in own.keys() - there:
            del own[name]

    def refuse_foreign(self, chosen: Mapping[str, SavedTopic], own: Mapping[str, OwnTopic]) -> None:
        """Raise TopicNotEmpty if an existing topic is neither ours nor empty."""
        for info in self._admin.topics.list():
            topic = chosen.get(info.name)
            if topic is None or self._is_own(info, own):
                continue
            if len(info.partitions) != len(topic.partitions):
                raise TopicNotEmpty(
                    f"topic {info.name} exists, but its number of partitions is "
                    f"{len(info.partitions)} instead of {len(topic.partitions)}: restore under "
                    "another name (--into, --rename)"
                )
            if any(self._admin.topics.offsets(info.places, LATEST).values()):
                raise TopicNotEmpty(
                    f"topic {info.name} exists and is not empty: restore under another name "
                    "(--into, --rename), or delete it"
                )

    def make(self, name: str, topic: SavedTopic, wishes: Wishes) -> str:
        """Create or reconfigure a topic for the restore; return its id."""
        size = min(_BATCH_BYTES_MAX, max(_BATCH_BYTES_MIN, 2 * topic.largest))
        settings = {**wishes.settings_of(topic), **_MEANWHILE, _BATCH_SETTING: str(size)}
        if any(info.name == name for info in self._admin.topics.list()):
            self._admin.topics.alter(name, put=settings)
        else:
            self._admin.topics.create(
                name,
                partitions=len(topic.partitions),
                replicas=wishes.replicas,
                settings=settings,
            )
        return self._await(name, len(topic.partitions)).topic_id.hex()

    def finish(self, name: str, topic: SavedTopic, wishes: Wishes) -> None:
        """Give a topic its own settings."""
        settings = wishes.settings_of(topic)
        put = {key: text for key, text in settings.items() if key in _TEMPORARY}
        self._admin.topics.alter(name, put=put, drop=[key for key in _TEMPORARY if key not in put])

    def _await(self, name: str, partitions: int) -> TopicInfo:
        """Wait until the topic is known and each partition has a leader."""
        for _ in range(self._limits.leader_waits_max):
            try:
                info = self._admin.topics.describe(name)
            except UnknownTopic:
                pass
            else:
                led = [one for one in info.partitions if one.leader != NOBODY]
                if len(led) == partitions:
                    return info
            self._sleep(self._limits.leader_wait_ms / 1000)
        raise BackupError(f"topic {name} was created, but its partitions have no leaders")

    @staticmethod
    def _is_own(info: TopicInfo, own: Mapping[str, OwnTopic]) -> bool:
        ours = own.get(info.name)
        return ours is not None and ours.topic_id == info.topic_id.hex()
