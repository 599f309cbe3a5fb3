"""How much memory the members of all groups of one coordinator take together, and may take.

What is counted is what clients choose or cause: what members say of themselves, what they are
assigned, the ids of those who have yet to join. Whoever makes a group larger is refused when there
is no room; whatever was written is applied in any case, and a group that does not grow goes on.
"""

from kafkaesque.errors import GroupFull
from kafkaesque.text_size import chars_bytes

MEMBER_BYTES = 1024
"""About what a member takes beside what it says of itself."""

PENDING_BYTES = 256
"""The same beside the characters of that id."""

PLACE_BYTES = 384
"""About what a partition takes that a coordinator assigned: in the target, and as held."""

TOPIC_BYTES = 256
"""About what a topic takes beside its name that a coordinator assigned from."""


NAME_BYTES = 192
"""About what the name of a topic that a member wants takes beside its characters."""


def pending_bytes(member_id: str) -> int:
    """Return about what an id takes that was given to one who has not joined with it yet."""
    return PENDING_BYTES + chars_bytes(member_id)


class GroupRoom:
    """What each group takes, and the limit for all of them."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes = 0
        """About what all of them take."""
        self._bytes_max = bytes_max
        self._by_group: dict[str, int] = {}

    def note(self, group: str, size: int) -> None:
        """Learn what a group takes now."""
        self.bytes += size - self._by_group.pop(group, 0)
        if size:
            self._by_group[group] = size

    def has_room(self, group: str, size: int) -> bool:
        """Tell whether a group may come to take so much; it may always take less than now."""
        more = size - self._by_group.get(group, 0)
        return more <= 0 or self.bytes + more <= self._bytes_max

    def check(self, group: str, size: int) -> None:
        """Raise GroupFull unless a group may come to take so much."""
        if not self.has_room(group, size):
            raise GroupFull(f"a coordinator has {self._bytes_max} bytes for members of its groups")
