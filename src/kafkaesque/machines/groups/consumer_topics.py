"""Which topics the members of a consumer group want, by name or by pattern."""

from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import chain

from kafkaesque.machines.groups.assignors import is_whole
from kafkaesque.machines.groups.consumer_commands import TopicsKnown
from kafkaesque.machines.groups.consumer_member import ConsumerMember
from kafkaesque.machines.groups.group_records import ConsumerGroupSaved
from kafkaesque.machines.groups.topic_pattern import TopicPattern

INTERNAL_PREFIX = "__"
"""Internal topics are only wanted by name: `.*` does not match them."""

PATTERNS_MAX = 100
"""Compiled patterns kept for all groups; others are compiled again when needed."""


class TopicFinder:
    """Finds topics for one group. It only caches: forgetting costs nothing but time."""

    def __init__(self) -> None:
        self._seen: object = None

    def check(self, pattern: str) -> None:
        """Raise InvalidExpression for an invalid pattern; an empty one means none."""
        if pattern:
            _ready(pattern)

    def wants(self, member: ConsumerMember, topic: str) -> bool:
        """Return whether a member wants a topic."""
        return topic in member.names or topic in self._matching(member.pattern, [topic])

    def all_found(
        self, members: Iterable[ConsumerMember], existing: Collection[str]
    ) -> list[set[str]]:
        """Return what each member wants; each pattern is matched once."""
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
        """Return whether `seen` was called with these very topics."""
        return self._seen is topics.mark

    def is_outdated(
        self,
        saved: ConsumerGroupSaved,
        members: Collection[ConsumerMember],
        topics: TopicsKnown,
    ) -> bool:
        """Return whether the target must be recomputed.

        That includes a target that is not whole: a crash may have cut its records short.
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
    """Return a compiled pattern; members of many groups use the same ones."""
    return TopicPattern(text)
