"""What members ask of a consumer group whose coordinator assigns, and what they are told."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from msgspec import Struct

from kafkaesque.machines.catalog_values import Topic
from kafkaesque.machines.group_records import TopicSaved
from kafkaesque.text_size import chars_bytes

JOINING = 0
"""The epoch of one who is not a member yet, or no longer knows that it is."""
LEAVING = -1
AWAY = -2
"""The epoch of an instance that has left and will be back."""

Place = tuple[bytes, int]


class TopicsKnown(NamedTuple):
    """The topics of the cluster at one moment; `mark` is another object when they are others."""

    mark: object
    topics: Mapping[str, Topic]

    def saved(self, name: str) -> TopicSaved | None:
        """Return what a group needs to know of a topic."""
        topic = self.topics.get(name)
        if topic is None:
            return None
        return TopicSaved(name=name, topic_id=topic.topic_id, partitions=topic.partitions)


class ConsumerHeartbeat(Struct, frozen=True, kw_only=True):
    """A member is heard from. What is None has not changed since it was last said."""

    group: str
    member_id: str
    epoch: int
    topics: TopicsKnown
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int | None = None
    names: frozenset[str] | None = None
    """The topics that it wants by name."""
    pattern: str | None = None
    """The topics that it wants by pattern; empty for none."""
    assignor: str | None = None
    owned: frozenset[Place] | None = None
    """What it reads at present."""

    @property
    def is_full(self) -> bool:
        """Whether it says all, and so wants to be told all."""
        is_subscribed = self.names is not None or self.pattern is not None
        has_timeout = self.rebalance_timeout_ms is not None
        return self.epoch == JOINING or (is_subscribed and has_timeout and self.owned is not None)

    @property
    def size(self) -> int:
        """How many bytes of the member's own choice must be kept."""
        texts = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.pattern)
        return sum(chars_bytes(text or "") for text in texts) + sum(
            map(chars_bytes, self.names or ())
        )


class ConsumerTold(Struct, frozen=True, kw_only=True):
    """What a member is told."""

    member_id: str
    epoch: int
    heartbeat_ms: int = 0
    """When it should be heard from next; for one who goes, never."""
    assigned: Set[Place] | None = None
    """All that it may read now; None if that is as before."""


class ConsumerMemberView(Struct, frozen=True, kw_only=True):
    """A member as an administrator sees it."""

    member_id: str
    instance_id: str | None
    rack_id: str
    client_id: str
    client_host: str
    epoch: int
    names: tuple[str, ...]
    pattern: str
    assigned: Set[Place]
    target: Set[Place]
    is_classic: bool = False


class ConsumerView(Struct, frozen=True, kw_only=True):
    """What an administrator sees of a group whose coordinator assigns, beside its state."""

    epoch: int
    assignor: str
    members: tuple[ConsumerMemberView, ...]
