"""The topics of a subscription, read from bytes that may be anything."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.groups.subscription import (
    Subscription,
    assigned_of,
    encode_assignment,
    encode_subscription,
    is_same_subscription,
    subscription_of,
    topics_of,
)
from tests.machines.group_desk import subscription
from tests.machines.mixed_desk import metadata


def test_topics_are_found_whatever_follows_them() -> None:
    assert topics_of(subscription("a", "bc", rest=b"owned")) == frozenset({"a", "bc"})
    assert topics_of(subscription(rest=b"")) == frozenset()


def test_bytes_that_are_not_a_subscription_are_recognized() -> None:
    whole = subscription("orders", rest=b"")
    for length in range(len(whole)):
        assert topics_of(whole[:length]) is None
    assert topics_of(b"\0\1\x7f\xff\xff\xff" + bytes(50)) is None
    assert topics_of(b"\0\1\0\0\0\1\0\1\xff") is None


@given(st.binary(max_size=60))
def test_no_bytes_do_any_harm(data: bytes) -> None:
    """They are read, or the result is None; nothing is raised."""
    found = subscription_of(data)
    assert found is None or found.topics == topics_of(data)
    assert isinstance(topics_of(data), frozenset | None)
    assert isinstance(assigned_of(data), frozenset | None)


def test_owned_partitions_are_found_since_version_1() -> None:
    owned = frozenset({("a", 1), ("a", 3), ("b", 0)})
    assert subscription_of(metadata(("a", "b"), owned)) == Subscription(frozenset("ab"), owned)
    assert subscription_of(encode_subscription(["a"])) == Subscription(frozenset("a"), frozenset())
    whole = metadata(("a",), frozenset({("a", 1)}))
    assert all(subscription_of(whole[:length]) is None for length in range(len(whole)))


def test_an_assignment_is_read_unless_it_has_extra_data() -> None:
    whole = encode_assignment({"a": [1, 2], "b": [0]})
    assert assigned_of(whole) == frozenset({("a", 1), ("a", 2), ("b", 0)})
    assert assigned_of(b"") == frozenset()
    assert assigned_of(whole[:-4] + b"\0\0\0\1x") is None
    assert all(assigned_of(whole[:length]) is None for length in range(1, len(whole)))


def test_bytes_count_where_topics_cannot_be_read() -> None:
    assert is_same_subscription("consumer", b"x", b"x")
    assert not is_same_subscription("consumer", b"x", b"y")
    old, new = subscription("a", rest=b"1"), subscription("a", rest=b"2")
    assert is_same_subscription("consumer", old, new)
    assert not is_same_subscription("connect", old, new)
