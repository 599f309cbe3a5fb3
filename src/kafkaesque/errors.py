"""The root of all errors, those that several packages share, and those that programs catch.

What one package raises is in its own `errors.py`, or beside its only user; here is what
packages raise that may not import each other, and what users' programs know by this path.

Inner code raises what happened and never mentions a protocol's error code; each front door maps
these classes to its own codes, once. Broken internal invariants are assertions, not errors.
"""

from kafkaesque.types import NodeId


class KafkaesqueError(Exception):
    """Root of all errors raised on purpose; the text is one readable sentence."""


class LogError(KafkaesqueError):
    """A log operation that failed."""


class NewerFormat(LogError):
    """A file written by a newer version of Kafkaesque."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} has format {found}, this version reads up to {known}: use a newer Kafkaesque"
        )
        self.path = path
        self.found = found
        self.known = known


class DiskFull(LogError):
    """The disk is full; acknowledged data is safe and can be read."""


class FolderInUse(LogError):
    """Another process uses this data folder; two would destroy each other's files."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is in use by another process: stop it or take another folder")
        self.folder = folder


class RaftError(KafkaesqueError):
    """A request that this replica cannot serve now."""


class NotLeader(RaftError):
    """Another replica leads, or no leader is known."""

    def __init__(self, leader: NodeId | None) -> None:
        known = "no leader is known" if leader is None else f"node {leader} leads"
        super().__init__(f"this replica does not lead its group: {known}")
        self.leader = leader


class LeaderNotReady(RaftError):
    """This replica leads, but has not yet committed an entry of its own term."""


class ChangeInProgress(RaftError):
    """A change of voters or a leadership transfer is in progress; one at a time."""


class WireError(KafkaesqueError):
    """Something in Kafka's protocol that is refused."""


class MalformedFrame(WireError):
    """The bytes are not the message that they claim to be."""


class LinkError(KafkaesqueError):
    """A failure of the link to another broker."""


class PeerUnreachable(LinkError):
    """No link to the broker, or its queue is full: the request was not sent."""


class BrokerError(KafkaesqueError):
    """A client request that cannot be fulfilled."""


class UnknownTopic(BrokerError):
    """No topic has this name or this id, or it has no such partition."""


class TopicExists(BrokerError):
    """A topic with this name already exists."""


class InvalidTopic(BrokerError):
    """The topic name or partition count is invalid."""


class InvalidSetting(BrokerError):
    """An unknown setting, or an invalid value."""


class OutcomeUnknown(BrokerError):
    """Leadership was lost before the commit: the change may or may not take effect."""


class GroupError(BrokerError):
    """A request that a consumer group refuses."""


class NotCoordinator(GroupError):
    """This broker does not coordinate the group now; the request may or may not take effect."""


class CannotListen(KafkaesqueError):
    """The broker cannot listen on the address: it is in use, or not of this machine."""


class BadConfiguration(KafkaesqueError):
    """A file, variable or flag has an unknown setting or an invalid value."""


class PatternError(KafkaesqueError):
    """A messaging pattern that failed to do what the program requested."""


class InvalidPattern(PatternError):
    """Settings or names that a pattern cannot work with."""


class TooManyInFlight(PatternError):
    """The limit of requests in flight is reached; nothing was started."""


class Undelivered(PatternError):
    """A message may not have been written."""


class NoAnswer(PatternError):
    """No answer came before the deadline; the request may still be served."""


class RequestFailed(PatternError):
    """The responder reported a failure; `kind` is the class of its error."""

    def __init__(self, responder: str, kind: str, reason: str) -> None:
        super().__init__(f"{responder} failed: {kind}: {reason}")
        self.responder = responder
        self.kind = kind
        self.reason = reason


class TableFull(PatternError):
    """A table's topic holds more keys than the table may keep."""
