"""Which topics a consumer wants, read from bytes that may be anything."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.subscription import is_same_subscription, topics_of
from tests.machines.group_desk import subscription


def test_topics_are_found_whatever_follows_them() -> None:
    assert topics_of(subscription("a", "bc", rest=b"owned")) == frozenset({"a", "bc"})
    assert topics_of(subscription(rest=b"")) == frozenset()


def test_what_is_no_subscription_is_told_apart() -> None:
    whole = subscription("orders", rest=b"")
    for length in range(len(whole)):
        assert topics_of(whole[:length]) is None
    assert topics_of(b"\0\1\x7f\xff\xff\xff" + bytes(50)) is None
    assert topics_of(b"\0\1\0\0\0\1\0\1\xff") is None


@given(st.binary(max_size=60))
def test_no_bytes_do_any_harm(data: bytes) -> None:
    topics_of(data)


def test_bytes_count_where_topics_cannot_be_read() -> None:
    assert is_same_subscription("consumer", b"x", b"x")
    assert not is_same_subscription("consumer", b"x", b"y")
    old, new = subscription("a", rest=b"1"), subscription("a", rest=b"2")
    assert is_same_subscription("consumer", old, new)
    assert not is_same_subscription("connect", old, new)
