"""One log in two files: in which order they are written, and what is durable when."""

import pytest

from kafkaesque.entry import LogStart
from kafkaesque.log.journal_records import MarksCut, SyncedTo
from kafkaesque.sim.disk import CrashPolicy
from tests.log.stores import (
    GROUP,
    THEM,
    US,
    ANode,
    a_start,
    append,
    batch,
    everything,
    kinds_on_disk,
    opened,
    records_on_disk,
    segment_bytes,
    voters,
)

# --- appending: rules (a) and (d) --------------------------------------------------------------


def test_batches_are_written_at_once_and_stable_after_the_round() -> None:
    node = ANode()
    log = node.a_log()
    reports: list[int] = []
    log.on_stable = reports.append
    entry = batch(log, 3)
    log.append([entry])
    assert segment_bytes(node.disk) == entry.size
    assert (log.end, log.stable, reports) == (4, 1, [])
    node.begin_round()
    assert log.stable == 1
    node.end_round()
    assert (log.stable, reports) == (4, [4])


def test_a_batch_appended_during_a_round_is_not_stable_when_it_ends() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.begin_round()
    append(log, 1)
    node.end_round()
    assert (log.end, log.stable) == (3, 2)
    node.end_round()
    assert log.stable == 3


@pytest.mark.requirement("LOG-4")
def test_a_mark_holds_back_later_batches_until_it_is_durable() -> None:
    node = ANode()
    log = node.a_log()
    log.append([opened(log, 2)])
    append(log, 2)
    assert log.end == 4
    assert segment_bytes(node.disk) == 0
    node.begin_round()
    assert kinds_on_disk(node.disk)[-1] == "TermMarked"
    assert segment_bytes(node.disk) == 0
    node.end_round()
    assert log.stable == 2
    assert segment_bytes(node.disk) > 0
    node.settle()
    assert log.stable == 4


def test_a_mark_added_during_a_round_waits_for_the_next_one() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.begin_round()
    log.append([opened(log, 2)])
    append(log, 1)
    written = segment_bytes(node.disk)
    node.end_round()
    assert segment_bytes(node.disk) == written, "that round did not include the mark"
    node.end_round()
    assert segment_bytes(node.disk) > written


def test_a_mark_inside_an_append_holds_back_only_what_follows_it() -> None:
    node = ANode()
    log = node.a_log()
    before = batch(log)
    mark = opened(log, 2)._replace(first=before.end, end=before.end + 1)
    later = batch(log, hole=1, term=2)
    later_view = later._replace(first=mark.end, end=mark.end + 1)
    log.append([before, mark, later_view])
    assert segment_bytes(node.disk) == before.size
    node.begin_round()
    node.end_round()
    assert log.stable == mark.end
    assert segment_bytes(node.disk) > before.size
    node.settle()
    assert [e[2] for e in everything(log)] == [1, 1, 2, 2]


def test_consecutive_marks_share_a_round() -> None:
    node = ANode()
    log = node.a_log()
    mark = opened(log, 2)
    change = voters(log)._replace(first=mark.end, end=mark.end + 1, term=2)
    log.append([mark, change])
    node.begin_round()
    node.end_round()
    assert log.stable == log.end == 3
    assert log.voters() == [(0, US), (2, THEM)]


def test_a_new_log_is_stable_only_after_its_first_round_and_accepts_no_batch_before() -> None:
    node = ANode()
    log = node.store.create_log(GROUP, US)
    assert log.stable < log.start.index
    log.append([opened(log, 1)])
    append(log, 1)
    assert segment_bytes(node.disk) == 0
    node.settle()
    assert log.stable == log.end == 2


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("policy", CrashPolicy)
def test_what_was_reported_stable_survives_a_crash_whichever_round_it_was(
    policy: CrashPolicy,
) -> None:
    for rounds in range(12):
        node = ANode(seed=rounds)
        log = node.a_log()
        append(log, 2)
        log.append([opened(log, 2)])
        append(log, 2)
        log.append([voters(log)])
        append(log, 1)
        node.store.flusher.kick()
        for _ in range(rounds):
            if node.later.waiting:
                node.end_round()
        stable = [entry for entry in everything(log) if entry[1] <= log.stable]
        node.crash(policy)
        found = everything(node.store.open_log(GROUP))
        assert found[: len(stable)] == stable


# --- truncating: rule (b) ----------------------------------------------------------------------


@pytest.mark.requirement("LOG-4")
def test_a_cut_lowers_the_synced_point_then_cuts_segments_then_the_journal_then_writes() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 2)
    log.append([opened(log, 2)])
    append(log, 2)
    node.settle()
    append(log, 1)
    node.settle()  # now the journal says that five batches are synced
    full, records = segment_bytes(node.disk), len(records_on_disk(node.disk))
    assert log.stable == 7

    log.truncate(3)
    log.append([opened(log, 3)])
    append(log, 1)
    assert (log.end, log.stable) == (5, 3)
    node.begin_round()
    point = records_on_disk(node.disk)[-1]
    assert isinstance(point, SyncedTo)
    assert point.end_offset == 2
    assert segment_bytes(node.disk) == full, "the lower point is durable before the cut"
    node.end_round()
    cut = segment_bytes(node.disk)
    assert cut < full
    assert "MarksCut" not in kinds_on_disk(node.disk, records)
    node.end_round()
    assert records_on_disk(node.disk)[-1] == MarksCut(group=GROUP, index=3)
    assert segment_bytes(node.disk) == cut
    node.end_round()
    assert kinds_on_disk(node.disk)[-1] == "TermMarked"
    assert segment_bytes(node.disk) == cut, "nothing is written before the journal's cut is durable"
    assert log.stable == 3
    node.settle()
    assert segment_bytes(node.disk) > cut
    assert log.stable == log.end == 5


def test_a_cut_after_the_synced_point_begins_at_once() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3)
    size = segment_bytes(node.disk)
    log.truncate(2)
    assert segment_bytes(node.disk) == size // 3
    node.settle()
    assert log.stable == log.end == 2


def test_stable_never_exceeds_a_cut_in_progress() -> None:
    node = ANode()
    log = node.a_log()
    reports: list[int] = []
    append(log, 4)
    node.begin_round()  # covers four batches
    log.on_stable = reports.append
    log.truncate(2)
    append(log, 3)
    while node.later.waiting:
        is_last = log.is_settled
        node.end_round()
        assert is_last or log.stable <= 2 or log.is_settled
    assert reports == sorted(reports)
    assert log.stable == log.end == 5


@pytest.mark.requirement("LOG-4")
def test_a_batch_of_an_older_term_may_replace_a_term_that_was_cut() -> None:
    for policy in CrashPolicy:
        node = ANode()
        log = node.a_log()
        append(log, 1)
        log.append([opened(log, 5)])
        append(log, 1)
        node.settle()
        log.truncate(2)
        append(log, 1)  # of term 1 again
        node.settle()
        wanted = everything(log)
        assert [entry[2] for entry in wanted] == [1, 1, 1]
        node.crash(policy)
        assert everything(node.store.open_log(GROUP)) == wanted


# --- trim and install: rule (c) ----------------------------------------------------------------


@pytest.mark.requirement("LOG-2")
def test_segments_are_dropped_only_when_the_new_start_is_durable() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 12, count=2)
    node.settle()
    append(log, 1)
    node.settle()
    names = node.disk.list(GROUP)
    log.trim(20)
    assert log.start.first_offset == 20
    node.begin_round()
    assert kinds_on_disk(node.disk)[-1] == "LogStarted"
    assert node.disk.list(GROUP) == names
    node.end_round()
    assert len(node.disk.list(GROUP)) < len(names)
    node.settle()
    wanted = everything(log)
    node.crash()
    log = node.store.open_log(GROUP)
    assert log.start.first_offset == 20
    assert everything(log) == wanted


def test_a_trim_inside_a_batch_keeps_the_batch_and_moves_the_visible_start() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3, count=4)
    node.settle()
    log.trim(6)
    assert (log.start.offset, log.start.first_offset) == (4, 6)
    assert log.start.index == 5
    assert log.entries(log.start.index, 1)[0].first == 5
    node.settle()
    node.crash()
    log = node.store.open_log(GROUP)
    assert (log.start.offset, log.start.first_offset) == (4, 6)


def test_a_trim_to_the_current_start_does_nothing() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3)
    node.settle()
    log.trim(2)
    node.settle()
    start, records = log.start, len(records_on_disk(node.disk))
    log.trim(2)
    log.trim(1)
    assert log.start == start
    assert log.is_settled
    assert len(records_on_disk(node.disk)) == records


@pytest.mark.requirement("LOG-4")
def test_a_log_trimmed_before_it_had_a_synced_point_can_be_opened() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3)
    node.begin_round()
    node.end_round()
    node.crash()  # the point of that round was not written yet
    log = node.store.open_log(GROUP)
    synced = node.store.journal.groups[GROUP].synced
    assert synced is None or synced.end_offset < 2
    node.begin_round()
    node.end_round()
    log.trim(2)
    wanted = everything(log)
    node.begin_round()
    node.end_round()
    node.crash()
    assert everything(node.store.open_log(GROUP)) == wanted


def test_a_trim_never_removes_what_is_not_durable() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3)
    with pytest.raises(AssertionError, match="only what is stable"):
        log.trim(2)


@pytest.mark.requirement("LOG-4")
def test_an_install_is_recorded_then_segments_go_then_it_is_done_then_batches_come() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 4)
    node.settle()
    full, records = segment_bytes(node.disk), len(records_on_disk(node.disk))
    start = LogStart(offset=50, marks_before=3, prev_term=4, voters=THEM)
    log.install(start)
    append(log, 1)
    assert log.start == start
    assert log.stable < start.index
    node.begin_round()
    assert kinds_on_disk(node.disk, records)[-1:] == ["LogStarted"]
    assert segment_bytes(node.disk) == full
    node.end_round()
    assert segment_bytes(node.disk) == 0
    node.end_round()
    assert kinds_on_disk(node.disk, records)[-2:] == ["LogStarted", "LogStarted"]
    assert segment_bytes(node.disk) == 0
    node.settle()
    assert log.stable == log.end == 54
    wanted = everything(log)
    node.crash()
    log = node.store.open_log(GROUP)
    assert everything(log) == wanted
    assert log.voters() == [(53, THEM)]
    assert log.term_at(52) == 4


def test_an_interrupted_install_is_finished_by_the_restart() -> None:
    for rounds in range(4):
        node = ANode()
        log = node.a_log()
        append(log, 8)
        node.settle()
        log.install(a_start(50, 3, 4))
        node.begin_round()
        for _ in range(rounds):
            if node.later.waiting:
                node.end_round()
        node.crash()
        log = node.store.open_log(GROUP)
        node.settle()
        assert (log.start.offset, log.end) in [(0, 9), (50, 53)]
        assert log.start.offset == 50 or rounds == 0
        append(log, 1)
        node.settle()
        wanted = everything(log)
        assert log.stable == log.end
        node.crash()
        assert everything(node.store.open_log(GROUP)) == wanted, "it is not finished twice"


@pytest.mark.requirement("LOG-4")
def test_compaction_skips_the_segment_with_the_synced_point_on_disk() -> None:
    node = ANode()
    log = node.a_log()
    log.allow_holes()
    append(log, 40)
    node.settle()
    append(log, 1)
    node.settle()
    below = log.compactable_below
    node.crash()
    synced = node.store.journal.groups[GROUP].synced
    assert synced is not None
    assert 0 < below <= synced.segment_base < log.end_offset
