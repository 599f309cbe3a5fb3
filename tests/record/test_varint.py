import pytest
from aiokafka.record.util import encode_varint
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.errors import MalformedBatch
from kafkaesque.record.varint import read_varint, read_varlong, write_varint, write_varlong

EXAMPLES = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    ((1 << 31) - 1, "feffffff0f"),
    (-(1 << 31), "ffffffff0f"),
]


@pytest.mark.parametrize(("value", "spelled"), EXAMPLES)
def test_a_varint_is_encoded_like_kafkas(value: int, spelled: str) -> None:
    out = bytearray()
    write_varint(out, value)
    assert out.hex() == spelled
    assert read_varint(out, 0) == (value, len(out))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_varlong_round_trips_and_is_encoded_like_aiokafkas(value: int) -> None:
    out, theirs = bytearray(b"before"), bytearray(b"before")
    write_varlong(out, value)
    encode_varint(value, theirs.append)
    assert out == theirs
    assert read_varlong(bytes(out) + b"after", 6) == (value, len(out))


def test_an_overlong_encoding_is_read() -> None:
    assert read_varint(bytes.fromhex("828000"), 0) == (1, 3)


@pytest.mark.parametrize("spelled", ["ffffffffff00", "8080808080", "ffffffff10"])
def test_a_varint_beyond_five_bytes_or_32_bits_is_refused(spelled: str) -> None:
    with pytest.raises(MalformedBatch):
        read_varint(bytes.fromhex(spelled), 0)


@pytest.mark.parametrize("spelled", ["ff" * 10 + "00", "80" * 10, "ff" * 9 + "02"])
def test_a_varlong_beyond_ten_bytes_or_64_bits_is_refused(spelled: str) -> None:
    with pytest.raises(MalformedBatch):
        read_varlong(bytes.fromhex(spelled), 0)


@pytest.mark.parametrize("spelled", ["", "80", "ffffff"])
def test_a_truncated_number_is_refused(spelled: str) -> None:
    with pytest.raises(MalformedBatch):
        read_varint(bytes.fromhex(spelled), 0)
    with pytest.raises(MalformedBatch):
        read_varlong(bytes.fromhex(spelled), 0)
