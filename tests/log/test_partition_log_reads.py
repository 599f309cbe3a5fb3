"""Readers see the log as it will be, whether it is on disk, in memory or about to be cut."""

import pytest

from kafkaesque.entry import TermOpened
from kafkaesque.types import Index
from tests.log.stores import (
    ALL_BYTES,
    GROUP,
    THEM,
    US,
    ANode,
    EntryDump,
    a_start,
    append,
    batch,
    dump,
    everything,
    opened,
    segment_bytes,
    voters,
)


def firsts(entries: list[EntryDump]) -> list[Index]:
    return [entry[0] for entry in entries]


@pytest.mark.requirement("CORE-3")
def test_entries_come_in_order_across_marks_and_segments() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 4, count=3)
    log.append([opened(log, 2)])
    append(log, 1)
    log.append([voters(log)])
    append(log, 6, count=3)
    node.settle()
    entries = everything(log)
    assert firsts(entries) == [0, 1, 4, 7, 10, 13, 14, 15, 16, 19, 22, 25, 28, 31]
    assert [entry[1] for entry in entries] == [*firsts(entries)[1:], log.end]
    assert [entry[2] for entry in entries] == [1] * 5 + [2] * 9
    assert entries[7][3] == THEM
    assert len(list(log.segments.each_info())) > 2


def test_reading_may_start_at_every_boundary() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3, count=2)
    log.append([opened(log, 2)])
    append(log, 3, count=2)
    node.settle()
    entries = everything(log)
    for place, entry in enumerate(entries):
        assert dump(log.entries(entry[0], ALL_BYTES)) == entries[place:]
    assert log.entries(log.end, ALL_BYTES) == []


def test_a_small_limit_still_gives_one_entry_and_a_larger_one_gives_more() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 5)
    node.settle()
    size = log.entries(1, 1)[0].size
    assert [len(log.entries(1, limit)) for limit in (1, size, 2 * size, 3 * size)] == [1, 1, 2, 3]
    assert len(log.entries(0, 1)) == 1


def test_unwritten_entries_are_read_from_memory() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([opened(log, 2)])
    append(log, 2, count=2)
    written = segment_bytes(node.disk)
    before = everything(log)
    assert firsts(before) == [0, 1, 2, 3, 5]
    assert [log.boundary(index) for index in range(3, 8)] == [3, 3, 5, 5, 7]
    node.settle()
    assert segment_bytes(node.disk) > written
    assert everything(log) == before


def test_a_boundary_is_the_start_of_the_batch_that_covers_the_index() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 2, count=3)
    log.append([opened(log, 2)])
    append(log, 1, count=2)
    node.settle()
    boundaries = [log.boundary(index) for index in range(log.end + 2)]
    assert boundaries == [0, 1, 1, 1, 4, 4, 4, 7, 8, 8, 10, 11]


def test_a_waiting_cut_hides_what_it_will_cut() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 4)
    node.settle()
    append(log, 1)
    node.settle()  # the synced point is above the cut: the cut must wait
    size = segment_bytes(node.disk)
    log.truncate(3)
    assert segment_bytes(node.disk) == size
    assert firsts(everything(log)) == [0, 1, 2]
    assert log.entries(3, ALL_BYTES) == []
    assert log.end_offset == 2
    assert [log.boundary(index) for index in (2, 3, 4)] == [2, 3, 4]
    log.append([opened(log, 2)])
    append(log, 1)
    seen = everything(log)
    assert [entry[2] for entry in seen] == [1, 1, 1, 2, 2]
    node.settle()
    assert everything(log) == seen


def test_a_waiting_install_hides_everything_before_it() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 4)
    node.settle()
    log.install(a_start(2, 1, 7))
    assert segment_bytes(node.disk) > 0
    assert everything(log) == []
    append(log, 1)
    seen = everything(log)
    assert [(entry[0], entry[2]) for entry in seen] == [(3, 7)]
    node.settle()
    assert everything(log) == seen


def test_a_hole_is_skipped() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([batch(log, hole=5)])
    log.append([opened(log, 2)])
    node.settle()
    assert firsts(everything(log)) == [0, 1, 7, 8]
    assert firsts(dump(log.entries(2, ALL_BYTES))) == [7, 8]
    assert [log.boundary(index) for index in (2, 5, 7)] == [2, 5, 7]
    assert log.index_at(log.offset_at(7)) == 7


def test_a_hole_that_ends_at_a_mark_is_skipped_too() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([opened(log, 2)._replace(first=6, end=7)])
    append(log, 1)
    node.settle()
    assert firsts(everything(log)) == [0, 1, 6, 7]
    assert firsts(dump(log.entries(2, ALL_BYTES))) == [6, 7]
    wanted = everything(log)
    node.crash()
    assert everything(node.store.open_log(GROUP)) == wanted


def test_a_hole_before_an_unwritten_batch_is_skipped() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([opened(log, 2)])
    log.append([batch(log, hole=5)])
    assert firsts(everything(log)) == [0, 1, 2, 8]


def test_an_index_in_a_hole_before_an_unwritten_batch_is_a_boundary() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([opened(log, 2)])
    log.append([batch(log, hole=5)])
    assert log.boundary(5) == 5


def test_a_replacement_batch_is_read_while_the_cut_waits() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 4)
    node.settle()
    append(log, 1)
    node.settle()
    log.truncate(2)
    entry = batch(log, fill=99)
    log.append([entry])
    assert everything(log)[-1:] == dump([entry])


def test_a_hole_behind_a_waiting_cut_does_not_reveal_what_was_cut() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 4)
    node.settle()
    append(log, 1)
    node.settle()
    log.truncate(2)
    log.append([batch(log, hole=3)])
    assert firsts(everything(log)) == [0, 1, 5]


@pytest.mark.requirement("CORE-3")
def test_indexes_offsets_and_terms_translate_as_the_marks_say() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 2)
    log.append([opened(log, 3)])
    log.append([voters(log)])
    append(log, 2)
    assert (log.end, log.end_offset) == (7, 4)
    assert [log.index_at(offset) for offset in range(5)] == [1, 2, 5, 6, 7]
    assert [log.offset_at(index) for index in range(8)] == [0, 0, 1, 2, 2, 2, 3, 4]
    assert [log.term_at(index) for index in range(7)] == [1, 1, 1, 3, 3, 3, 3]
    assert [log.term_start(index) for index in (2, 3, 6)] == [0, 3, 3]
    assert log.voters() == [(0, US), (4, THEM)]
    assert [log.end_of_term(term) for term in range(5)] == [None, (1, 2), (1, 2), (3, 4), (3, 4)]
    assert isinstance(log.entries(3, 1)[0].payload, TermOpened)
