"""What the broker's error codes are in the words of the text protocol: decided here alone."""

from collections.abc import Mapping

from kafkaesque.errors import BadCommand
from kafkaesque.wire.error_codes import ErrorCode


class NotNow(BadCommand):
    """It cannot be done while a leader or a coordinator moves: it may be tried again."""


_SENTENCES: Mapping[ErrorCode, str] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic",
    ErrorCode.UNKNOWN_TOPIC_ID: "the topic is gone",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "a topic cannot have this name",
    ErrorCode.TOPIC_ALREADY_EXISTS: "the topic already exists",
    ErrorCode.LEADER_NOT_AVAILABLE: "the topic has no leader at present; try again",
    ErrorCode.MESSAGE_TOO_LARGE: "the message is larger than the topic takes",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is outside the log",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "the topic is not for this user",
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
"""What is answered while a leader or a coordinator moves."""


def sentence(code: int, message: str | None = None) -> str:
    """Return what an error code means; the broker's own message is preferred."""
    if message:
        return message
    try:
        known = ErrorCode(code)
    except ValueError:
        return f"the broker answered with error {code}"
    return _SENTENCES.get(known, f"the broker answered {known.name}")


def refusal(code: int, message: str | None = None) -> BadCommand:
    """Return an error code as an error, NotNow if it passes."""
    return (NotNow if code in _PASSING else BadCommand)(sentence(code, message))


def change_sentence(code: int, message: str | None = None) -> str:
    """Return the same for a change, which may have come to be in spite of the error."""
    if code in _UNKNOWN_OUTCOMES:
        return unknown_outcome(sentence(code, message))
    return sentence(code, message)


def unknown_outcome(reason: str) -> str:
    """Return what is said when nobody can tell whether a change was made."""
    return f"the outcome is unknown, it may or may not have been done: {reason}"
