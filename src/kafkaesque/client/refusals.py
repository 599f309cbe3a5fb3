"""Maps Kafka's error codes to our errors, with the broker's message or one of ours."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kafkaesque.client.errors import Refused, RefusedForNow
from kafkaesque.errors import (
    InvalidSetting,
    InvalidTopic,
    KafkaesqueError,
    OutcomeUnknown,
    TopicExists,
    UnknownTopic,
)
from kafkaesque.wire.error_codes import ErrorCode

T = TypeVar("T")

TRY_AGAIN = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""Nothing was done, but a retry may soon succeed."""

IN_DOUBT = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
"""Queries are simply retried; a change may have been made. A leader that steps down during a
change answers that it is not the leader, and does not know the outcome either."""

_CLASSES: Mapping[ErrorCode, type[KafkaesqueError]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: UnknownTopic,
    ErrorCode.TOPIC_ALREADY_EXISTS: TopicExists,
    ErrorCode.INVALID_TOPIC_EXCEPTION: InvalidTopic,
    ErrorCode.INVALID_PARTITIONS: InvalidTopic,
    ErrorCode.INVALID_CONFIG: InvalidSetting,
}


_NUMBERS = frozenset(ErrorCode)

_SENTENCES: Mapping[ErrorCode, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.TOPIC_ALREADY_EXISTS: "one of this name already exists",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the name is not allowed",
    ErrorCode.INVALID_PARTITIONS: "the number of partitions is invalid",
    ErrorCode.INVALID_REPLICATION_FACTOR: "there are not enough brokers for this many replicas",
    ErrorCode.INVALID_CONFIG: "a setting or its value is not allowed",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is before the first record kept or past the last",
    ErrorCode.NON_EMPTY_GROUP: "the group still has members",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, and only they may do this",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "a member of the group still reads the topic",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "it was never used, or not for a long time",
    ErrorCode.INVALID_TXN_STATE: "the state of the transaction does not allow this",
    ErrorCode.PRODUCER_FENCED: "a newer producer has taken over",
    ErrorCode.MESSAGE_TOO_LARGE: "a batch is larger than the topic takes",
    ErrorCode.REQUEST_TIMED_OUT: "it was not done in time",
    ErrorCode.TOPIC_DELETION_DISABLED: "the broker is configured not to delete topics",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user lacks permission for this",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user lacks permission for this",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "this user lacks permission for this on the cluster",
}


def refusal(
    code: int, subject: str, sentence: str | None = None, *, is_change: bool = False
) -> KafkaesqueError:
    """Return the error for a code; `subject` is what was asked about, like `topic orders`."""
    known = ErrorCode(code) if code in _NUMBERS else None
    name = str(code) if known is None else known.name
    ours = None if known is None else _SENTENCES.get(known)
    reason = (sentence or "").strip().rstrip(".") or ours or f"the broker reports {name}"
    text = reason if subject in reason else f"{subject}: {reason}"
    if is_change and known in IN_DOUBT:
        return OutcomeUnknown(f"{text}; it may or may not have been done")
    if known in TRY_AGAIN or known in IN_DOUBT:
        return RefusedForNow(text, name)
    cls = None if known is None else _CLASSES.get(known)
    return Refused(text, name) if cls is None else cls(text)


def check(code: int, subject: str, sentence: str | None = None, *, is_change: bool = False) -> None:
    """Raise the error for a code, unless it means success."""
    if code != ErrorCode.NONE:
        raise refusal(code, subject, sentence, is_change=is_change)


def first(rows: Sequence[T], subject: str) -> T:
    """Return the broker's answer on its only subject; raises if there is none."""
    if not rows:
        raise Refused(f"{subject}: the broker's answer does not mention it", "NONE")
    return rows[0]
