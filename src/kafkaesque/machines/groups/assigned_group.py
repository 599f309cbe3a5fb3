"""What consumer groups and share groups have in common, if their coordinator assigns.

Such a group has a record, and so has every member. Only `apply` and `apply_member` change it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.consumer_member import ConsumerMember
from kafkaesque.machines.groups.group_errors import GroupFull
from kafkaesque.machines.groups.group_records import (
    ConsumerGroupSaved,
    GroupKey,
    MemberKey,
    ShareGroupSaved,
    to_record,
)
from kafkaesque.machines.groups.group_room import TOPIC_BYTES, GroupRoom
from kafkaesque.machines.groups.share_member import ShareMember
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import chars_bytes

MemberT = TypeVar("MemberT", ConsumerMember, ShareMember)
SavedT = TypeVar("SavedT", ConsumerGroupSaved, ShareGroupSaved)


class AssignedGroup(Generic[MemberT, SavedT]):
    """A group, its members, and their sizes."""

    def __init__(self, name: str, config: GroupConfig, room: GroupRoom) -> None:
        self.name = name
        self.bytes = 0
        """Its approximate memory, which follows from the group's record and the members."""
        self.members: dict[str, MemberT] = {}
        self.saved: SavedT | None = None
        self._config = config
        self._room = room

    def configure(self, config: GroupConfig) -> None:
        """Apply new settings to later decisions."""
        self._config = config

    @property
    def epoch(self) -> int:
        """The epoch of the newest target."""
        return 0 if self.saved is None else self.saved.epoch

    @property
    def is_void(self) -> bool:
        """Whether nothing at all is known of it."""
        return self.saved is None and not self.members

    @property
    def is_idle(self) -> bool:
        """Whether it has no members, not even joining ones."""
        return not self.members

    @property
    def is_saved(self) -> bool:
        """Whether there is a record of it."""
        return self.saved is not None

    @property
    def changed_ms(self) -> int:
        """When it was last rebalanced, by the wall clock."""
        return 0 if self.saved is None else self.saved.changed_ms

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the durable state."""
        if self.saved is not None:
            yield to_record(GroupKey(self.name), self.saved)
        for member in self.members.values():
            yield to_record(MemberKey(self.name, member.member_id), member.saved())

    def apply(self, saved: SavedT | None) -> None:
        """Apply the group's record."""
        self.bytes += topics_bytes(saved) - topics_bytes(self.saved)
        self.saved = saved

    def _check_room(self, before: MemberT, member: MemberT, *, is_new: bool) -> None:
        config = self._config
        size = member.size
        if size > config.member_bytes_max:
            raise GroupFull(f"a member's metadata is limited to {config.member_bytes_max} bytes")
        if is_new and len(self.members) >= config.members_max:
            raise GroupFull(f"a group has at most {config.members_max} members")
        if is_new or member.bytes > before.bytes:
            others = sum(m.size for m in self.members.values() if m.member_id != before.member_id)
            if others + size > config.group_bytes_max:
                raise GroupFull(f"a group's metadata is limited to {config.group_bytes_max} bytes")
            self._room.check(self.name, self.bytes + member.bytes - (0 if is_new else before.bytes))


def topics_bytes(saved: ConsumerGroupSaved | ShareGroupSaved | None) -> int:
    """Return the approximate memory taken by the topics that a group's target was computed from."""
    topics = () if saved is None else saved.topics
    return sum(chars_bytes(one.name) + TOPIC_BYTES for one in topics)


def member_records(
    group: str, before: Mapping[str, MemberT], after: Iterable[MemberT]
) -> Iterator[MachineRecord]:
    """Return the records of members that have changed."""
    for member in after:
        old = before.get(member.member_id)
        if old is not member and old != member:
            yield to_record(MemberKey(group, member.member_id), member.saved())
