"""The headers of requests and answers."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import RequestFailed
from kafkaesque.patterns.dead_letter import failure_of
from kafkaesque.patterns.envelope import (
    Request,
    answer_headers,
    read_answer,
    read_request,
    request_headers,
)

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["kafkaesque-reply-to", "kafkaesque-correlation", "kafkaesque-deadline"]),
        st.binary(max_size=8) | st.none(),
    ),
    max_size=6,
).map(tuple)


@given(st.builds(Request, reply_to=NAMES, correlation=NAMES, deadline_ms=st.integers(0, 10**15)))
def test_a_request_round_trips(request: Request) -> None:
    assert read_request(request_headers(request)) == request


@given(HEADERS)
def test_any_headers_can_be_read(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    """Nothing is raised, and what is read can be written again."""
    request, answer = read_request(headers), read_answer(headers, b"paid")
    assert request is None or read_request(request_headers(request)) == request
    assert answer is None or answer.value == b"paid"


def test_an_answer_names_its_worker_and_its_request() -> None:
    request = Request(reply_to="r", correlation="c/1", deadline_ms=5)
    answer = read_answer(answer_headers(request, "bank"), b"paid")
    assert answer is not None
    assert (answer.correlation, answer.responder, answer.value) == ("c/1", "bank", b"paid")


def test_an_error_is_read_back_as_an_error() -> None:
    request = Request(reply_to="r", correlation="c/1", deadline_ms=5)
    answer = read_answer(answer_headers(request, "bank", failure_of(KeyError("card"))), None)
    assert answer is not None
    assert isinstance(answer.value, RequestFailed)
    assert (answer.value.kind, answer.value.responder) == ("KeyError", "bank")
