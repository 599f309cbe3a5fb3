"""Frames are cut out of a stream, whatever pieces it arrives in."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import MalformedFrame
from kafkaesque.net.frame_reader import GROWTH, LARGE_BYTES, SLAB_BYTES, Receiver

MEBIBYTE = 1 << 20


def a_receiver(frame_bytes_max: int = MEBIBYTE) -> Receiver:
    return Receiver(memoryview(bytearray(SLAB_BYTES)), frame_bytes_max)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(receiver: Receiver, data: bytes) -> list[bytes]:
    frames = []
    while data:
        buffer = receiver.buffer()
        count = min(len(buffer), len(data))
        assert count > 0
        buffer[:count] = data[:count]
        frames += [bytes(frame) for frame in receiver.received(count)]
        data = data[count:]
    return frames


@given(
    sizes=st.lists(st.sampled_from([0, 1, 100, LARGE_BYTES + 1, 300_000]), max_size=5),
    cuts=st.lists(st.integers(1, 9) | st.integers(1, 100_000), min_size=1, max_size=8),
    claimed=st.sampled_from([0, MEBIBYTE]),
)
def test_any_pieces_give_the_same_frames(sizes: list[int], cuts: list[int], claimed: int) -> None:
    bodies = [bytes([number]) * size for number, size in enumerate(sizes)]
    data = b"".join(map(framed, bodies))
    receiver = a_receiver()
    receiver.claimed_bytes_max = claimed
    frames = []
    for cut in [*cuts, len(data)]:
        frames += feed(receiver, data[:cut])
        data = data[cut:]
    assert frames == bodies


def test_a_trusted_peers_frame_length_is_used_to_avoid_copies() -> None:
    start = struct.pack(">i", MEBIBYTE) + bytes(1000)
    doubting, trusting = a_receiver(), a_receiver()
    trusting.claimed_bytes_max = MEBIBYTE
    feed(doubting, start)
    feed(trusting, start)
    assert len(doubting.buffer()) == (GROWTH - 1) * 1000
    assert len(trusting.buffer()) == MEBIBYTE - 1000


@pytest.mark.parametrize("length", [-1, MEBIBYTE + 1])
def test_a_length_out_of_range_is_refused(length: int) -> None:
    with pytest.raises(MalformedFrame):
        feed(a_receiver(), struct.pack(">i", length))
