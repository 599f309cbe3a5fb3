"""Parts of frames on their way to a socket."""

from kafkaesque.net.frame_writer import SMALL_PART_BYTES, joined


def test_small_neighbours_are_joined_and_large_parts_are_left_as_they_are() -> None:
    large = bytes(SMALL_PART_BYTES)
    out = joined([b"a", b"b", large, b"c", memoryview(b"d")])
    assert out == [b"ab", large, b"cd"]
    assert out[1] is large


def test_no_parts_give_no_output() -> None:
    assert joined([]) == []
