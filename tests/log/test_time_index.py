"""The time index as bytes and as a search."""

from kafkaesque.log.time_index import NO_TIMESTAMP, TimeIndex

# 1700000000000 at relative offset 0, 1 ms later at 4, 256 ms later at 9.
BYTES = bytes.fromhex(
    "0000018bcfe56800 00000000  0000018bcfe56801 00000004  0000018bcfe56900 00000009"
)
FIRST = 1_700_000_000_000


def test_the_index_has_the_documented_format() -> None:
    index = TimeIndex()
    for timestamp_ms, relative in ((FIRST, 0), (FIRST + 1, 4), (FIRST + 256, 9)):
        index.add(timestamp_ms, relative)
    assert index.encode(0) == BYTES
    assert index.encode(1) == BYTES[12:]
    again = TimeIndex.decode(BYTES)
    assert (again.timestamps, again.relatives) == (index.timestamps, index.relatives)


def test_the_ceiling_is_the_first_entry_not_earlier() -> None:
    index = TimeIndex.decode(BYTES)
    ceilings = {0: 0, FIRST: 0, FIRST + 1: 1, FIRST + 2: 2, FIRST + 256: 2, FIRST + 257: 3}
    assert {time: index.ceiling(time) for time in ceilings} == ceilings


def test_a_decreasing_entry_ends_the_index() -> None:
    for bad in (
        "0000000000000000 00000000",
        "0000018bcfe56801 00000005",
        "0000018bcfe56802 00000004",
        "ffffffffffffffff 00000005",
    ):
        assert len(TimeIndex.decode(BYTES[:24] + bytes.fromhex(bad) + BYTES[24:])) == 2


def test_a_partial_entry_is_ignored() -> None:
    for length in range(len(BYTES)):
        assert len(TimeIndex.decode(BYTES[:length])) == length // 12


def test_an_empty_index_finds_no_time() -> None:
    assert TimeIndex().last_timestamp == NO_TIMESTAMP
