"""Large frames in pieces are put together again; other pieces are refused."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import BadConfiguration
from kafkaesque.net.codec import Call, Decoder, Received, Reply, encode_exchange
from kafkaesque.net.config import PIECE_BYTES_MAX, LinkConfig
from kafkaesque.net.errors import MalformedLink
from kafkaesque.net.heads import PieceHead
from kafkaesque.net.link_frame import frame
from kafkaesque.net.pieces import PIECE_TAG, Cutter, Gathering
from kafkaesque.types import Buffer

FRAME_BYTES_MAX = 4 << 20


def a_decoder() -> Decoder:
    return Decoder(1, 2, Gathering(FRAME_BYTES_MAX, claimed_bytes_max=0))


def without_length(parts: list[Buffer]) -> memoryview:
    return memoryview(bytearray(b"".join(parts)))[4:]


def a_piece(size: int, position: int, body: bytes) -> memoryview:
    return without_length(frame((PIECE_TAG, size, position), [body]))


def cut(parts: list[Buffer], piece_bytes: int) -> list[memoryview]:
    cutter, pieces = Cutter(parts), []
    while not cutter.is_done:
        pieces.append(without_length(cutter.next(piece_bytes)))
    return pieces


@given(
    data=st.binary(min_size=1, max_size=3_000),
    piece_bytes=st.integers(1, 400),
    between=st.integers(0, 3),
)
def test_a_frame_is_put_together_with_other_frames_between_its_pieces(
    data: bytes, piece_bytes: int, between: int
) -> None:
    decoder = a_decoder()
    reply = without_length(encode_exchange(Reply(number=7, data=b"small")))
    *pieces, last = cut(encode_exchange(Call(number=1, kind=2, data=data)), piece_bytes)
    for piece in pieces:
        assert decoder.decode(piece) is None
        for _ in range(between):
            assert isinstance(decoder.decode(reply), Reply)
    call = decoder.decode(last)
    assert isinstance(call, Call)
    assert (call.number, call.kind, bytes(call.data)) == (1, 2, data)
    assert not memoryview(call.data).readonly, "a batch is stamped in place"


def test_one_frame_follows_another() -> None:
    decoder = a_decoder()
    for number in range(3):
        parts = encode_exchange(Call(number=number, kind=2, data=bytes(1_000 * number)))
        *pieces, last = cut(parts, 300)
        assert [decoder.decode(piece) for piece in pieces] == [None] * len(pieces)
        call = decoder.decode(last)
        assert isinstance(call, Call)
        assert (call.number, len(call.data)) == (number, 1_000 * number)


def test_a_link_without_pieces_refuses_them() -> None:
    with pytest.raises(MalformedLink, match="does not support"):
        Decoder(1, 2).decode(a_piece(10, 0, b"12345"))


REFUSED = {
    "empty": ([(10, 0, b"")], "a piece of 0 bytes, 1 to"),
    "too long": ([(FRAME_BYTES_MAX, 0, bytes(PIECE_BYTES_MAX + 1))], "a piece of 1048577 bytes"),
    "of too large a frame": ([(FRAME_BYTES_MAX + 1, 0, b"1")], "the limit is 4194304"),
    "beyond the end": ([(10, 0, b"12345"), (10, 5, b"123456")], "ends at byte 11 of a frame of 10"),
    "not from the beginning": ([(10, 5, b"12345")], "byte 5 of 10 where byte 0 of another frame"),
    "twice": ([(10, 0, b"12345"), (10, 0, b"12345")], "byte 0 of 10 where byte 5 of 10 was due"),
    "with a gap": ([(10, 0, b"12"), (10, 3, b"4")], "byte 3 of 10 where byte 2 of 10 was due"),
    "of another frame": ([(10, 0, b"12"), (12, 2, b"3")], "byte 2 of 12 where byte 2 of 10"),
    "after the end": ([(8, 0, b"\0\0\0\1\xc012"), (8, 7, b"3"), (8, 8, b"4")], "cannot be read"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_pieces_are_refused_with_one_sentence(name: str) -> None:
    pieces, sentence = REFUSED[name]
    decoder = a_decoder()
    with pytest.raises(MalformedLink, match=sentence):
        for size, position, body in pieces:
            decoder.decode(a_piece(size, position, body))


def test_a_piece_within_pieces_is_refused() -> None:
    decoder = a_decoder()
    inner = frame((PIECE_TAG, 10, 0), [b"12345"])
    *pieces, last = cut(inner, 5)
    for piece in pieces:
        decoder.decode(piece)
    with pytest.raises(MalformedLink, match="a piece within pieces"):
        decoder.decode(last)


def test_memory_is_allocated_for_received_bytes_and_not_for_a_claimed_length() -> None:
    gathering = Gathering(1 << 30, claimed_bytes_max=1_000)
    gathering.take(PieceHead(1 << 30, 0), memoryview(bytes(5_000)))
    assert gathering._buffer is not None
    assert len(gathering._buffer) == 5_000
    gathering.take(PieceHead(1 << 30, 5_000), memoryview(bytes(1)))
    assert len(gathering._buffer) == 20_000


@given(
    pieces=st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 40), st.binary(max_size=20)), max_size=8
    )
)
def test_any_pieces_raise_malformed_link_or_nothing(
    pieces: list[tuple[int, int, bytes]],
) -> None:
    decoder = a_decoder()
    try:
        for size, position, body in pieces:
            assert isinstance(decoder.decode(a_piece(size, position, body)), Received | None)
    except MalformedLink as refused:
        assert str(refused)


def test_the_tag_is_that_of_the_header() -> None:
    packed = msgspec.msgpack.encode(PieceHead(5, 0))
    assert msgspec.msgpack.decode(packed)[0] == PIECE_TAG


@pytest.mark.parametrize("piece_bytes", [0, PIECE_BYTES_MAX + 1])
def test_a_piece_size_that_no_peer_would_accept_is_refused(piece_bytes: int) -> None:
    with pytest.raises(BadConfiguration, match="piece_bytes is"):
        LinkConfig(piece_bytes=piece_bytes)
