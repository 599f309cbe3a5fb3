"""Variable-length integers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.varint import read_varint, write_varint


@given(st.integers(0, 2**32 - 1))
def test_a_value_is_read_back_and_the_position_is_after_it(value: int) -> None:
    data = write_varint(value)
    assert read_varint(b"\x80" + data + b"\x07", 1) == (value, 1 + len(data))


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff\x10", b"\x80\x80\x80\x80\x80\x01"])
def test_a_value_past_32_bits_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrame):
        read_varint(data, 0)
