"""The offsets that consumer groups have committed, by group, topic id and partition."""

from collections.abc import Iterator, Mapping

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.group_commands import Commit, Now, TopicPartition
from kafkaesque.machines.group_records import CommittedOffset, OffsetKey, to_record
from kafkaesque.machines.machine import MachineRecord


class GroupOffsets:
    """All committed offsets of the groups of one coordinator."""

    def __init__(self) -> None:
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def of(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return all offsets of a group."""
        return self._by_group.get(group, {})

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, key: OffsetKey, value: CommittedOffset | None) -> None:
        """Take one record."""
        if value is not None:
            self._by_group.setdefault(key.group, {})[key.topic_id, key.partition] = value
            return
        offsets = self._by_group.get(key.group, {})
        offsets.pop((key.topic_id, key.partition), None)
        if not offsets:
            self._by_group.pop(key.group, None)

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild all offsets."""
        for group, offsets in self._by_group.items():
            for (topic_id, partition), value in offsets.items():
                yield to_record(OffsetKey(group, topic_id, partition), value)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def forget_group(self, group: str) -> list[MachineRecord]:
        """Decide what deletes all offsets of a group."""
        return [_tombstone(group, place) for place in self.of(group)]

    def forget_topic(self, topic_id: bytes) -> list[MachineRecord]:
        """Decide what deletes all offsets of a topic, in all groups."""
        return [
            _tombstone(group, place)
            for group, offsets in self._by_group.items()
            for place in offsets
            if place[0] == topic_id
        ]

    def forget_older(self, group: str, since_ms: int, before_ms: int) -> list[MachineRecord]:
        """Decide what deletes offsets that nobody needed between their age and `before_ms`.

        An offset's age counts from its commit, or from `since_ms` if that was later.
        """
        return [
            _tombstone(group, place)
            for place, value in self.of(group).items()
            if max(since_ms, value.committed_ms) <= before_ms
        ]


def newest(
    command: Commit, config: GroupConfig, now: Now
) -> tuple[dict[TopicPartition, CommittedOffset], frozenset[TopicPartition]]:
    """Return what to keep of a commit, and what is refused of it."""
    refused: set[TopicPartition] = set()
    taken: dict[TopicPartition, CommittedOffset] = {}
    for place, offset, term, metadata in command.offsets:
        if len(metadata.encode()) > config.offset_metadata_bytes_max:
            refused.add(place)
            continue
        taken[place] = CommittedOffset(
            offset=offset, term=term, metadata=metadata, committed_ms=now.wall_ms
        )
    return taken, frozenset(refused)


def _tombstone(group: str, place: TopicPartition) -> MachineRecord:
    return to_record(OffsetKey(group, *place), None)
