"""The headers of a dead letter, and how its original headers are restored."""

import hashlib
import traceback
from dataclasses import dataclass

from kafkaesque.patterns.message import Headers, Message, int_header, text_header
from kafkaesque.patterns.retry_plan import ATTEMPT, DUE
from kafkaesque.types import Offset

REASON = "kafkaesque-reason"
ERROR = "kafkaesque-error"
DIGEST = "kafkaesque-traceback-digest"
ATTEMPTS = "kafkaesque-attempts"
GROUP = "kafkaesque-group"
FAILED_AT = "kafkaesque-failed-at"
ORIGIN_TOPIC = "kafkaesque-origin-topic"
ORIGIN_PARTITION = "kafkaesque-origin-partition"
ORIGIN_OFFSET = "kafkaesque-origin-offset"
ORIGIN_TIMESTAMP = "kafkaesque-origin-timestamp"
REDRIVES = "kafkaesque-redrives"
SOURCE = "kafkaesque-source"
"""The message that this copy was made from: topic/partition/offset."""

REASON_CHARS_MAX = 1_000
"""A handler's error may quote a whole message, and headers travel with every later copy."""
DIGEST_CHARS = 16

_OURS = frozenset(
    {
        *(REASON, ERROR, DIGEST, ATTEMPTS, GROUP, FAILED_AT, REDRIVES, SOURCE, ATTEMPT, DUE),
        *(ORIGIN_TOPIC, ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why an attempt failed."""

    error: str
    """The class of the exception."""
    reason: str
    digest: str
    """A hash of the code locations in the traceback: equal for equal failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The position at which a message was first read."""

    topic: str
    partition: int
    offset: Offset
    timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """The contents of a dead letter's headers."""

    origin: Origin
    failure: Failure
    attempts: int
    group: str
    failed_at_ms: int
    redrives: int


def failure_of(error: BaseException) -> Failure:
    """Describe an error; its digest ignores what varies between messages."""
    frames = traceback.extract_tb(error.__traceback__)
    places = "\n".join(f"{frame.filename}:{frame.lineno}:{frame.name}" for frame in frames)
    digest = hashlib.sha256(f"{type(error).__qualname__}\n{places}".encode()).hexdigest()
    reason = " ".join(str(error).split()) or "(no message)"
    return Failure(
        error=type(error).__qualname__,
        reason=_plain(reason)[:REASON_CHARS_MAX],
        digest=digest[:DIGEST_CHARS],
    )


def own(message: Message) -> Headers:
    """Return the headers that the message's sender set."""
    return _own(message.headers)


def _own(headers: Headers) -> Headers:
    return tuple([pair for pair in headers if pair[0] not in _OURS])


def origin_of(message: Message) -> Origin:
    """Return where a message came from: as its headers say, else its own position."""
    headers = message.headers
    topic = text_header(headers, ORIGIN_TOPIC)
    partition = int_header(headers, ORIGIN_PARTITION)
    offset = int_header(headers, ORIGIN_OFFSET)
    timestamp_ms = int_header(headers, ORIGIN_TIMESTAMP)
    if not topic or partition is None or offset is None or timestamp_ms is None:
        return Origin(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=max(0, message.timestamp_ms),
        )
    return Origin(topic=topic, partition=partition, offset=offset, timestamp_ms=timestamp_ms)


def redrives_of(message: Message) -> int:
    """Return how often a message was already sent back."""
    return int_header(message.headers, REDRIVES) or 0


def source_of(message: Message) -> str:
    """Return the name of this message by which its copies identify it."""
    return f"{message.topic}/{message.partition}/{message.offset}"


def retry_headers(message: Message, failure: Failure, *, attempt: int, due: int) -> Headers:
    """Return the headers of the copy that waits in a retry topic."""
    return (
        *own(message),
        *_origin_headers(message),
        (SOURCE, source_of(message).encode()),
        (ATTEMPT, b"%d" % attempt),
        (DUE, b"%d" % due),
        (ERROR, failure.error.encode()),
        (REASON, failure.reason.encode()),
    )


def dead_headers(
    message: Message, failure: Failure, *, attempts: int, group: str, now_ms: int
) -> Headers:
    """Return the headers of a dead letter."""
    return (
        *own(message),
        *_origin_headers(message),
        (SOURCE, source_of(message).encode()),
        (ATTEMPTS, b"%d" % attempts),
        (GROUP, _plain(group).encode()),
        (FAILED_AT, b"%d" % now_ms),
        (ERROR, failure.error.encode()),
        (REASON, failure.reason.encode()),
        (DIGEST, failure.digest.encode()),
    )


def redrive_headers(headers: Headers, redrives: int) -> Headers:
    """Return the headers of a redriven letter: its sender's, and the redrive count."""
    return (*_own(headers), (REDRIVES, b"%d" % redrives))


def decode(message: Message) -> DeadLetter | None:
    """Read a dead letter's headers; None if they are foreign or incomplete."""
    headers = dict(message.headers)
    texts = [text_header(headers, name) for name in (ORIGIN_TOPIC, ERROR, REASON, DIGEST, GROUP)]
    names = (ORIGIN_PARTITION, ORIGIN_OFFSET, ORIGIN_TIMESTAMP, ATTEMPTS, FAILED_AT)
    numbers = [int_header(headers, name) for name in names]
    match texts, numbers:
        case [str(topic), str(error), str(reason), str(digest), str(group)], [
            int(partition),
            int(offset),
            int(timestamp_ms),
            int(attempts),
            int(failed_at_ms),
        ]:
            return DeadLetter(
                origin=Origin(
                    topic=topic, partition=partition, offset=offset, timestamp_ms=timestamp_ms
                ),
                failure=Failure(error=error, reason=reason, digest=digest),
                attempts=attempts,
                group=group,
                failed_at_ms=failed_at_ms,
                redrives=int_header(headers, REDRIVES) or 0,
            )
        case _:
            return None


def _origin_headers(message: Message) -> Headers:
    origin = origin_of(message)
    redrives = redrives_of(message)
    return (
        (ORIGIN_TOPIC, origin.topic.encode()),
        (ORIGIN_PARTITION, b"%d" % origin.partition),
        (ORIGIN_OFFSET, b"%d" % origin.offset),
        (ORIGIN_TIMESTAMP, b"%d" % origin.timestamp_ms),
        *(((REDRIVES, b"%d" % redrives),) if redrives else ()),
    )


def _plain(text: str) -> str:
    """Return text that UTF-8 can encode: errors may quote lone surrogates."""
    return text.encode(errors="replace").decode()
