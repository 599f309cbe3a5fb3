"""Requests are cut out of a stream, whatever pieces it arrives in."""

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import MalformedFrame
from kafkaesque.net.frame_reader import GROWTH, LARGE_BYTES, SLAB_BYTES, Receiver
from kafkaesque.server.edge.request_receiver import RequestReceiver
from kafkaesque.server_config import LimitsConfig


def a_receiver(**limits: Any) -> Receiver:
    return RequestReceiver(memoryview(bytearray(SLAB_BYTES)), LimitsConfig(**limits))


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def feed(receiver: Receiver, data: bytes) -> list[memoryview]:
    """Deliver bytes like a transport; its buffer is overwritten afterwards."""
    frames = []
    while data:
        buffer = receiver.buffer()
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        frames += receiver.received(count)
        data = data[count:]
    receiver._slab[:1000] = bytes(1000)
    return frames


@given(
    sizes=st.lists(st.sampled_from([2, 9, 100, LARGE_BYTES, LARGE_BYTES + 1, 300_000]), max_size=5),
    cuts=st.lists(st.integers(1, 100_000), min_size=1, max_size=8),
)
def test_any_pieces_give_the_same_requests(sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes(2) + bytes([number + 1]) * (size - 2) for number, size in enumerate(sizes)]
    data = b"".join(map(framed, bodies))
    receiver = a_receiver()
    frames: list[memoryview] = []
    for cut in [*cuts, len(data)]:
        frames += feed(receiver, data[:cut])
        data = data[cut:]
    assert [bytes(frame) for frame in frames] == bodies
    assert not receiver.is_within_frame


def test_requests_are_writable_copies() -> None:
    receiver = a_receiver()
    small, large = feed(receiver, framed(bytes(LARGE_BYTES)) + framed(bytes(LARGE_BYTES + 1)))
    assert not small.readonly
    assert not large.readonly


def test_a_large_request_keeps_its_bytes_while_others_arrive() -> None:
    receiver = a_receiver()
    (first,) = feed(receiver, framed(bytes(2) + b"a" * 500_000))
    feed(receiver, framed(bytes(2) + b"b" * 500_000))
    assert set(first[2:]) == {ord("a")}


def test_a_buffer_grows_with_the_received_bytes() -> None:
    receiver = a_receiver()
    feed(receiver, struct.pack(">i", 50 << 20) + bytes(1000))
    assert len(receiver.buffer()) < GROWTH * 1000
    feed(receiver, bytes(100_000))
    assert len(receiver.buffer()) <= GROWTH * 101_000


@pytest.mark.parametrize(
    "data",
    [struct.pack(">i", -1), struct.pack(">i", 101), struct.pack(">ih", 51, 3)],
    ids=["negative", "over the limit", "over the limit of other APIs"],
)
def test_a_length_out_of_range_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFrame):
        feed(a_receiver(frame_bytes_max=100, request_bytes_max=50), data)


def test_produce_has_a_separate_limit() -> None:
    receiver = a_receiver(frame_bytes_max=100, request_bytes_max=50)
    assert len(feed(receiver, framed(bytes(100)))) == 1
