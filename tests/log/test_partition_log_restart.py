"""The state of a log after a restart, and what its owner learns when the disk fails."""

import pytest

from kafkaesque.errors import LogError
from kafkaesque.log.errors import CorruptLog, DiskFailed
from kafkaesque.sim.disk import CrashPolicy, DiskFaults
from tests.log.stores import (
    ALL_BYTES,
    GROUP,
    OTHER,
    ANode,
    append,
    everything,
    opened,
    segment_bytes,
)


@pytest.mark.requirement("LOG-4")
def test_recovery_drops_marks_beyond_the_end_of_the_segments() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([opened(log, 2)])
    node.begin_round()
    node.disk.crash(CrashPolicy.KEEP_ALL)
    file = node.disk.open(f"{GROUP}/{0:020d}.log")
    file.truncate(0)  # the round reached the disk in part: the mark, not the batch before it
    node.disk.sync_now([file], [])
    node.open()
    log = node.store.open_log(GROUP)
    assert (log.end, log.term_at(log.end), log.end_of_term(2)) == (1, 1, (1, 0))
    assert log.stable < log.start.index, "the cut of the journal is not durable yet"
    append(log, 1)
    assert segment_bytes(node.disk) == 0
    node.settle()
    wanted = everything(log)
    node.crash()
    assert everything(node.store.open_log(GROUP)) == wanted


@pytest.mark.requirement("LOG-4")
def test_a_stable_mark_behind_a_hole_survives_a_crash() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.settle()
    log.append([opened(log, 2)._replace(first=6, end=7)])
    node.settle()
    stable = log.stable
    node.crash()
    assert node.store.open_log(GROUP).end >= stable


def test_a_cleanly_closed_log_opens_stable_and_writes_nothing() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 3)
    node.settle()
    wanted = everything(log)
    node.store.close()
    node.disk.crash(CrashPolicy.DROP_UNSYNCED)
    node.open()
    log = node.store.open_log(GROUP)
    assert everything(log) == wanted
    assert log.stable == log.end
    assert log.is_settled


def test_a_tail_that_was_never_synced_is_not_stable_before_a_round() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.settle()
    append(log, 2)
    node.disk.kill()
    node.open()
    log = node.store.open_log(GROUP)
    assert log.end_offset == 3, "the system still has what the process wrote"
    assert log.stable < log.index_at(1)
    node.crash()
    assert node.store.open_log(GROUP).end_offset == 1, "and a power loss takes it"


def test_all_tails_are_made_durable_by_one_round() -> None:
    node = ANode()
    for group in (GROUP, OTHER):
        log = node.a_log(group)
        node.settle()
        append(log, 3)
    node.disk.kill()
    node.open()
    logs = [node.store.open_log(group) for group in (GROUP, OTHER)]
    before = node.disk.syncs
    node.begin_round()
    node.end_round()
    assert [log.stable for log in logs] == [log.end for log in logs]
    assert node.disk.syncs == before + 1
    node.crash()
    for group in (GROUP, OTHER):
        assert node.store.open_log(group).end_offset == 3


# --- failures ----------------------------------------------------------------------------------


@pytest.mark.requirement("LOG-4")
def test_a_batch_without_disk_space_waits_and_is_written_when_there_is_some() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.settle()
    node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes + 10)
    append(log, 2)
    node.store.flusher.kick()
    assert (log.is_full, log.error, log.stable) == (True, None, 2)
    assert len(everything(log)) == 4, "readers see the waiting batch"
    node.store.flusher.pass_time(1)  # still full
    assert log.is_full
    node.disk.faults = DiskFaults()
    node.store.flusher.pass_time(2)
    node.settle()
    assert (log.is_full, log.stable) == (False, log.end)
    wanted = everything(log)
    node.crash()
    assert everything(node.store.open_log(GROUP)) == wanted


def test_entries_that_waited_for_a_round_wait_for_room_as_well() -> None:
    node = ANode()
    log = node.a_log()
    log.append([opened(log, 2)])
    append(log, 1)
    node.begin_round()
    node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes + 10)
    node.end_round()
    assert log.is_full
    node.disk.faults = DiskFaults()
    node.store.flusher.pass_time(1)
    node.settle()
    assert log.stable == log.end == 3


def test_a_journal_without_room_postpones_its_round_and_loses_nothing_of_it() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    log.append([opened(log, 2)])
    node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes + 10)
    node.store.flusher.kick()
    assert node.later.waiting == []
    assert node.store.flusher.is_full
    assert node.failures == []
    node.disk.faults = DiskFaults()
    node.store.flusher.kick()
    assert node.later.waiting == [], "it is retried only as time passes"
    node.store.flusher.pass_time(1)
    node.settle()
    assert not node.store.flusher.is_full
    wanted = everything(log)
    assert log.stable == log.end
    node.crash()
    assert everything(node.store.open_log(GROUP)) == wanted


def test_a_sync_that_fails_inside_a_cut_is_reported_to_the_logs_owner() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 12, count=2)
    failures: list[LogError] = []
    log.on_failed = failures.append
    node.disk.fail_next_sync()
    log.truncate(1)  # removes whole segments, which is synced at once
    assert [type(failure) for failure in failures] == [DiskFailed]
    assert log.stable <= 1


def test_a_failed_log_does_not_disturb_the_rounds_of_the_others() -> None:
    node = ANode()
    log, other = node.a_log(), node.a_log(OTHER)
    append(log, 12, count=2)
    node.disk.fail_next_sync()
    log.truncate(1)
    assert log.error is not None
    append(other, 1)
    node.settle()
    assert other.stable == other.end
    assert node.failures == []


def test_a_failed_sync_of_a_round_stops_the_node_and_nothing_becomes_stable() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.disk.fail_next_sync()
    node.settle()
    append(log, 1)
    node.settle()
    assert [type(failure) for failure in node.failures] == [DiskFailed]
    assert log.stable == 1


def test_a_damaged_batch_is_never_returned() -> None:
    node = ANode()
    log = node.a_log()
    append(log, 1)
    node.settle()
    node.disk.flip_bit(f"{GROUP}/{0:020d}.log", 70, 3)
    with pytest.raises(CorruptLog):
        log.entries(1, ALL_BYTES)


def test_a_forgotten_group_is_gone_and_its_files_stay() -> None:
    node = ANode()
    log, other = node.a_log(), node.a_log(OTHER)
    append(log, 1)
    node.settle()
    names = node.disk.list(GROUP)
    node.store.forget(GROUP)
    append(other, 1)
    node.settle()
    node.crash()
    assert list(node.store.journal.groups) == [OTHER]
    assert set(names) <= set(node.disk.list(GROUP))


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_group_can_be_forgotten_while_it_waits_for_a_round(is_begun: bool) -> None:
    node = ANode()
    log, other = node.a_log(), node.a_log(OTHER)
    append(log, 1)
    append(other, 1)
    if is_begun:
        node.begin_round()
    node.store.forget(GROUP)
    node.settle()
    assert other.stable == other.end
    assert node.failures == []


@pytest.mark.requirement("LOG-4")
def test_a_clean_stop_in_the_middle_of_a_round_leaves_everything_durable() -> None:
    for policy in CrashPolicy:
        node = ANode()
        log = node.a_log()
        append(log, 8)
        node.begin_round()
        append(log, 1)
        wanted = everything(log)
        node.store.close()
        node.crash(policy)
        assert everything(node.store.open_log(GROUP)) == wanted
        assert not node.store.journal.groups[GROUP].is_recovering
