"""What counts as written under each flush policy, and what a power loss may take under it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.log.producer_snapshot import snapshot_offsets, write_snapshot
from kafkaesque.sim.disk import CrashPolicy, DiskFaults
from kafkaesque.topic_settings import FlushPolicy
from tests.log.stores import GROUP, TINY_STORE, ANode, append, batch, everything, opened

LAZY = [FlushPolicy.OS, FlushPolicy.INTERVAL]
FLUSH_MS = 100


def a_log(policy: FlushPolicy, node: ANode) -> PartitionLog:
    log = node.a_log()
    set_policy(log, policy)
    node.settle()  # that it may lose something is durable first
    return log


def set_policy(log: PartitionLog, policy: FlushPolicy) -> None:
    log.configure(TINY_STORE, policy=policy, flush_ms=FLUSH_MS)


def kick(node: ANode) -> None:
    node.store.flusher.kick()


@pytest.mark.parametrize("policy", LAZY)
def test_a_batch_is_stable_as_soon_as_the_driver_is_done_and_no_sync_is_requested(
    policy: FlushPolicy,
) -> None:
    node = ANode()
    log = a_log(policy, node)
    told: list[int] = []
    log.on_stable = told.append
    append(log, 2)
    assert told == [], "not inside the append: its caller is not ready for it"
    kick(node)
    assert told == [3]
    assert (log.stable, log.durable) == (3, 1)
    assert node.later.waiting == []


def test_under_always_a_batch_is_stable_when_it_is_synced() -> None:
    node = ANode()
    log = a_log(FlushPolicy.ALWAYS, node)
    append(log, 2)
    kick(node)
    assert log.stable == 1
    node.end_round()
    assert log.stable == log.durable == 3


def test_under_interval_a_sync_follows_in_time_and_only_if_there_is_something_to_sync() -> None:
    node = ANode()
    log = a_log(FlushPolicy.INTERVAL, node)
    flusher = node.store.flusher
    flusher.pass_time(1_000)
    append(log, 1)
    kick(node)
    flusher.pass_time(1_000 + FLUSH_MS - 1)
    kick(node)
    assert node.later.waiting == []
    flusher.pass_time(1_000 + FLUSH_MS)
    kick(node)
    node.end_round()
    assert log.durable == log.stable == 2
    rounds = flusher.rounds
    flusher.pass_time(1_000 + 10 * FLUSH_MS)
    kick(node)
    assert flusher.rounds == rounds


@pytest.mark.parametrize("policy", LAZY)
def test_a_sync_follows_after_a_number_of_records(policy: FlushPolicy) -> None:
    node = ANode()
    log = a_log(policy, node)
    log.configure(TINY_STORE, policy=policy, flush_ms=FLUSH_MS, flush_records=5)
    append(log, 3)
    kick(node)
    assert node.later.waiting == []
    append(log, 3)
    kick(node)
    node.end_round()
    assert log.durable == log.stable


@pytest.mark.parametrize("policy", LAZY)
def test_a_killed_process_loses_nothing(policy: FlushPolicy) -> None:
    node = ANode()
    log = a_log(policy, node)
    append(log, 20)
    kick(node)
    wanted = everything(log)
    node.disk.kill()
    node.open()
    log = node.store.open_log(GROUP)
    assert everything(log) == wanted
    assert log.durable == log.end, "and recovered data is durable"


@pytest.mark.parametrize("policy", LAZY)
def test_a_clean_stop_syncs_everything(policy: FlushPolicy) -> None:
    node = ANode()
    log = a_log(policy, node)
    append(log, 20)
    kick(node)
    wanted = everything(log)
    node.store.close()
    node.disk.crash(CrashPolicy.DROP_UNSYNCED)
    node.open()
    assert everything(node.store.open_log(GROUP)) == wanted


@pytest.mark.requirement("LOG-4")
def test_closed_segments_are_synced_so_that_recovery_reads_only_the_last_one() -> None:
    node = ANode()
    log = a_log(FlushPolicy.OS, node)
    while len(list(log.segments.each_info())) < 4:
        append(log, 1)
        kick(node)
        if node.later.waiting:
            node.end_round()
            node.store.flusher.settle()
            node.settle()
    closed_end = list(log.segments.each_info())[-1].base
    node.crash()
    log = node.store.open_log(GROUP)
    assert log.end_offset >= closed_end
    synced = node.store.journal.groups[GROUP].synced
    assert synced is not None
    assert synced.segment_base == closed_end


@pytest.mark.parametrize("policy", LAZY)
def test_a_mark_and_what_follows_it_wait_for_the_disk(policy: FlushPolicy) -> None:
    node = ANode()
    log = a_log(policy, node)
    append(log, 1)
    log.append([opened(log, 2)])
    append(log, 1)
    kick(node)
    assert log.stable == 1, "the journal is behind, so nothing counts"
    node.end_round()
    assert log.durable == 3
    kick(node)
    assert log.stable == log.end == 4


@pytest.mark.parametrize("policy", LAZY)
def test_a_cut_waits_for_the_disk(policy: FlushPolicy) -> None:
    node = ANode()
    log = a_log(policy, node)
    append(log, 4)
    kick(node)
    assert log.stable == 5
    log.truncate(3)
    log.append([batch(log)])
    kick(node)
    assert log.stable == log.durable == 1 or log.stable == 3
    node.settle()
    kick(node)
    assert log.stable == log.end == 4


def test_a_return_to_always_syncs_everything_before_anything_more_is_stable() -> None:
    node = ANode()
    log = a_log(FlushPolicy.OS, node)
    append(log, 3)
    kick(node)
    append(log, 1)
    set_policy(log, FlushPolicy.ALWAYS)
    kick(node)
    assert (log.stable, log.durable) == (4, 1), "the last one was not reported again"
    node.end_round()
    assert log.stable == log.durable == 5


def test_records_written_under_os_are_synced_in_time_once_interval_is_set() -> None:
    node = ANode()
    log = a_log(FlushPolicy.OS, node)
    append(log, 2)
    kick(node)
    assert log.durable == 1
    set_policy(log, FlushPolicy.INTERVAL)
    node.store.flusher.pass_time(FLUSH_MS)
    kick(node)
    node.end_round()
    assert log.durable == 3


def test_a_weaker_policy_takes_effect_as_soon_as_the_journal_records_it() -> None:
    node = ANode()
    log = a_log(FlushPolicy.ALWAYS, node)
    append(log, 3)
    set_policy(log, FlushPolicy.OS)
    kick(node)
    assert log.stable < log.end
    assert node.store.journal.groups[GROUP].may_lose
    node.settle()
    append(log, 3)
    kick(node)
    assert log.stable == log.end > log.durable


def test_back_under_always_the_journal_records_that_nothing_can_be_lost() -> None:
    node = ANode()
    log = a_log(FlushPolicy.OS, node)
    append(log, 3)
    set_policy(log, FlushPolicy.ALWAYS)
    assert node.store.journal.groups[GROUP].may_lose
    node.settle()
    assert log.durable == log.end
    assert not node.store.journal.groups[GROUP].may_lose


@pytest.mark.requirement("LOG-4")
def test_a_trim_is_durable_only_after_what_it_keeps() -> None:
    node = ANode()
    log = a_log(FlushPolicy.OS, node)
    append(log, 1, count=3)
    kick(node)
    log.trim(2)
    assert log.start.first_offset == 2
    node.begin_round()
    node.disk.crash(CrashPolicy.KEEP_ALL)
    file = node.disk.open(f"{GROUP}/{0:020d}.log")
    file.truncate(0)  # the round reached the disk in part: the journal, not the batch
    node.disk.sync_now([file], [])
    node.open()
    log = node.store.open_log(GROUP)
    assert (log.start.first_offset, log.end_offset) == (0, 0)


def test_a_full_disk_is_waited_out_under_every_policy() -> None:
    for policy in FlushPolicy:
        node = ANode()
        log = a_log(policy, node)
        node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes + 10)
        append(log, 1)
        kick(node)
        assert (log.is_full, log.stable) == (True, 1)
        node.disk.faults = DiskFaults()
        node.store.flusher.pass_time(1)
        node.settle()
        kick(node)
        assert (log.is_full, log.stable) == (False, 2)


def test_a_producer_snapshot_does_not_outlive_its_records() -> None:
    node = ANode()
    log = a_log(FlushPolicy.OS, node)
    append(log, 4)
    kick(node)
    for offset in (0, 4):
        write_snapshot(node.disk, GROUP, offset, b"state")
    node.crash(CrashPolicy.DROP_UNSYNCED)
    log = node.store.open_log(GROUP)
    assert log.end_offset == 0
    assert snapshot_offsets(node.disk, GROUP) == [0]


def test_a_cut_removes_the_later_snapshots() -> None:
    node = ANode()
    log = a_log(FlushPolicy.ALWAYS, node)
    append(log, 4)
    node.settle()
    for offset in (2, 3):
        write_snapshot(node.disk, GROUP, offset, b"state")
    log.truncate(log.index_at(2))
    node.settle()
    assert snapshot_offsets(node.disk, GROUP) == [2]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("mark"), st.just(0)),
        st.tuples(st.just("kick"), st.just(0)),
        st.tuples(st.just("round"), st.just(0)),
        st.tuples(st.just("time"), st.integers(1, 200)),
        st.tuples(st.just("policy"), st.integers(0, 2)),
        st.tuples(st.just("trim"), st.integers(0, 5)),
    ),
    max_size=40,
)


@pytest.mark.requirement("LOG-4")
@given(STEPS, st.integers(0, 1000), st.sampled_from([*CrashPolicy]))
def test_a_power_loss_takes_only_a_suffix_and_nothing_durable_under_any_policy(
    steps: list[tuple[str, int]], seed: int, policy: CrashPolicy
) -> None:
    node = ANode(seed)
    log = a_log(FlushPolicy.OS, node)
    term, now_ms = 1, 0
    for kind, number in steps:
        match kind:
            case "append":
                append(log, number)
            case "mark":
                term += 1
                log.append([opened(log, term)])
            case "kick":
                kick(node)
            case "round":
                if node.later.waiting:
                    node.end_round()
            case "time":
                now_ms += number
                node.store.flusher.pass_time(now_ms)
            case "policy":
                set_policy(log, list(FlushPolicy)[number])
            case "trim":
                stable = log.offset_at(max(log.stable, log.start.index))
                log.trim(min(log.start.first_offset + number, stable))
    before, durable, floor = everything(log), log.durable, log.start.first_offset
    assert log.durable <= log.stable <= log.end
    node.crash(policy)
    log = node.store.open_log(GROUP)
    found = everything(log)
    assert log.end >= durable
    assert log.start.first_offset <= min(log.end_offset, floor)
    kept = [entry for entry in before if log.start.index <= entry[0] and entry[1] <= log.end]
    assert [entry for entry in found if entry[0] >= before[0][0]] == kept if before else True
    append(log, 1)
    log.append([opened(log, term + 1)])
    node.settle()
    assert log.stable == log.end
