"""Requests of members to a share group (KIP-932), and the answers."""

from collections.abc import Set

from msgspec import Struct

from kafkaesque.machines.decision import Command
from kafkaesque.machines.groups.consumer_commands import JOINING, LEAVING, Place, TopicsKnown
from kafkaesque.machines.groups.group_errors import InvalidHeartbeat

MEMBER_ID_CHARS_MAX = 36
"""The longest id that a member may choose: as long as a UUID in text."""


class ShareTold(Struct, frozen=True, kw_only=True):
    """The answer to a member's heartbeat."""

    member_id: str
    epoch: int
    heartbeat_ms: int = 0
    """When the next heartbeat is due; never for a member that leaves."""
    assigned: Set[Place] | None = None
    """All that it reads now; None if unchanged."""


class ShareHeartbeat(Command[ShareTold], frozen=True, kw_only=True):
    """A heartbeat of a member. None means unchanged since it was last sent."""

    group: str
    member_id: str
    epoch: int
    topics: TopicsKnown
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] | None = None
    """The topics it wants."""

    def check(self) -> None:
        """Raise InvalidHeartbeat for what no client may send."""
        if not 1 <= len(self.member_id) <= MEMBER_ID_CHARS_MAX:
            raise InvalidHeartbeat(f"a member id has 1 to {MEMBER_ID_CHARS_MAX} characters")
        if self.epoch < LEAVING:
            raise InvalidHeartbeat(f"there is no member epoch {self.epoch}")
        if self.epoch == JOINING and not self.names:
            raise InvalidHeartbeat("a joining member must subscribe to topics")


class ShareGroupReady(Struct, frozen=True, kw_only=True):
    """The group exists, and has no members."""


class CreateShareGroup(Command[ShareGroupReady], frozen=True, kw_only=True):
    """An administrator needs a share group without members; one that exists stays as it is."""

    group: str


class ShareMemberView(Struct, frozen=True, kw_only=True):
    """A member as an administrator sees it."""

    member_id: str
    rack_id: str
    client_id: str
    client_host: str
    epoch: int
    names: tuple[str, ...]
    assigned: Set[Place]
    target: Set[Place]


class ShareView(Struct, frozen=True, kw_only=True):
    """An administrator's view of a share group, apart from its state."""

    epoch: int
    assignor: str
    members: tuple[ShareMemberView, ...]
