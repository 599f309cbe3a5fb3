"""Splitting a stream into frames."""

import itertools
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import MalformedFrame
from kafkaesque.wire.frame import SMALL_FRAME_BYTES, FrameSplitter, frame

bodies = st.lists(st.binary(max_size=40), max_size=8)


def stream(frames: list[bytes]) -> bytes:
    return b"".join(piece for body in frames for piece in frame([body]))


@given(bodies, st.lists(st.integers(0, 400), max_size=12))
def test_frames_are_the_same_however_the_stream_is_cut(
    frames: list[bytes], cuts: list[int]
) -> None:
    data = stream(frames)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    splitter = FrameSplitter(frame_bytes_max=40)
    found: list[bytes] = []
    for start, end in itertools.pairwise(places):
        found += map(bytes, splitter.feed(data[start:end]))
    assert found == frames
    assert [*map(bytes, splitter.feed(stream([b"the next"])))] == [b"the next"]


@given(bodies)
def test_frames_can_be_fed_byte_by_byte(frames: list[bytes]) -> None:
    splitter = FrameSplitter(frame_bytes_max=40)
    found = [bytes(body) for byte in stream(frames) for body in splitter.feed(bytes([byte]))]
    assert found == frames


def test_a_whole_frame_is_a_view_of_the_input() -> None:
    data = bytearray(stream([b"abc", b"def"]))
    first, second = FrameSplitter(frame_bytes_max=3).feed(data)
    data[4] = ord("x")
    assert (bytes(first), bytes(second)) == (b"xbc", b"def")


def test_a_frame_that_arrived_in_pieces_stays_unchanged() -> None:
    splitter = FrameSplitter(frame_bytes_max=10)
    data = bytearray(stream([b"abcd"]))
    assert splitter.feed(data[:6]) == []
    (whole,) = splitter.feed(data[6:])
    splitter.feed(stream([b"other"]))
    assert bytes(whole) == b"abcd"


@pytest.mark.parametrize("length", [b"\0\0\0\x0b", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"])
@pytest.mark.parametrize("cut", [0, 2, 4])
def test_a_frame_that_is_too_long_or_negative_is_refused(length: bytes, cut: int) -> None:
    splitter = FrameSplitter(frame_bytes_max=10)
    with pytest.raises(MalformedFrame, match="at most 10"):
        for piece in (length[:cut], length[cut:]):
            splitter.feed(piece)


def test_a_claimed_length_allocates_no_memory() -> None:
    splitter = FrameSplitter(frame_bytes_max=2**30)
    tracemalloc.start()
    splitter.feed(b"\x3f\xff\xff\xff" + b"x")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000


def test_a_small_frame_is_one_piece() -> None:
    assert frame([b"head", memoryview(b"records")]) == [b"\0\0\0\x0bheadrecords"]


def test_a_frame_counts_all_its_pieces_and_copies_none() -> None:
    records = memoryview(bytes(SMALL_FRAME_BYTES))
    pieces = frame([b"head", records])
    assert bytes(pieces[0]) == (4 + SMALL_FRAME_BYTES).to_bytes(4, "big")
    assert pieces[2] is records
