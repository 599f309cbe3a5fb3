"""The headers of requests and answers."""

from dataclasses import dataclass

from kafkaesque.errors import RequestFailed
from kafkaesque.patterns.dead_letter import ERROR, REASON, Failure
from kafkaesque.patterns.message import Headers, int_header, text_header

REPLY_TO = "kafkaesque-reply-to"
CORRELATION = "kafkaesque-correlation"
DEADLINE = "kafkaesque-deadline"
RESPONDER = "kafkaesque-responder"
_STRANGER = "(someone)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a responder needs to answer."""

    reply_to: str
    correlation: str
    deadline_ms: int
    """On the wall clock: after it an answer is useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, or the responder's error."""

    correlation: str
    responder: str
    value: bytes | RequestFailed | None


def request_headers(request: Request) -> Headers:
    """Return the headers of a request."""
    return (
        (REPLY_TO, request.reply_to.encode()),
        (CORRELATION, request.correlation.encode()),
        (DEADLINE, b"%d" % request.deadline_ms),
    )


def read_request(headers: Headers) -> Request | None:
    """Read a request's headers; None if the message is not a request of ours."""
    found = dict(headers)  # the last value of a name counts
    reply_to, correlation = text_header(found, REPLY_TO), text_header(found, CORRELATION)
    deadline_ms = int_header(found, DEADLINE)
    if not reply_to or not correlation or deadline_ms is None:
        return None
    return Request(reply_to=reply_to, correlation=correlation, deadline_ms=deadline_ms)


def answer_headers(request: Request, responder: str, failure: Failure | None = None) -> Headers:
    """Return the headers of an answer, or of a failure instead of one."""
    ok = ((CORRELATION, request.correlation.encode()), (RESPONDER, responder.encode()))
    if failure is None:
        return ok
    return (*ok, (ERROR, failure.error.encode()), (REASON, failure.reason.encode()))


def read_answer(headers: Headers, value: bytes | None) -> Answer | None:
    """Read an answer; None if it is not one of ours."""
    found = dict(headers)  # the last value of a name counts
    correlation = text_header(found, CORRELATION)
    if correlation is None:
        return None
    responder = text_header(found, RESPONDER) or _STRANGER
    error = text_header(found, ERROR)
    said: bytes | RequestFailed | None = value
    if error is not None:
        said = RequestFailed(responder, error, text_header(found, REASON) or "")
    return Answer(correlation=correlation, responder=responder, value=said)
