"""Why requests to share groups are refused."""

from kafkaesque.errors import GroupError


class InvalidRecordState(GroupError):
    """The member does not hold this offset, or no longer."""


class InvalidAcknowledgement(GroupError):
    """The acknowledgement is malformed, or concerns what was never handed out."""


class FencedTerm(GroupError):
    """This leader has not adopted the partition's state, or a newer one has."""


class FencedGeneration(GroupError):
    """The group's start was set by an administrator, or the group was deleted."""


class InvalidShareState(GroupError):
    """The records are not those of the partition and groups that they are written for."""


class ShareStateFull(GroupError):
    """A limit on the state of share groups is reached."""
