"""Telnet's control bytes are removed wherever the stream is cut, and its options are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.gateway.telnet import COMMANDS_PER_READ_MAX, TelnetFilter
from kafkaesque.gateway.text_errors import BadCommand

PLAIN = st.binary(max_size=20).map(lambda data: data.replace(b"\xff", b"x"))
COMMANDS = st.one_of(
    st.builds(
        lambda verb, option: bytes((255, verb, option)), st.integers(251, 254), st.integers(0, 255)
    ),
    st.builds(lambda verb: bytes((255, verb)), st.integers(241, 249)),
    PLAIN.map(lambda inside: b"\xff\xfa" + inside + b"\xff\xf0"),
)


def in_pieces(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


@given(
    parts=st.lists(st.tuples(PLAIN, COMMANDS), max_size=10),
    sizes=st.lists(st.integers(0, 5), max_size=30),
)
def test_only_the_text_is_left_wherever_the_bytes_are_cut(
    parts: list[tuple[bytes, bytes]], sizes: list[int]
) -> None:
    typed = b"".join(text + command for text, command in parts)
    telnet = TelnetFilter()
    left = b"".join(telnet.clean(piece).text for piece in in_pieces(typed, sizes))
    assert left == b"".join(text for text, _ in parts)


def test_offered_and_requested_options_are_refused_and_refusals_are_not() -> None:
    cleaned = TelnetFilter().clean(b"\xff\xfd\x06\xff\xfb\x18\xff\xfc\x01\xff\xfe\x01")
    assert cleaned.refusals == b"\xff\xfc\x06\xff\xfe\x18"


def test_ctrl_c_is_an_interrupt_whose_timing_mark_is_answered() -> None:
    cleaned = TelnetFilter().clean(b"\xff\xf4\xff\xfd\x06")
    assert cleaned.is_interrupt
    assert cleaned.refusals == b"\xff\xfc\x06"


def test_an_escaped_escape_byte_stays() -> None:
    assert TelnetFilter().clean(b"a\xff\xffb").text == b"a\xffb"


def test_a_flood_of_commands_is_refused() -> None:
    with pytest.raises(BadCommand):
        TelnetFilter().clean(b"\xff\xf1" * (COMMANDS_PER_READ_MAX + 1))
