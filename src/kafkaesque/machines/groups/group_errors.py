"""Why requests to groups are refused."""

from kafkaesque.errors import GroupError


class InvalidGroup(GroupError):
    """The group name is invalid."""


class UnknownGroup(GroupError):
    """There is no such group."""


class GroupNotEmpty(GroupError):
    """The group has members, so it cannot be deleted."""


class GroupFull(GroupError):
    """The group, or the coordinator, has reached one of its limits."""


class UnknownMember(GroupError):
    """The group has no such member, or no longer."""


class MemberIdRequired(GroupError):
    """A new member must join again under the id given here."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class FencedInstance(GroupError):
    """Another member has taken over this instance id."""


class IllegalGeneration(GroupError):
    """The member's generation is not the group's current one."""


class RebalanceInProgress(GroupError):
    """The group is being rebalanced: the member must join again."""


class InconsistentProtocol(GroupError):
    """The member has no protocol in common with the others of its group."""


class InvalidSessionTimeout(GroupError):
    """The session timeout is shorter or longer than allowed."""


class FencedMember(GroupError):
    """The member claims an epoch that it is not in: it must give up everything and join again."""


class InvalidHeartbeat(GroupError):
    """A member of a share group sends what no client may send."""


class StaleMember(GroupError):
    """The member's epoch is over: it must learn the new one first."""


class UnreleasedInstance(GroupError):
    """Another member holds this instance id and has not left."""


class UnsupportedAssignor(GroupError):
    """There is no assignor of this name."""


class InvalidExpression(GroupError):
    """The pattern a member subscribes by is invalid or uses an unsupported feature."""


class GroupChangesKind(GroupError):
    """An empty group changes its kind: retry at once."""
