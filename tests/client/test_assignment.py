"""Members' assignments, in the bytes that consumers agree on."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.client.assignment import decode_assignment


def test_partitions_are_read_by_topic_and_number() -> None:
    data = b"\0\0" + b"\0\0\0\1" + b"\0\1a" + b"\0\0\0\2" + b"\0\0\0\3" + b"\0\0\0\1"
    assert decode_assignment(data) == (("a", 1), ("a", 3))


@given(st.binary(max_size=60))
def test_any_bytes_are_partitions_or_none(data: bytes) -> None:
    assert all(isinstance(number, int) for _, number in decode_assignment(data))


def test_empty_bytes_have_no_partitions() -> None:
    assert decode_assignment(b"") == ()
