"""Maps the broker's error codes to sentences of the text protocol: the only place that does."""

from collections.abc import Mapping

from kafkaesque.errors import KafkaesqueError
from kafkaesque.wire.error_codes import ErrorCode


class BadCommand(KafkaesqueError):
    """An invalid line of the text protocol, or one that cannot be executed."""


class NotNow(BadCommand):
    """A leader or coordinator is moving: the command may be retried."""


_SENTENCES: Mapping[ErrorCode, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic is gone",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "the topic name is invalid",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic already exists",
    ErrorCode.LEADER_NOT_AVAILABLE: "the topic has no leader now; try again",
    ErrorCode.MESSAGE_TOO_LARGE: "the message is larger than the topic allows",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is outside the log",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "this user may not access the topic",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group is in use by Kafka consumers",
    ErrorCode.ILLEGAL_GENERATION: "the group is in use by Kafka consumers",
}

_UNKNOWN_OUTCOMES = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
"""Codes returned while a leader or a coordinator moves."""


def sentence(code: int, message: str | None = None) -> str:
    """Return the meaning of an error code; the broker's own message is preferred."""
    if message:
        return message
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"the broker answered with error {code}"
    return _SENTENCES.get(known, f"the broker answered {known.name}")


def refusal(code: int, message: str | None = None) -> BadCommand:
    """Return the exception for an error code, NotNow if it is transient."""
    return (NotNow if code in _PASSING else BadCommand)(sentence(code, message))


def change_sentence(code: int, message: str | None = None) -> str:
    """Like `sentence`, for a change that may have taken effect despite the error."""
    if code in _UNKNOWN_OUTCOMES:
        return unknown_outcome(sentence(code, message))
    return sentence(code, message)


def unknown_outcome(reason: str) -> str:
    """Return the message for a change whose outcome is unknown."""
    return f"the outcome is unknown, it may or may not have been done: {reason}"
