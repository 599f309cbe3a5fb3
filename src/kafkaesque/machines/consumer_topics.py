"""Which topics the members of a consumer group want, by name or by pattern."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain

from kafkaesque.machines.assignors import is_whole
from kafkaesque.machines.consumer_commands import TopicsKnown
from kafkaesque.machines.consumer_member import ConsumerMember
from kafkaesque.machines.group_records import ConsumerGroupSaved
from kafkaesque.machines.topic_pattern import TopicPattern

INTERNAL_PREFIX = "__"
"""Topics of the broker's own are wanted by name or not at all: `.*` does not mean them."""

PATTERNS_MAX = 100
"""Patterns kept ready for all groups; another one is made again when it is needed."""


class TopicFinder:
    """Finds topics for one group. What it remembers only makes it faster."""

    def __init__(self) -> None:
        self._seen: object = None

    def check(self, pattern: str) -> None:
        """Raise InvalidExpression for a pattern that cannot be used; an empty one is none."""
        if pattern:
            _ready(pattern)

    def wants(self, member: ConsumerMember, topic: str) -> bool:
        """Return whether a member wants a topic."""
        return topic in member.names or topic in self._matching(member.pattern, [topic])

    def all_found(
        self, members: Iterable[ConsumerMember], existing: Collection[str]
    ) -> list[set[str]]:
        """Return what each of the members wants; each pattern is matched once."""
        matching: dict[str, set[str]] = {}
        found = []
        for member in members:
            if member.pattern not in matching:
                matching[member.pattern] = self._matching(member.pattern, existing)
            named = {name for name in member.names if name in existing}
            found.append(named | matching[member.pattern])
        return found

    # ── whether anything has changed ─────────────────────────────────────────────────────────

    def seen(self, topics: TopicsKnown) -> None:
        """Remember that the target was computed from these topics, or would be the same."""
        self._seen = topics.mark

    def is_seen(self, topics: TopicsKnown) -> bool:
        """Return whether `seen` was told of these very topics."""
        return self._seen is topics.mark

    def is_outdated(
        self,
        saved: ConsumerGroupSaved,
        members: Collection[ConsumerMember],
        topics: TopicsKnown,
    ) -> bool:
        """Return whether the target must be computed anew.

        So it must also if it is not whole: its records may have been cut short by a crash.
        """
        names = sorted(set(chain(*self.all_found(members, topics.topics))))
        now = [topics.saved(name) for name in names]
        if tuple(now) != saved.topics:
            return True
        wanted = {(one.topic_id, i) for one in saved.topics for i in range(one.partitions)}
        return not is_whole([one.target for one in members], wanted)

    def _matching(self, pattern: str, existing: Iterable[str]) -> set[str]:
        if not pattern:
            return set()
        ready = _ready(pattern)
        return {
            name
            for name in existing
            if not name.startswith(INTERNAL_PREFIX) and ready.matches(name)
        }


@lru_cache(maxsize=PATTERNS_MAX)
def _ready(text: str) -> TopicPattern:
    """Return a pattern that is ready to match; members of many groups want the same."""
    return TopicPattern(text)
