"""The translation between indexes and offsets, against a plain list with one item per index."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.entry import LogStart, TermOpened, Voters
from kafkaesque.log.marks import Marks
from kafkaesque.types import Index, Offset, Term

WHO = [Voters(voters=(1, 2, 3)), Voters(voters=(1,)), Voters(voters=(1, 4), learners=(5,))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """The contents of one index: a record, or a mark if there is a payload."""

    index: Index
    offset: Offset
    term: Term
    payload: TermOpened | Voters | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The real marks, and the list that they must agree with."""

    start: LogStart
    items: list[Item]
    marks: Marks

    @property
    def end(self) -> Index:
        return self.start.index + len(self.items)

    @property
    def end_offset(self) -> Offset:
        return self.start.offset + sum(item.payload is None for item in self.items)

    def term_at(self, index: Index) -> Term:
        place = index - self.start.index
        if place < 0:
            return self.start.prev_term
        return self.items[place].term if place < len(self.items) else self.last_term

    @property
    def last_term(self) -> Term:
        return self.items[-1].term if self.items else self.start.prev_term


starts = st.builds(
    LogStart,
    offset=st.integers(0, 30),
    marks_before=st.integers(0, 5),
    prev_term=st.integers(0, 3),
    voters=st.sampled_from(WHO),
)
steps = st.one_of(
    st.integers(1, 4),
    st.sampled_from([TermOpened()]),
    st.sampled_from(WHO),
)


def a_log(start: LogStart, contents: list[int | TermOpened | Voters]) -> Log:
    marks = Marks(start)
    items: list[Item] = []
    index, offset, term = start.index, start.offset, start.prev_term
    for step in contents:
        if isinstance(step, int):
            for _ in range(step):
                items.append(Item(index=index, offset=offset, term=term, payload=None))
                index, offset = index + 1, offset + 1
            continue
        if isinstance(step, TermOpened):
            term += 1 + offset % 2  # terms may be skipped
        marks.append(index, term, step)
        items.append(Item(index=index, offset=offset, term=term, payload=step))
        index += 1
    return Log(start=start, items=items, marks=marks)


logs = st.builds(a_log, starts, st.lists(steps, max_size=20))


def agrees(marks: Marks, log: Log, first: Index, stop: Index) -> None:
    """Check that the marks agree with the list for the indexes in [first, stop)."""
    items = [item for item in log.items if first <= item.index < stop]
    for item in items:
        assert marks.offset_at(item.index) == item.offset
        assert marks.term_at(item.index) == item.term
        mark = marks.mark_at(item.index)
        assert (mark and mark.payload) == item.payload
        if mark is not None:
            assert (mark.index, mark.offset, mark.term) == (item.index, item.offset, item.term)
        else:
            assert marks.index_at(item.offset) == item.index
            assert marks.term_of_record(item.offset) == item.term
    assert [mark.index for mark in marks.all()] == [i.index for i in items if i.payload is not None]


@pytest.mark.requirement("CORE-3")
@given(logs)
def test_every_index_and_offset_is_where_the_list_has_it(log: Log) -> None:
    agrees(log.marks, log, log.start.index, log.end)
    assert log.marks.offset_at(log.end) == log.end_offset
    assert log.marks.total == log.end - log.end_offset
    assert len(log.marks) == log.marks.total - log.start.marks_before


@given(logs)
def test_an_offset_converted_to_an_index_converts_back(log: Log) -> None:
    for offset in range(log.start.offset, log.end_offset + 3):
        assert log.marks.offset_at(log.marks.index_at(offset)) == offset


@given(logs)
def test_indexes_keep_the_order_of_offsets(log: Log) -> None:
    indexes = [log.marks.index_at(o) for o in range(log.start.offset, log.end_offset + 1)]
    assert indexes == sorted(set(indexes))
    offsets = [log.marks.offset_at(i) for i in range(log.start.index, log.end + 1)]
    assert offsets == sorted(offsets)


@given(logs)
def test_marks_at_an_offset_precede_the_record_there(log: Log) -> None:
    for mark in log.marks.all():
        assert mark.index < log.marks.index_at(mark.offset)
        assert mark.index > log.marks.index_at(mark.offset - 1) or mark.offset == log.start.offset


@given(logs)
def test_the_next_mark_is_the_first_at_or_after_the_index(log: Log) -> None:
    for index in range(log.start.index, log.end + 1):
        found = log.marks.next_mark(index)
        wanted = [i.index for i in log.items if i.payload is not None and i.index >= index]
        assert (found and found.index) == (wanted[0] if wanted else None)


@given(logs)
def test_a_term_starts_where_it_was_opened_or_where_the_log_starts(log: Log) -> None:
    opened = log.start.index
    for item in log.items:
        if isinstance(item.payload, TermOpened):
            opened = item.index
        assert log.marks.term_start(item.index) == opened


@given(logs)
def test_the_voters_are_those_of_the_start_and_of_every_later_change(log: Log) -> None:
    changes = [(i.index, i.payload) for i in log.items if isinstance(i.payload, Voters)]
    assert log.marks.voters() == [(log.start.index, log.start.voters), *changes]


@given(logs)
def test_a_term_ends_where_the_next_one_was_opened(log: Log) -> None:
    history: list[tuple[Term, Offset]] = []
    if log.start.prev_term:
        history.append((log.start.prev_term, log.start.offset))
    history += [(i.term, i.offset) for i in log.items if isinstance(i.payload, TermOpened)]
    for term in range(log.last_term + 3):
        known = [place for place, (opened, _) in enumerate(history) if opened <= term]
        answer = log.marks.end_of_term(term, log.end_offset)
        if not known:
            assert answer is None
            continue
        is_last = known[-1] == len(history) - 1
        end = log.end_offset if is_last else history[known[-1] + 1][1]
        assert answer == (history[known[-1]][0], end)


@pytest.mark.requirement("LOG-2")
@given(logs, st.data())
def test_a_trimmed_log_keeps_its_terms_its_voters_and_its_numbering(
    log: Log, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(log.start.offset, log.end_offset))
    start = log.marks.start_at(offset, visible_offset=offset)
    trimmed = log.marks.trimmed(start)
    gone = [item for item in log.items if item.offset < offset]
    assert (start.offset, start.visible_offset) == (offset, offset)
    assert start.index == log.start.index + len(gone), "marks at the new start stay in the log"
    assert trimmed.term_at(start.index - 1) == log.term_at(start.index - 1)
    changes = [item.payload for item in gone if isinstance(item.payload, Voters)]
    assert start.voters == (changes or [log.start.voters])[-1]
    agrees(trimmed, log, start.index, log.end)
    assert trimmed.total == log.marks.total
    assert trimmed.offset_at(log.end) == log.end_offset


@given(logs, st.data())
def test_trimming_twice_is_the_same_as_trimming_once_further(log: Log, data: st.DataObject) -> None:
    first = data.draw(st.integers(log.start.offset, log.end_offset))
    second = data.draw(st.integers(first, log.end_offset))
    once = log.marks.trimmed(log.marks.start_at(first, visible_offset=first))
    twice = once.start_at(second, visible_offset=second)
    assert twice == log.marks.start_at(second, visible_offset=second)
    at_once = log.marks.trimmed(log.marks.start_at(second, visible_offset=second))
    assert once.trimmed(twice).all() == at_once.all()


@given(logs, st.data())
def test_a_cut_forgets_the_marks_at_and_after_the_index(log: Log, data: st.DataObject) -> None:
    index = data.draw(st.integers(log.start.index, log.end))
    kept = Log(start=log.start, items=log.items[: index - log.start.index], marks=log.marks)
    log.marks.cut(index)
    agrees(log.marks, kept, log.start.index, index)
    assert log.marks.term_at(index) == kept.last_term
    assert log.marks.offset_at(index) == kept.end_offset


@given(logs, st.data())
def test_after_a_cut_a_lower_term_can_be_opened_at_the_same_index(
    log: Log, data: st.DataObject
) -> None:
    index = data.draw(st.integers(log.start.index, log.end))
    log.marks.cut(index)
    lower = log.term_at(index - 1) + 1
    log.marks.append(index, lower, TermOpened())
    assert log.marks.term_at(index) == lower
    assert log.marks.term_at(index - 1) == log.term_at(index - 1)


@given(logs, st.data())
def test_marks_beyond_the_end_are_those_after_the_last_record_kept(
    log: Log, data: st.DataObject
) -> None:
    end_offset = data.draw(st.integers(log.start.offset, log.end_offset))
    beyond = [i.index for i in log.items if i.payload is not None and i.offset > end_offset]
    assert log.marks.first_beyond(end_offset) == (beyond[0] if beyond else None)


def test_the_terms_before_the_start_are_unknown() -> None:
    marks = Marks(LogStart(offset=10, marks_before=2, prev_term=3, voters=WHO[0]))
    assert marks.term_at(11) == 3
    with pytest.raises(AssertionError, match="forgotten"):
        marks.term_at(10)


def test_a_term_is_never_opened_twice() -> None:
    marks = Marks(LogStart(offset=0, marks_before=0, prev_term=0, voters=WHO[0]))
    marks.append(0, 2, TermOpened())
    with pytest.raises(AssertionError):
        marks.append(1, 2, TermOpened())
