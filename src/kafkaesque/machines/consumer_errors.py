"""What groups whose coordinator assigns refuse, beside what every group does."""

from kafkaesque.errors import GroupError


class FencedMember(GroupError):
    """The member speaks of an epoch that it is not in: it must give up all and join again."""


class StaleMember(GroupError):
    """The member asks in an epoch that is over: it must learn of the new one first."""


class UnreleasedInstance(GroupError):
    """Another member holds this instance id and has not left."""


class UnsupportedAssignor(GroupError):
    """There is no assignor of this name."""


class InvalidExpression(GroupError):
    """The pattern that a member subscribes by is wrong, or asks for what is not supported."""


class GroupChangesKind(GroupError):
    """An empty group becomes one of the other kind: ask again at once."""
