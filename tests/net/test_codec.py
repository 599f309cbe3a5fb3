"""Frames of a link round-trip, and any other bytes are refused."""

import struct
from collections.abc import Sequence
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaesque.entry import Entry, TermOpened
from kafkaesque.net.codec import (
    Call,
    Decoder,
    Failure,
    ForGroup,
    Note,
    Received,
    Reply,
    encode_beat,
    encode_exchange,
    encode_message,
)
from kafkaesque.net.errors import MalformedLink
from kafkaesque.net.heads import ENTRIES_MAX, GROUP_CHARS_MAX, SENTENCE_CHARS_MAX
from kafkaesque.raft.messages import AppendRequest, Heartbeat, Message, StatePiece
from kafkaesque.raft.roster import Beat
from kafkaesque.types import Buffer
from tests.net.messages import MESSAGES, SOURCE, TARGET, an_append, beats, groups, messages

DECODER = Decoder(SOURCE, TARGET)
exchanges = st.one_of(
    st.builds(Call, number=st.integers(0, 99), kind=st.integers(0, 65535), data=st.binary()),
    st.builds(Reply, number=st.integers(0, 99), data=st.binary()),
    st.builds(Failure, number=st.integers(0, 99), reason=st.text(max_size=50)),
    st.builds(Note, kind=st.integers(0, 99), data=st.binary(max_size=50)),
)


def the_frame(parts: Sequence[Buffer]) -> bytes:
    """Return a frame without its length, which must be right."""
    data = b"".join(parts)
    (size,) = struct.unpack_from(">I", data)
    assert size == len(data) - 4
    return data[4:]


def decoded(parts: Sequence[Buffer]) -> Received:
    item = DECODER.decode(memoryview(the_frame(parts)))
    assert item is not None
    return item


def a_frame(*head: object, body: bytes = b"") -> memoryview:
    packed = msgspec.msgpack.encode(head)
    return memoryview(struct.pack(">I", len(packed)) + packed + body)


@st.composite
def frames(draw: st.DrawFn) -> bytes:
    item = draw(messages | beats | exchanges)
    match item:
        case Beat():
            return the_frame(encode_beat(item))
        case Call() | Reply() | Failure() | Note():
            return the_frame(encode_exchange(item))
        case _:
            return the_frame(encode_message(draw(groups), item))


def test_there_is_a_strategy_for_every_message() -> None:
    assert set(MESSAGES) == set(get_args(Message))


@given(group=groups, message=messages)
def test_a_message_round_trips(group: str, message: Message) -> None:
    assert decoded(encode_message(group, message)) == ForGroup(group, message)


@given(beat=beats)
def test_a_beat_round_trips(beat: Beat) -> None:
    assert decoded(encode_beat(beat)) == beat


@given(item=exchanges)
def test_a_call_and_its_answer_round_trip(
    item: Call | Reply | Failure | Note,
) -> None:
    assert decoded(encode_exchange(item)) == item


def test_batches_are_sent_unchanged_and_received_as_views() -> None:
    batches = [bytes([n]) * 100 for n in range(3)]
    parts = encode_message("orders-0", an_append(*batches))
    assert all(part is batch for part, batch in zip(parts[1:], batches, strict=True))
    frame = bytearray(the_frame(parts))
    received = DECODER.decode(memoryview(frame))
    assert isinstance(received, ForGroup)
    assert isinstance(received.message, AppendRequest)
    frame[-1] = 77
    payload = received.message.entries[-1].payload
    assert isinstance(payload, memoryview)
    assert payload[-1] == 77


@given(frame=frames())
def test_a_truncated_frame_is_refused_or_is_a_call_with_less_data(frame: bytes) -> None:
    whole = DECODER.decode(memoryview(frame))
    for end in range(len(frame)):
        try:
            found = DECODER.decode(memoryview(frame)[:end])
        except MalformedLink:
            continue
        is_piece = isinstance(whole, ForGroup) and isinstance(whole.message, StatePiece)
        # The data of these ends where the frame ends.
        assert is_piece or isinstance(whole, Call | Reply | Note)
        assert isinstance(found, type(whole))


def is_read_or_refused(frame: bytes | bytearray) -> bool:
    """Whether a frame is a known one or raises MalformedLink; other exceptions propagate."""
    try:
        return isinstance(DECODER.decode(memoryview(frame)), Received)
    except MalformedLink:
        return True


@given(frame=frames(), changes=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1))
def test_a_damaged_frame_is_another_frame_or_raises_malformed_link(
    frame: bytes, changes: list[tuple[int, int]]
) -> None:
    damaged = bytearray(frame)
    for place, value in changes:
        damaged[place % len(damaged)] = value
    assert is_read_or_refused(damaged)


@given(data=st.binary(max_size=200))
def test_garbage_raises_malformed_link(data: bytes) -> None:
    for frame in (data, struct.pack(">I", len(data)) + data):
        assert is_read_or_refused(frame)


@pytest.mark.parametrize(
    "frame",
    [
        a_frame(6, "g", 1, -1, 0),
        a_frame(6, "g", 1, 1 << 63, 0),
        a_frame(6, "g", True, 1, 0),
        a_frame(6, "g", 1, 1),
        a_frame(6, "g", 1, 1, 1, 1, 1),
        a_frame(6, "g", 1, 1, 1, -1),
        a_frame(6, "", 1, 1, 0),
        a_frame(6, "g" * (GROUP_CHARS_MAX + 1), 1, 1, 0),
        a_frame(6, "g", 1, 1, 0, body=b"x"),
        a_frame(99, "g", 1, 1),
        a_frame(3, "g", 1, 5, 1, 0, [(0, 5, 6, 1, 3)], body=b"ab"),
        a_frame(3, "g", 1, 5, 1, 0, [(0, 5, 6, 1, 3)], body=b"abcd"),
        a_frame(3, "g", 1, 5, 1, 0, [(0, 5, 6, 1, 0)]),
        a_frame(3, "g", 1, 5, 1, 0, [(0, 5, 5, 1, 1)], body=b"a"),
        a_frame(3, "g", 1, 5, 1, 0, [(0, 4, 5, 1, 1)], body=b"a"),
        a_frame(3, "g", 1, 5, 1, 0, [(1, 5, 1), (1, 5, 1)]),
        a_frame(3, "g", 1, 5, 1, 0, [(1, n, 1) for n in range(5, 6 + ENTRIES_MAX)]),
        a_frame(3, "g", 1, 5, 1, 0, [(2, 5, 1, [2, 1], [])]),
        a_frame(3, "g", 1, 5, 1, 0, [(2, 5, 1, [1, 1], [])]),
        a_frame(3, "g", 1, 5, 1, 0, [(2, 5, 1, [1], [1])]),
        a_frame(8, "g", 1, 0, 0, 0, [1], [3, 2], 0, None),
        a_frame(8, "g", 1, 0, 0, 0, [1], [2], 0, ("machine", 1, 1 << 32)),
        a_frame(8, "g", 1, 0, 0, 0, [1], [2], 0, ("m" * 21, 1, 1)),
        a_frame(10, "g", 1, 5, 1, 0, body=b"x"),
        a_frame(30, 1, 1 << 16),
        a_frame(32, 1, "x" * (SENTENCE_CHARS_MAX + 1)),
        memoryview(b"\0\0\0\x08\x95\x06\xa2\xff\xfe\x01\x01\x00"),
        memoryview(b"\0\0\0\1"),
        memoryview(b"\0\0"),
    ],
)
def test_a_frame_that_breaks_one_rule_is_refused(frame: memoryview) -> None:
    with pytest.raises(MalformedLink):
        DECODER.decode(frame)


def test_marks_and_batches_keep_their_order() -> None:
    entries = (Entry(7, 8, 2, TermOpened()), Entry(8, 11, 2, b"batch"), Entry(12, 13, 2, b"other"))
    message = AppendRequest(
        source=SOURCE, target=TARGET, term=2, prev_end=7, prev_term=1, commit=7, entries=entries
    )
    assert decoded(encode_message("g", message)) == ForGroup("g", message)


def test_the_encoder_writes_the_example_of_the_format_page() -> None:
    entries = (Entry(4, 5, 2, TermOpened()), Entry(5, 8, 2, b"\xaa" * 70))
    message = AppendRequest(
        source=SOURCE, target=TARGET, term=2, prev_end=4, prev_term=1, commit=4, entries=entries
    )
    parts = encode_message("orders-0", message)
    assert b"".join(parts).hex() == (
        "00000064" + "0000001a" + "9703" + "a86f72646572732d30" + "02040104"
        "92" + "93010402" + "9500050802" + "46" + "aa" * 70
    )
    heartbeat = Heartbeat(source=SOURCE, target=TARGET, term=2, commit=8)
    assert len(b"".join(encode_message("orders-0", heartbeat))) == 23


def test_an_older_broker_gets_heartbeats_without_the_matched_index() -> None:
    heartbeat = Heartbeat(source=SOURCE, target=TARGET, term=2, commit=8, low=3, matched=9)
    head = ["orders-0", 2, 8, 3]
    for version, fields in ((1, head), (2, head), (3, [*head, 9])):
        frame = the_frame(encode_message("orders-0", heartbeat, version))
        assert frame == bytes(a_frame(6, *fields))
        known = heartbeat if version >= 3 else replace(heartbeat, matched=0)
        assert decoded(encode_message("orders-0", heartbeat, version)) == ForGroup(
            "orders-0", known
        )
