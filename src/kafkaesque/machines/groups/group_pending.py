"""The offsets of open transactions: they take effect when their transaction commits."""

from collections.abc import Iterator

from kafkaesque.machines.groups.group_commands import TopicPartition
from kafkaesque.machines.groups.group_offsets import size_of
from kafkaesque.machines.groups.group_records import (
    CommittedOffset,
    OffsetKey,
    PendingKey,
    to_record,
)
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import TEXT_BYTES, chars_bytes


class GroupPending:
    """All pending offsets of the groups of one coordinator, by producer."""

    def __init__(self) -> None:
        self.bytes = 0
        """The approximate memory of all pending offsets."""
        self._by_producer: dict[int, dict[PendingKey, CommittedOffset]] = {}

    def of(self, producer_id: int, group: str) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets that a producer is to commit for a group."""
        pending = self._by_producer.get(producer_id, {})
        return {(k.topic_id, k.partition): v for k, v in pending.items() if k.group == group}

    def places_of(self, group: str) -> frozenset[TopicPartition]:
        """Return the partitions whose offsets in a group may be about to change."""
        return frozenset(
            (key.topic_id, key.partition) for key in self._keys() if key.group == group
        )

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, key: PendingKey, value: CommittedOffset | None) -> None:
        """Take one record."""
        offsets = self._by_producer.get(key.producer_id, {})
        before = offsets.get(key)
        self.bytes += size_of(value) - size_of(before)
        self.bytes += name_bytes(key.group) * ((value is not None) - (before is not None))
        if value is not None:
            self._by_producer.setdefault(key.producer_id, {})[key] = value
            return
        offsets.pop(key, None)
        if not offsets:
            self._by_producer.pop(key.producer_id, None)

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild all pending offsets."""
        for offsets in self._by_producer.values():
            for key, value in offsets.items():
                yield to_record(key, value)

    # ── deciding ─────────────────────────────────────────────────────────────────────────────

    def end(self, producer_id: int, *, is_commit: bool) -> list[MachineRecord]:
        """Decide the outcome of a producer's transaction.

        An offset is set before its pending one is deleted, so repeating this is harmless.
        """
        records = []
        for key, value in self._by_producer.get(producer_id, {}).items():
            if is_commit:
                offset = OffsetKey(key.group, key.topic_id, key.partition)
                records.append(to_record(offset, value))
            records.append(to_record(key, None))
        return records

    def forget_group(self, group: str) -> list[MachineRecord]:
        """Decide to delete all pending offsets of a group."""
        return [to_record(key, None) for key in self._keys() if key.group == group]

    def forget_topic(self, topic_id: bytes) -> list[MachineRecord]:
        """Decide to delete all pending offsets of a topic."""
        return [to_record(key, None) for key in self._keys() if key.topic_id == topic_id]

    def _keys(self) -> Iterator[PendingKey]:
        for offsets in self._by_producer.values():
            yield from offsets


def name_bytes(group: str) -> int:
    """Return the memory of the group's name, which is kept with each pending offset."""
    return TEXT_BYTES + chars_bytes(group)
