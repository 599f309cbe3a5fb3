"""How far a partition is done, whatever the order in which its messages finish."""

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.patterns.prefix import DonePrefix


@given(st.lists(st.integers(0, 200), unique=True, max_size=40).map(sorted), st.randoms())
def test_the_position_is_the_first_offset_that_is_not_done(
    offsets: list[int], chance: object
) -> None:
    prefix = DonePrefix()
    for offset in offsets:
        prefix.begin(offset)
    left = list(offsets)
    order = list(offsets)
    chance.shuffle(order)  # type: ignore[attr-defined]  # a random.Random
    for offset in order:
        assert prefix.position == min(left)
        prefix.finish(offset)
        left.remove(offset)
    assert prefix.position == (offsets[-1] + 1 if offsets else None)
    assert len(prefix) == 0


def test_there_is_no_position_before_the_first_message() -> None:
    assert DonePrefix().position is None


def test_a_late_message_holds_the_position_back() -> None:
    prefix = DonePrefix()
    for offset in (5, 6, 9):
        prefix.begin(offset)
    prefix.finish(9)
    prefix.finish(6)
    assert prefix.position == 5
    prefix.finish(5)
    assert prefix.position == 10
