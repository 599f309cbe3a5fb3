"""Which dead letters were sent back."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.patterns.marks import Marks, decode, encode

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=20)


@given(RANGES)
def test_marks_contain_exactly_what_was_added_in_as_few_ranges_as_possible(
    ranges: list[tuple[int, int]],
) -> None:
    marks = Marks()
    model: set[int] = set()
    for start, end in ranges:
        marks.add(start, end)
        model |= set(range(start, end))
    assert {offset for offset in range(70) if offset in marks} == model
    found = marks.ranges()
    assert all(end < start for (_, end), (start, _) in pairwise(found))
    assert decode(encode(found)) == found


@given(st.binary(max_size=40) | st.none())
def test_any_value_can_be_read(value: bytes | None) -> None:
    for start, end in decode(value):
        assert start >= 0 and end >= 0
