"""Everything that can go wrong and that a caller may want to tell apart.

Inner code raises what happened and never mentions a protocol's error code; each front door maps
these classes to its own codes, once. Broken promises of our own are assertions, not errors.
"""

from collections.abc import Sequence

from kafkaesque.types import NodeId, Offset


class KafkaesqueError(Exception):
    """The root of all errors that we raise on purpose; its text is one sentence for a person."""


class BatchError(KafkaesqueError):
    """A record batch that we refuse."""


class MalformedBatch(BatchError):
    """The batch's header or records contradict themselves or the bytes that follow."""


class CorruptBatch(BatchError):
    """The batch's checksum does not match its bytes."""


class UnsupportedBatch(BatchError):
    """The batch is of a format, or compressed by a codec, that we do not know."""


class OversizedBatch(BatchError):
    """The batch unpacks to more than the limits allow."""


class LogError(KafkaesqueError):
    """A log that cannot do what was asked."""


class OffsetOutOfRange(LogError):
    """The offset is before the first record kept or after the last one written."""

    def __init__(self, offset: Offset, start: Offset, end: Offset) -> None:
        super().__init__(f"offset {offset} is outside the log, which holds [{start}, {end})")
        self.offset = offset
        self.start = start
        self.end = end


class CorruptLog(LogError):
    """Synced bytes are not what was written; they are never cut, but refilled or repaired."""

    def __init__(self, path: str, position: int, reason: str, *, offset: int | None = None) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason
        self.offset = offset
        """No later than the first record that is not what was written; None if not known."""


class StateLost(CorruptLog):
    """All snapshots of the state that a machine's log begins with are gone or damaged."""


class RepairFailed(LogError):
    """A damaged segment could not be mended this time; nothing was changed."""


class OldCopy(LogError):
    """The data folder is older than what another broker remembers of it."""

    def __init__(self, peer: int, *, kept_catalog: bool = False) -> None:
        remedy = (
            "by it nobody else votes on the catalog, and others may do so by now, so let this "
            "broker join again with an empty folder"
            if kept_catalog
            else "start this broker again, and the others give it what it lacks"
        )
        super().__init__(
            f"the data folder is an old copy: broker {peer} remembers more of it; {remedy}"
        )
        self.peer = peer


class JournalLost(LogError):
    """The journal cannot be used, or is not there: terms and votes are lost with it."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; without it nobody knows in which terms this broker voted: if other brokers "
            "hold what it holds, start it once with --rejoin, and they give it all again; if it is "
            "alone, `kafkaesque log repair --data DIR` makes a journal from what is in the segments"
        )


class ForeignFile(LogError):
    """A file that is not ours, or not of the kind that its name says."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is not one of our files: {reason}")
        self.path = path


class NewerFormat(LogError):
    """A file written by a later version of Kafkaesque than this one."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path} has format {found}, this version reads up to {known}: use a newer Kafkaesque"
        )
        self.path = path
        self.found = found
        self.known = known


class PartitionOffline(LogError):
    """The partition's log cannot be used until a person has looked at it; the others serve on."""


class DiskFull(LogError):
    """The disk has no room; what was already acknowledged is safe and can be read."""


class DiskFailed(LogError):
    """A write or a sync failed; the replica stops, because the kernel may have dropped the data."""


class FolderInUse(LogError):
    """Another process works in this data folder; two would destroy each other's files."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"{folder} is in use by another process: stop it or take another folder")
        self.folder = folder


class RaftError(KafkaesqueError):
    """A request that this replica cannot serve now."""


class NotLeader(RaftError):
    """Another replica leads, or nobody does at present."""

    def __init__(self, leader: NodeId | None) -> None:
        known = "nobody is known to lead" if leader is None else f"node {leader} leads"
        super().__init__(f"this replica does not lead its group: {known}")
        self.leader = leader


class NotHere(RaftError):
    """This broker holds no replica of the partition; others do."""


class NotFilled(NotHere):
    """The copy here is damaged and waits to be emptied and filled by other brokers."""


class LeaderNotReady(RaftError):
    """This replica leads, but has not yet committed an entry of its own term."""


class ChangeInProgress(RaftError):
    """A change of voters or a transfer of leadership is under way; one at a time."""


class InvalidChange(RaftError):
    """The change of voters asks for something that makes no sense for the group as it is."""


class WireError(KafkaesqueError):
    """Something about Kafka's protocol that we refuse."""


class MalformedFrame(WireError):
    """Bytes that are not the message that they claim to be."""


class UnencodableMessage(WireError):
    """A message holds a value that the version in which it is to be written cannot carry."""


class UnsupportedVersion(WireError):
    """A version of a message outside the range that we serve."""

    def __init__(self, name: str, version: int, first: int, last: int) -> None:
        super().__init__(f"{name} version {version} is not served, only {first} to {last}")
        self.version = version
        self.first = first
        self.last = last


class ApiNotServed(WireError):
    """The other side serves no such API."""


class LinkError(KafkaesqueError):
    """Something about the link to another broker."""


class MalformedLink(LinkError):
    """A peer sent what is no frame of a link; the link is cut."""


class LinkRefused(LinkError):
    """Two brokers do not belong together: another cluster, node, secret or protocol."""

    def __init__(self, reason: str, answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.answer = answer
        """What tells the other side why; None if it was the other side that refused."""


class SecretMissing(LinkRefused):
    """Nobody on another machine is linked with without a secret."""


class PeerUnreachable(LinkError):
    """There is no link to the broker now, or no room on it: nothing was asked."""


class AnswerLost(LinkError):
    """The link ended, or the time, before the answer came: it may have been done."""


class CallRefused(LinkError):
    """The other broker answered that it will not."""


class CannotJoin(LinkError):
    """The cluster that a broker was to join cannot be reached, or does not take it."""


class BadCommand(KafkaesqueError):
    """A line of the text protocol that is no command, or one that cannot be done."""


class BrokerError(KafkaesqueError):
    """Something that a client asked for and cannot have."""


class UnknownTopic(BrokerError):
    """No topic has this name or this id, or it has no such partition."""


class UnknownTopicId(UnknownTopic):
    """No topic has this id, or no longer."""


class InconsistentTopicId(BrokerError):
    """The topic of this id has another's partitions here: it is just being made anew."""


class TopicExists(BrokerError):
    """A topic of this name is already there."""


class InvalidTopic(BrokerError):
    """The name or the number of partitions is not one that a topic may have."""


class InvalidPartitions(InvalidTopic):
    """The number of partitions is not one that this topic may have."""


class InvalidReplicas(BrokerError):
    """As many replicas as were asked for cannot be had, for there are not as many brokers."""


class InvalidAssignment(BrokerError):
    """The replicas cannot be placed on the brokers that were named."""


class BrokerRemoved(InvalidAssignment):
    """The broker was removed from the cluster, for good: its number is never given again."""


class NoMove(BrokerError):
    """The partition is not being moved, or not by the move that was meant."""


class UnknownBroker(BrokerError):
    """There is no broker of this number."""


class BrokerInUse(BrokerError):
    """The broker still holds something, so it cannot be removed."""


class InvalidRequest(BrokerError):
    """The request contradicts itself, or asks for what cannot be done here."""


class InvalidSetting(BrokerError):
    """No such setting, or no such value for it."""


class SettingsChanged(InvalidSetting):
    """Somebody else has changed the settings meanwhile: nothing was done."""


class BatchTooLarge(BrokerError):
    """The batch is larger than the topic takes."""


class RecordsRefused(BrokerError):
    """Some records of a batch are not what the topic takes; nothing of the batch was appended."""

    def __init__(self, reason: str, places: Sequence[int]) -> None:
        super().__init__(f"{len(places)} of the batch's records are refused: {reason}")
        self.reason = reason
        self.places = places  # of the records in the batch, counted from 0


class TimeRefused(BrokerError):
    """A batch is from a time that the topic does not take."""


class NotEnoughReplicas(BrokerError):
    """Fewer replicas are in sync than the topic wants copies, or no majority can be reached."""


class OffsetNotAvailable(BrokerError):
    """This follower does not know yet that the offset is committed; it will soon."""


class InvalidAcks(BrokerError):
    """A producer asks for acknowledgements in a way that does not exist."""


class StaleProducerEpoch(BrokerError):
    """The producer was replaced by a newer one of the same id."""

    def __init__(self, producer_id: int, epoch: int, current: int) -> None:
        super().__init__(f"producer {producer_id} is at epoch {current}, this batch is of {epoch}")


class OutOfOrderSequence(BrokerError):
    """A producer's batch does not follow its last one: another must have been lost before it."""

    def __init__(self, producer_id: int, found: int, expected: int) -> None:
        super().__init__(f"producer {producer_id} sent sequence {found}, {expected} comes next")
        self.expected = expected


class SequenceReused(BrokerError):
    """A transaction's batch is numbered like older ones and repeats none of this transaction."""

    def __init__(self, producer_id: int, found: int, expected: int) -> None:
        super().__init__(
            f"producer {producer_id} used sequence {found} before, {expected} comes next:"
            " abort, and go on with a higher epoch"
        )


class NotController(BrokerError):
    """Nobody leads the catalog just now, or nobody who does can be reached: nothing was done."""


class OutcomeUnknown(BrokerError):
    """Leadership was lost before the change was committed: it may or may not come to be."""


class StaleTerm(BrokerError):
    """The client knows the leader by a term that is over; it must learn who leads now."""


class FutureTerm(BrokerError):
    """The client knows a later term than this replica: it is the replica that lags."""


class GroupError(BrokerError):
    """Something that a consumer group refuses."""


class InvalidGroup(GroupError):
    """The name of the group is not one that a group may have."""


class UnknownGroup(GroupError):
    """There is no such group."""


class GroupNotEmpty(GroupError):
    """The group has members, so it cannot be deleted."""


class GroupSubscribed(GroupError):
    """A member of the group reads this topic, so its offsets cannot be deleted."""


class GroupFull(GroupError):
    """The group, or the coordinator, has reached one of its limits."""


class UnknownMember(GroupError):
    """The group has no such member, or has it no longer."""


class MemberIdRequired(GroupError):
    """A new member is to join again under the id that it is given here."""

    def __init__(self, member_id: str) -> None:
        super().__init__(f"join again as {member_id}")
        self.member_id = member_id


class FencedInstance(GroupError):
    """Another member has taken over this instance id."""


class IllegalGeneration(GroupError):
    """The member speaks of a generation that is not the group's present one."""


class RebalanceInProgress(GroupError):
    """The group is being rebalanced: the member must join again."""


class InconsistentProtocol(GroupError):
    """The member has no protocol in common with the others of its group."""


class InvalidSessionTimeout(GroupError):
    """The session time-out is shorter or longer than allowed."""


class NotCoordinator(GroupError):
    """This broker does not coordinate the group now; what was asked may or may not come to be."""


class TransactionError(BrokerError):
    """Something that a transaction refuses; what it is, `machines/transaction_errors.py` tells."""


class CannotListen(KafkaesqueError):
    """The address cannot be listened on: it is in use, or not this machine's."""


class BadConfiguration(KafkaesqueError):
    """A file, a variable or a flag sets what cannot be set, or to what it cannot be."""


class ClientError(KafkaesqueError):
    """A broker that was asked for something did not do it, or is not known to have done it."""


class InvalidAddress(ClientError):
    """Text that names no broker: `host:port` is expected, several with commas between them."""


class Unreachable(ClientError):
    """No connection could be made, so nothing was asked."""


class ConnectionLost(ClientError):
    """The connection ended, or went silent, before the answer came."""


class NotServed(ClientError):
    """The broker does not serve an API, or no version of it that we know."""


class Refused(ClientError):
    """The broker answered that it will not; `code` is the name that Kafka gives the reason."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class RefusedForNow(Refused):
    """The broker did not do it, but may do so soon, or another one may."""


class BackupError(KafkaesqueError):
    """A backup that cannot be made, checked or restored as it was asked for."""


class DamagedBackup(BackupError):
    """A file of a backup is not what was written."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(f"{path} is damaged at byte {position}: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class BackupExists(BackupError):
    """The folder holds something else, or a backup that is complete or of something else."""


class TopicNotEmpty(BackupError):
    """A topic to restore into is there already, with records or otherwise made."""


class PatternError(KafkaesqueError):
    """A messaging pattern that did not do what a program asked of it."""


class InvalidPattern(PatternError):
    """Settings or names with which a pattern cannot work."""


class TooManyInFlight(PatternError):
    """As much is under way as the limit allows; what was asked for was not begun."""


class Undelivered(PatternError):
    """A message is not known to be written; it may be there all the same."""


class NoAnswer(PatternError):
    """Nobody answered before the deadline; the request may be served all the same."""


class RequestFailed(PatternError):
    """The one who was asked answered that it failed; `kind` is the class of its error."""

    def __init__(self, responder: str, kind: str, reason: str) -> None:
        super().__init__(f"{responder} failed: {kind}: {reason}")
        self.responder = responder
        self.kind = kind
        self.reason = reason


class TableFull(PatternError):
    """A table's topic holds more keys than the table may keep."""


class BadOption(ClientError):
    """An option of a Spark query that does not exist, contradicts another or cannot be kept."""


class DataLost(ClientError):
    """Records that a query still had to read are gone from the topic."""


class SparkMissing(KafkaesqueError):
    """Something of Spark's was asked for, and Spark or a Java for it is not installed."""


class QueryFailed(KafkaesqueError):
    """A query of a pipeline ended with an error."""
