"""Requests of members to a consumer group whose coordinator assigns, and the answers."""

from collections.abc import Mapping, Set
from typing import NamedTuple

from msgspec import Struct

from kafkaesque.machines.catalog.catalog_values import Topic
from kafkaesque.machines.decision import Command
from kafkaesque.machines.groups.group_records import TopicSaved
from kafkaesque.text_size import chars_bytes

JOINING = 0
"""The epoch of a joining client, which is not a member or does not know that it is."""
LEAVING = -1
AWAY = -2
"""The epoch of an instance that has left and will be back."""

Place = tuple[bytes, int]


class TopicsKnown(NamedTuple):
    """The topics of the cluster at one moment; when they change, `mark` is a different object."""

    mark: object
    topics: Mapping[str, Topic]

    def saved(self, name: str) -> TopicSaved | None:
        """Return what a group needs to know of a topic."""
        topic = self.topics.get(name)
        if topic is None:
            return None
        return TopicSaved(name=name, topic_id=topic.topic_id, partitions=topic.partitions)


class ConsumerTold(Struct, frozen=True, kw_only=True):
    """The answer to a member's heartbeat."""

    member_id: str
    epoch: int
    heartbeat_ms: int = 0
    """When the next heartbeat is due; never for a member that leaves."""
    assigned: Set[Place] | None = None
    """All that it may read now; None if unchanged."""


class ConsumerHeartbeat(Command[ConsumerTold], frozen=True, kw_only=True):
    """A heartbeat of a member. None means unchanged since it was last sent."""

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
    """The topics it wants by name."""
    pattern: str | None = None
    """The topics it wants by pattern; empty for none."""
    assignor: str | None = None
    owned: frozenset[Place] | None = None
    """What it currently reads."""

    @property
    def is_full(self) -> bool:
        """Whether it states everything, and so needs a full answer."""
        is_subscribed = self.names is not None or self.pattern is not None
        has_timeout = self.rebalance_timeout_ms is not None
        return self.epoch == JOINING or (is_subscribed and has_timeout and self.owned is not None)

    @property
    def size(self) -> int:
        """How many bytes chosen by the member must be kept."""
        texts = (self.member_id, self.instance_id, self.rack_id, self.client_id, self.pattern)
        return sum(chars_bytes(text or "") for text in texts) + sum(
            map(chars_bytes, self.names or ())
        )


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
    """An administrator's view of a group whose coordinator assigns, apart from its state."""

    epoch: int
    assignor: str
    members: tuple[ConsumerMemberView, ...]
