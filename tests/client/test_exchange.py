"""The protocol side of a connection: versions, order, and bytes in pieces of any size."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import NotServed, Refused
from kafkaesque.client.exchange import Answer, Exchange
from kafkaesque.errors import MalformedFrame
from kafkaesque.types import Buffer
from kafkaesque.wire.codec import encode_parts
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.errors import UnencodableMessage
from kafkaesque.wire.frame import frame
from kafkaesque.wire.header import encode_response_header, request_key
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaesque.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataResponse
from kafkaesque.wire.messages.produce import ProduceRequest, ProduceResponse

METADATA = api_of(MetadataRequest)
LIST_GROUPS = api_of(ListGroupsRequest)
ALL = MetadataRequest(topics=None)


def answer(number: int, message: Any, version: int, *, flexible: bool) -> bytes:
    """Return the bytes of an answer."""
    head = encode_response_header(number, 1 if flexible else 0)
    return b"".join(bytes(part) for part in frame([head, *encode_parts(message, version)]))


def served(*rows: tuple[int, int, int], code: int = ErrorCode.NONE) -> ApiVersionsResponse:
    """Return what a broker says it serves: key, first and last version each."""
    keys = tuple(ApiVersion(api_key=k, min_version=f, max_version=n) for k, f, n in rows)
    return ApiVersionsResponse(error_code=code, api_keys=keys)


def a_ready_exchange(*rows: tuple[int, int, int], **settings: int) -> Exchange:
    """Return an exchange that knows what the broker serves; number 0 is used up."""
    exchange = Exchange(ClientConfig(**settings))  # type: ignore[arg-type]
    exchange.begin()
    rows = rows or ((METADATA.key, 0, 99), (LIST_GROUPS.key, 0, 0))
    exchange.receive(answer(0, served(*rows), 4, flexible=False))
    assert exchange.is_ready
    return exchange


def version_in(parts: list[Buffer]) -> int:
    """Return the version of a request."""
    return request_key(b"".join(bytes(part) for part in parts)[4:])[1]


def groups_answer(number: int) -> bytes:
    return answer(number, ListGroupsResponse(error_code=number, groups=()), 0, flexible=False)


def test_the_newest_common_version_is_used() -> None:
    exchange = a_ready_exchange((METADATA.key, 0, 7), (LIST_GROUPS.key, 0, 99))
    assert exchange.version_of(METADATA) == 7
    assert exchange.version_of(LIST_GROUPS) == LIST_GROUPS.last
    assert version_in(exchange.send(ALL, MetadataResponse)[1]) == 7


def test_a_caller_can_limit_the_version() -> None:
    exchange = a_ready_exchange((METADATA.key, 0, 12))
    assert version_in(exchange.send(ALL, MetadataResponse, version_max=5)[1]) == 5


def test_an_api_that_the_broker_does_not_serve_is_not_requested() -> None:
    exchange = a_ready_exchange((METADATA.key, 90, 99))
    with pytest.raises(NotServed, match="does not serve ListGroups"):
        exchange.send(ListGroupsRequest(), ListGroupsResponse)
    with pytest.raises(NotServed, match="versions 90 to 99"):
        exchange.send(ALL, MetadataResponse)
    assert exchange.in_flight == 0


def test_an_older_broker_is_asked_again_in_its_newest_version() -> None:
    exchange = Exchange(ClientConfig())
    assert version_in(exchange.begin()) == 4
    old = served((18, 0, 2), code=ErrorCode.UNSUPPORTED_VERSION)
    answers, out = exchange.receive(answer(0, old, 0, flexible=False))
    assert answers == []
    assert version_in(out) == 2
    assert not exchange.is_ready
    exchange.receive(answer(1, served((METADATA.key, 0, 1)), 2, flexible=False))
    assert exchange.version_of(METADATA) == 1


def test_a_broker_that_does_not_list_versions_is_asked_in_version_0() -> None:
    exchange = Exchange(ClientConfig())
    exchange.begin()
    silent = served(code=ErrorCode.UNSUPPORTED_VERSION)
    assert version_in(exchange.receive(answer(0, silent, 0, flexible=False))[1]) == 0


def test_a_broker_that_refuses_twice_is_not_asked_a_third_time() -> None:
    exchange = Exchange(ClientConfig())
    exchange.begin()
    no = served(code=ErrorCode.UNSUPPORTED_VERSION)
    exchange.receive(answer(0, no, 0, flexible=False))
    with pytest.raises(Refused):
        exchange.receive(answer(1, no, 0, flexible=False))


def test_an_answer_to_another_request_is_refused() -> None:
    exchange = a_ready_exchange()
    exchange.send(ListGroupsRequest(), ListGroupsResponse)
    with pytest.raises(MalformedFrame, match="answered request 5 instead of 1"):
        exchange.receive(groups_answer(5))


def test_an_answer_without_a_request_is_refused() -> None:
    with pytest.raises(MalformedFrame, match="without a request"):
        a_ready_exchange().receive(groups_answer(1))


def test_an_answer_larger_than_the_limit_is_refused() -> None:
    exchange = a_ready_exchange(frame_bytes_max=100)
    exchange.send(ListGroupsRequest(), ListGroupsResponse)
    with pytest.raises(MalformedFrame, match="at most 100"):
        exchange.receive((101).to_bytes(4, "big"))


def test_a_request_that_gets_no_answer_is_refused() -> None:
    exchange = a_ready_exchange((0, 0, 12))
    request = ProduceRequest(acks=0, timeout_ms=1, topic_data=())
    with pytest.raises(UnencodableMessage, match="acks=0"):
        exchange.send(request, ProduceResponse)


@given(st.lists(st.integers(min_value=1, max_value=40), max_size=30))
def test_answers_are_whole_and_in_order_however_their_bytes_are_split(sizes: list[int]) -> None:
    exchange = a_ready_exchange()
    numbers = [exchange.send(ListGroupsRequest(), ListGroupsResponse)[0] for _ in range(5)]
    stream = b"".join(groups_answer(number) for number in numbers)
    found: list[Answer] = []
    position = 0
    for size in [*sizes, len(stream)]:
        answers, out = exchange.receive(stream[position : position + size])
        found += answers
        assert out == []
        position += size
    assert [one.number for one in found] == numbers
    assert [one.message.error_code for one in found] == numbers
    assert exchange.in_flight == 0


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer_or_malformed(data: bytes) -> None:
    exchange = a_ready_exchange()
    exchange.send(ListGroupsRequest(), ListGroupsResponse)
    try:
        answers, _ = exchange.receive(data)
    except MalformedFrame:
        return
    assert len(answers) <= 1
