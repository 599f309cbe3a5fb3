"""The offset index as bytes and as a search."""

from kafkaesque.log.offset_index import OffsetIndex

# Offsets 3, 10 and 300 relative to the base begin at bytes 100, 4200 and 70000.
BYTES = bytes.fromhex("00000003 00000064  0000000a 00001068  0000012c 00011170")


def entries(index: OffsetIndex) -> list[tuple[int, int]]:
    return list(zip(index.relatives, index.positions, strict=True))


def test_the_index_has_the_documented_format() -> None:
    index = OffsetIndex()
    for relative, position in ((3, 100), (10, 4200), (300, 70000)):
        index.add(relative, position)
    assert index.encode(0) == BYTES
    assert index.encode(2) == BYTES[16:]
    assert entries(OffsetIndex.decode(BYTES, 80000)) == entries(index)


def test_the_floor_is_the_last_entry_not_beyond_the_offset() -> None:
    index = OffsetIndex.decode(BYTES, 80000)
    floors = {0: -1, 2: -1, 3: 0, 9: 0, 10: 1, 299: 1, 300: 2, 99999: 2}
    assert {relative: index.floor(relative) for relative in floors} == floors


def test_a_decreasing_entry_ends_the_index() -> None:
    for bad in ("00000000 00000000", "0000000a 00001069", "0000000b 00001068", "80000000 80000000"):
        data = BYTES[:16] + bytes.fromhex(bad) + BYTES[16:]
        assert len(OffsetIndex.decode(data, 80000)) == 2


def test_an_entry_beyond_the_log_ends_the_index() -> None:
    assert len(OffsetIndex.decode(BYTES, 70001)) == 3
    assert len(OffsetIndex.decode(BYTES, 70000)) == 2
    assert len(OffsetIndex.decode(BYTES, 0)) == 0


def test_a_partial_entry_is_ignored() -> None:
    for length in range(len(BYTES)):
        assert len(OffsetIndex.decode(BYTES[:length], 80000)) == length // 8


def test_no_entry_names_the_start_of_the_segment() -> None:
    assert len(OffsetIndex.decode(bytes(8) + BYTES, 80000)) == 0
    assert OffsetIndex().last_position == 0
