"""How much memory the members of all groups of one coordinator take, and may take.

Only what clients choose or cause is counted: members' metadata, their assignments, the ids of
clients yet to join. A client that would make a group larger is refused when there is no room;
whatever was written is applied anyway, and a group that does not grow goes on.
"""

from kafkaesque.machines.groups.group_errors import GroupFull
from kafkaesque.text_size import chars_bytes

MEMBER_BYTES = 1024
"""Approximate memory of a member, without its metadata."""

PENDING_BYTES = 256
"""Approximate memory of an id that has no member yet, without its characters."""

PLACE_BYTES = 384
"""Approximate memory of an assigned partition: in the target, and as held."""

TOPIC_BYTES = 256
"""Approximate memory of a topic in an assignment, without its name."""


NAME_BYTES = 192
"""Approximate memory of a topic name that a member wants, without its characters."""


def pending_bytes(member_id: str) -> int:
    """Return the approximate memory of an id that no member has joined with yet."""
    return PENDING_BYTES + chars_bytes(member_id)


class GroupRoom:
    """What each group takes, and the limit for all of them."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        """The approximate memory of all groups."""
        self._bytes_max = bytes_max
        self._by_group: dict[str, int] = {}

    def note(self, group: str, size: int) -> None:
        """Record what a group takes now."""
        self.bytes += size - self._by_group.pop(group, 0)
        if size:
            self._by_group[group] = size

    def has_room(self, group: str, size: int) -> bool:
        """Return whether a group may grow to this size; it may always shrink."""
        more = size - self._by_group.get(group, 0)
        return more <= 0 or self.bytes + more <= self._bytes_max

    def check(self, group: str, size: int) -> None:
        """Raise GroupFull unless a group may grow to this size."""
        if not self.has_room(group, size):
            raise GroupFull(f"a coordinator has {self._bytes_max} bytes for members of its groups")
