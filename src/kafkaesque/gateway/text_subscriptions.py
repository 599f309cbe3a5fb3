"""Subscriptions: at one broker, a partition belongs to one subscription of a group.

Brokers do not share this: at another broker the same group may hold the same partition.
"""

from msgspec import Struct

from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.server_config import TextLimits

Owner = object
"""The holder of subscriptions, identified by object identity."""


class Subscription(Struct, frozen=True, kw_only=True):
    """One partition held for a group."""

    id: str
    topic: str
    group: str
    partition: int


class Subscriptions:
    """All subscriptions at one broker; they last as long as their owners."""

    def __init__(self, limits: TextLimits) -> None:
        self._limits = limits
        self._held: dict[tuple[str, str, int], Subscription] = {}
        self._by_owner: dict[Owner, dict[str, Subscription]] = {}
        self._last_id = 0

    def __len__(self) -> int:
        return len(self._held)

    def take(
        self, owner: Owner, topic: str, group: str, partitions: int, count: int | None
    ) -> list[Subscription]:
        """Subscribe to up to `count` free partitions, lowest first; None means all.

        Raises BadCommand if none is free, or at a limit.
        """
        free = [p for p in range(partitions) if (topic, group, p) not in self._held][:count]
        if not free:
            raise BadCommand(f"all {partitions} partitions are taken in this group")
        own = self._by_owner.get(owner, {})
        if len(own) + len(free) > self._limits.subscriptions_per_connection_max:
            limit = self._limits.subscriptions_per_connection_max
            raise BadCommand(f"a connection may hold at most {limit} subscriptions")
        if len(self._held) + len(free) > self._limits.subscriptions_max:
            raise BadCommand("the broker has reached its limit of subscriptions")
        return [self._add(owner, topic, group, partition) for partition in free]

    def find(self, owner: Owner, subscription_id: str, topic: str) -> Subscription:
        """Return the owner's subscription of this topic; raises BadCommand."""
        found = self._by_owner.get(owner, {}).get(subscription_id)
        if found is None:
            raise BadCommand("this connection has no such subscription")
        if found.topic != topic:
            raise BadCommand("the subscription is for another topic")
        return found

    def release(self, owner: Owner, subscription: Subscription) -> None:
        """Free a partition."""
        own = self._by_owner[owner]
        del own[subscription.id]
        if not own:
            del self._by_owner[owner]
        del self._held[subscription.topic, subscription.group, subscription.partition]

    def release_all(self, owner: Owner) -> None:
        """Free all partitions of an owner."""
        for subscription in list(self._by_owner.get(owner, {}).values()):
            self.release(owner, subscription)

    def _add(self, owner: Owner, topic: str, group: str, partition: int) -> Subscription:
        self._last_id += 1
        made = Subscription(id=f"s{self._last_id}", topic=topic, group=group, partition=partition)
        self._by_owner.setdefault(owner, {})[made.id] = made
        self._held[topic, group, partition] = made
        return made
