"""The headers of a dead letter, and that foreign headers do no harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.patterns import dead_letter
from kafkaesque.patterns.dead_letter import (
    REASON_CHARS_MAX,
    dead_headers,
    decode,
    failure_of,
    own,
    redrive_headers,
    retry_headers,
)
from kafkaesque.patterns.message import Headers, Message

OURS = sorted(
    value
    for name, value in vars(dead_letter).items()
    if name.isupper() and isinstance(value, str) and value.startswith("kafkaesque-")
)
HEADERS: st.SearchStrategy[Headers] = st.lists(
    st.tuples(st.text(max_size=5) | st.sampled_from(OURS), st.binary(max_size=20) | st.none()),
    max_size=8,
).map(tuple)


def a_message(headers: Headers = (), topic: str = "orders", offset: int = 7) -> Message:
    return Message(
        topic=topic,
        partition=2,
        offset=offset,
        timestamp_ms=1_000,
        key=b"k",
        value=b"v",
        headers=headers,
    )


def an_error(text: str = "no card") -> ValueError:
    def fail() -> None:
        raise ValueError(text)

    with pytest.raises(ValueError) as caught:
        fail()
    return caught.value


def dead(message: Message, error: BaseException) -> Message:
    headers = dead_headers(message, failure_of(error), attempts=3, group="shop", now_ms=9_000)
    return a_message(headers, "orders.shop.dlq", 0)


@pytest.mark.requirement("PAT-5")
def test_a_dead_letter_records_why_how_often_and_where_from() -> None:
    letter = decode(dead(a_message(), an_error()))
    assert letter is not None
    assert (letter.failure.error, letter.failure.reason) == ("ValueError", "no card")
    assert (letter.attempts, letter.group, letter.failed_at_ms) == (3, "shop", 9_000)
    origin = letter.origin
    assert (origin.topic, origin.partition, origin.offset, origin.timestamp_ms) == (
        *("orders", 2, 7, 1_000),
    )


@given(HEADERS)
def test_the_senders_headers_survive_retries_death_and_redrive(headers: Headers) -> None:
    message = a_message(headers)
    failure = failure_of(an_error())
    retried = a_message(retry_headers(message, failure, attempt=2, due=5), "orders.shop.retry-1")
    buried = dead(retried, an_error())
    back = a_message(redrive_headers(buried.headers, 1))
    assert own(message) == own(retried) == own(buried) == own(back)


@given(HEADERS)
def test_any_headers_can_be_read(headers: Headers) -> None:
    message = a_message(headers)
    decode(message)
    assert dead_letter.redrives_of(message) >= 0
    assert dead_letter.origin_of(message).offset >= 0


def test_the_origin_is_the_first_topic_and_not_the_retry_topic() -> None:
    first = a_message()
    retried = a_message(retry_headers(first, failure_of(an_error()), attempt=2, due=5), "retry", 99)
    letter = decode(dead(retried, an_error()))
    assert letter is not None
    assert (letter.origin.topic, letter.origin.offset) == ("orders", 7)


def test_every_redrive_is_counted_through_the_next_death() -> None:
    message = a_message()
    for count in (1, 2, 3):
        message = a_message(redrive_headers(dead(message, an_error()).headers, count))
        assert dead_letter.redrives_of(message) == count


def test_equal_failures_have_equal_digests_whatever_their_messages() -> None:
    assert failure_of(an_error("card 1")).digest == failure_of(an_error("card 2")).digest
    assert failure_of(an_error()).digest != failure_of(KeyError("x")).digest


@given(st.text())
def test_any_reason_fits_into_a_header(text: str) -> None:
    reason = failure_of(ValueError(text)).reason
    assert 0 < len(reason) <= REASON_CHARS_MAX
    reason.encode()
