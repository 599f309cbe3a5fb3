"""A partition has one subscriber in each group, and limits hold."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaesque.gateway.text_errors import BadCommand
from kafkaesque.gateway.text_subscriptions import Subscriptions
from kafkaesque.server_config import TextLimits

LIMITS = TextLimits(subscriptions_per_connection_max=5, subscriptions_max=8)
OWNERS = st.sampled_from(["anna", "bert", "cora"])
TOPICS = st.sampled_from(["t", "u"])
GROUPS = st.sampled_from(["g", "h"])
PARTITIONS = 3


class Registry(RuleBasedStateMachine):
    """Compares the registry with a plain list of all subscriptions."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Subscriptions(LIMITS)
        self.held: list[tuple[str, str, str, int, str]] = []

    @rule(owner=OWNERS, topic=TOPICS, group=GROUPS, count=st.one_of(st.none(), st.integers(1, 4)))
    def take(self, owner: str, topic: str, group: str, count: int | None) -> None:
        taken = {place for _, t, g, place, _ in self.held if (t, g) == (topic, group)}
        free = [place for place in range(PARTITIONS) if place not in taken][:count]
        own = sum(holder == owner for holder, *_ in self.held)
        fits = own + len(free) <= 5 and len(self.held) + len(free) <= 8
        if not free or not fits:
            with pytest.raises(BadCommand):
                self.registry.take(owner, topic, group, PARTITIONS, count)
            return
        got = self.registry.take(owner, topic, group, PARTITIONS, count)
        assert [one.partition for one in got] == free
        self.held += [(owner, topic, group, one.partition, one.id) for one in got]

    @rule(owner=OWNERS)
    def leave(self, owner: str) -> None:
        self.registry.release_all(owner)
        self.held = [row for row in self.held if row[0] != owner]

    @invariant()
    def each_subscription_is_found_and_no_other(self) -> None:
        assert len(self.registry) == len(self.held)
        assert len({row[-1] for row in self.held}) == len(self.held)
        for owner, topic, group, partition, name in self.held:
            found = self.registry.find(owner, name, topic)
            assert (found.group, found.partition) == (group, partition)
            with pytest.raises(BadCommand, match="another topic"):
                self.registry.find(owner, name, "other")
            with pytest.raises(BadCommand, match="no such"):
                self.registry.find("nobody", name, topic)


TestRegistry = Registry.TestCase
TestRegistry.settings = settings(max_examples=50, stateful_step_count=30)
