"""The offsets that consumer groups have committed, by group, topic id and partition."""

from collections.abc import Iterator, Mapping

from kafkaesque.ages import Ages
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.decision import Now
from kafkaesque.machines.groups.group_commands import Commit, Committed, TopicPartition
from kafkaesque.machines.groups.group_records import CommittedOffset, OffsetKey, to_record
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import chars_bytes, utf8_bytes

_OFFSET_BYTES = 256
"""Approximate memory of an offset, without its metadata."""

_GROUP_BYTES = 400
"""Approximate memory of a group with offsets, without its offsets and name."""


class GroupOffsets:
    """All committed offsets of the groups of one coordinator."""

    def __init__(self) -> None:
        self.bytes = 0
        """The approximate memory of all offsets."""
        self._by_group: dict[str, dict[TopicPartition, CommittedOffset]] = {}

    def of(self, group: str) -> Mapping[TopicPartition, CommittedOffset]:
        """Return all offsets of a group."""
        return self._by_group.get(group, {})

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, key: OffsetKey, value: CommittedOffset | None) -> None:
        """Take one record."""
        offsets = self._by_group.get(key.group, {})
        place = key.topic_id, key.partition
        self.bytes += size_of(value) - size_of(offsets.get(place))
        if value is not None:
            self.bytes += self.bytes_to_begin(key.group)
            self._by_group.setdefault(key.group, {})[place] = value
            return
        offsets.pop(place, None)
        if not offsets and self._by_group.pop(key.group, None) is not None:
            self.bytes -= self.bytes_to_begin(key.group)

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild all offsets."""
        for group, offsets in self._by_group.items():
            for (topic_id, partition), value in offsets.items():
                yield to_record(OffsetKey(group, topic_id, partition), value)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def bytes_to_begin(self, group: str) -> int:
        """Return the approximate memory a group adds with its first offset; 0 if it has one."""
        return 0 if group in self._by_group else _GROUP_BYTES + chars_bytes(group)

    def forget_group(self, group: str) -> list[MachineRecord]:
        """Decide to delete all offsets of a group."""
        return [_tombstone(group, place) for place in self.of(group)]

    def forget_topic(self, topic_id: bytes) -> list[MachineRecord]:
        """Decide to delete all offsets of a topic, in all groups."""
        return [
            _tombstone(group, place)
            for group, offsets in self._by_group.items()
            for place in offsets
            if place[0] == topic_id
        ]

    def forget_older(
        self, group: str, since_ms: int, ages: Ages, retention_ms: int
    ) -> list[MachineRecord]:
        """Decide to delete offsets that are older than the retention time.

        An offset's age counts from its commit, or from `since_ms` if that was later.
        """
        return [
            _tombstone(group, place)
            for place, value in self.of(group).items()
            if ages.of(max(since_ms, value.committed_ms)) >= retention_ms
        ]


def size_of(value: CommittedOffset | None) -> int:
    """Return the approximate memory of an offset in bytes."""
    return 0 if value is None else _OFFSET_BYTES + chars_bytes(value.metadata)


def newest(
    command: Commit,
    known: Mapping[TopicPartition, CommittedOffset],
    held_bytes: int,
    config: GroupConfig,
    now: Now,
    *,
    name_bytes: int = 0,
) -> tuple[dict[TopicPartition, CommittedOffset], Committed]:
    """Return what to keep of a commit, and the answer to its client.

    `known` is what it replaces, `held_bytes` the memory of all groups so far, `name_bytes` the
    memory of the group's name with each offset. However full it is, an offset that takes no more
    room than before is kept: existing consumers must be able to go on.
    """
    refused: set[TopicPartition] = set()
    homeless: set[TopicPartition] = set()
    taken: dict[TopicPartition, CommittedOffset] = {}
    for place, offset, term, metadata in command.offsets:
        if utf8_bytes(metadata) > config.offset_metadata_bytes_max:
            refused.add(place)
            continue
        value = CommittedOffset(
            offset=offset, term=term, metadata=metadata, committed_ms=now.wall_ms
        )
        before = taken.get(place, known.get(place))
        more_bytes = size_of(value) - size_of(before) + (name_bytes if before is None else 0)
        if more_bytes > 0 and held_bytes + more_bytes > config.offsets_bytes_max:
            homeless.add(place)
            continue
        held_bytes += more_bytes
        taken[place] = value
    return taken, Committed(refused=frozenset(refused), homeless=frozenset(homeless))


def _tombstone(group: str, place: TopicPartition) -> MachineRecord:
    return to_record(OffsetKey(group, *place), None)
