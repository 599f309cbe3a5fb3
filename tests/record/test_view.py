import struct

import pytest

from kafkaesque.record.build import build_batch
from kafkaesque.record.errors import CorruptBatch, MalformedBatch, UnsupportedBatch
from kafkaesque.record.view import (
    HEADER_BYTES,
    BatchView,
    first_damage,
    peek_size,
    split_batches,
    stamp,
)
from tests.record.builders import FIELDS, GOLDEN, GOLDEN_RECORDS, with_field


def test_the_golden_batch_is_whole() -> None:
    view = BatchView(GOLDEN)
    view.check()
    assert (view.base_offset, view.last_offset, view.end_offset) == (1000, 1001, 1002)
    assert (view.term, view.record_count, view.size) == (7, 2, 84)


@pytest.mark.parametrize("size", range(len(GOLDEN)))
def test_a_truncated_batch_is_malformed(size: int) -> None:
    with pytest.raises(MalformedBatch):
        BatchView(GOLDEN[:size])


@pytest.mark.parametrize("position", range(21, len(GOLDEN)))
def test_a_change_to_any_byte_under_the_checksum_is_noticed(position: int) -> None:
    damaged = bytearray(GOLDEN)
    damaged[position] ^= 0x10
    with pytest.raises(CorruptBatch):
        BatchView(damaged).check_crc()


@pytest.mark.parametrize("magic", [-1, 0, 1, 3])
def test_other_formats_are_unsupported(magic: int) -> None:
    with pytest.raises(UnsupportedBatch):
        BatchView(with_field(GOLDEN, "magic", magic))


@pytest.mark.parametrize("length", [-1, 0, 48, 73, (1 << 31) - 1, -(1 << 31)])
def test_an_impossible_length_is_malformed(length: int) -> None:
    changed = bytearray(GOLDEN)
    struct.pack_into(">i", changed, FIELDS["length"][0], length)
    with pytest.raises(MalformedBatch):
        BatchView(changed)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("record_count", 0),
        ("record_count", -1),
        ("record_count", 3),
        ("record_count", 1),
        ("last_offset_delta", 0),
        ("last_offset_delta", -1),
        ("last_offset_delta", (1 << 31) - 1),
    ],
)
def test_a_producers_count_must_match_its_offsets(field: str, value: int) -> None:
    with pytest.raises(MalformedBatch):
        BatchView(with_field(GOLDEN, field, value)).check()


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_codec_is_unsupported(codec: int) -> None:
    with pytest.raises(UnsupportedBatch):
        BatchView(with_field(GOLDEN, "attributes", codec)).check()


def test_stamping_keeps_the_checksum_correct() -> None:
    batch = bytearray(GOLDEN)
    stamp(batch, 123_456_789_012, 99)
    view = BatchView(batch)
    view.check()
    assert (view.base_offset, view.term) == (123_456_789_012, 99)
    assert peek_size(batch) == (123_456_789_012, len(GOLDEN))


def test_consecutive_batches_are_split() -> None:
    second = build_batch(GOLDEN_RECORDS, base_offset=900)
    views = list(split_batches(GOLDEN + bytes(second)))
    assert [bytes(view.data) for view in views] == [GOLDEN, bytes(second)]


def test_a_truncated_last_batch_is_malformed() -> None:
    with pytest.raises(MalformedBatch):
        list(split_batches(GOLDEN + GOLDEN[:HEADER_BYTES]))


TERM = BatchView(GOLDEN).term


def three(*, gap: int = 0) -> bytearray:
    """Three batches as in a log, from offset 100 on; there is a gap before the second."""
    count = BatchView(GOLDEN).last_offset_delta + 1
    batches = [bytearray(GOLDEN) for _ in range(3)]
    for place, batch in enumerate(batches):
        stamp(batch, 100 + place * count + (gap if place else 0), TERM)
    return bytearray().join(batches)


def place_of_damage(data: bytes | bytearray, *, has_holes: bool = False) -> int | None:
    found = first_damage(data, 100, lambda _: TERM, has_holes=has_holes)
    return None if found is None else found[0]


def test_whole_batches_have_no_damage() -> None:
    assert place_of_damage(b"") is None
    assert place_of_damage(three()) is None


@pytest.mark.parametrize("position", range(len(GOLDEN)))
def test_damage_is_located_in_its_batch(position: int) -> None:
    damaged = three()
    damaged[len(GOLDEN) + position] ^= 0x40
    assert place_of_damage(damaged) == len(GOLDEN)


def test_a_gap_is_damage_unless_the_log_has_holes() -> None:
    assert place_of_damage(three(gap=5)) == len(GOLDEN)
    assert place_of_damage(three(gap=5), has_holes=True) is None
    assert place_of_damage(three(gap=-1), has_holes=True) == len(GOLDEN)


def test_the_first_batch_covers_the_requested_offset() -> None:
    last = BatchView(GOLDEN).last_offset_delta
    for offset, is_good in ((99, False), (100, True), (100 + last, True), (101 + last, False)):
        found = first_damage(three(), offset, lambda _: TERM)
        assert (found is None) == is_good


@pytest.mark.parametrize("size", range(1, len(GOLDEN)))
def test_a_truncated_batch_is_damaged(size: int) -> None:
    whole = bytes(three())
    assert place_of_damage(whole[: len(GOLDEN) + size]) == len(GOLDEN)
