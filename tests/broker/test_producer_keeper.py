"""Producer state follows the log: through restarts, crashes and lost leadership."""

import pytest

from kafkaesque.ages import Ages
from kafkaesque.broker.cluster.wall_clocks import ClockTold, WallClocks
from kafkaesque.broker.partition.partition_errors import OutOfOrderSequence
from kafkaesque.broker.partition.producer_keeper import SNAPSHOTS_KEPT
from kafkaesque.broker.partition.refusals import FIRST_MS_MAX, FirstBatchMissing
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import HousekeepingConfig, ProducerConfig
from kafkaesque.entry import Entry, TermOpened
from kafkaesque.errors import LeaderNotReady, NotLeader
from kafkaesque.log.compaction import CompactionRules, compact
from kafkaesque.log.producer_snapshot import snapshot_offsets, write_snapshot
from kafkaesque.machines.transactions.transaction_commands import Producer
from kafkaesque.machines.transactions.transaction_questions import Marker
from kafkaesque.raft.messages import VoteRequest, VoteResponse
from kafkaesque.record.build import ProducerStamp, build_batch
from kafkaesque.record.control import ControlType, build_control_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import split_batches, stamp
from kafkaesque.sim.disk import DiskFaults
from tests.broker.nodes import GROUP, THREE, a_batch, append, entry
from tests.broker.partitions import PRODUCER, PartitionNode, build, numbered
from tests.broker.transactional import transactional
from tests.log.logs import START_MS

NEVER = ProducerConfig(snapshot_bytes=1 << 30, snapshot_at_stop_bytes=1 << 30)
COMMITTED = [Outcome.COMMITTED]
ENDED = 50


def is_forgotten(node: PartitionNode, number: int) -> bool:
    """Whether the end of one of `ENDED` transactions, of two records each, holds nothing back."""
    marker = 2 * number + 1
    return node.partition.producers.known.transactions.stable_offset(marker) == marker


def a_leader_of_three() -> PartitionNode:
    node = PartitionNode(THREE)
    node.elect()
    return node


def test_a_retry_gets_the_offset_of_the_first_attempt() -> None:
    node = PartitionNode()
    first = node.send(numbered(0, b"a", b"b"))
    again = node.send(numbered(0, b"a", b"b"))
    assert first == again == (0, COMMITTED)
    assert node.values() == [b"a", b"b"]


def test_a_retry_of_an_uncommitted_batch_waits_for_it() -> None:
    node = PartitionNode(holds_syncs=True)
    first = node.send(numbered(0))
    again = node.send(numbered(0))
    assert first == again == (0, [])
    node.sync()
    assert first == again == (0, COMMITTED)


def test_a_retry_gets_the_outcome_of_the_first_when_leadership_is_lost() -> None:
    node = a_leader_of_three()
    first = node.send(numbered(0))
    again = node.send(numbered(0))
    term = node.replica.raft.term + 1
    node.step(append(term, 1, prev_term=1))
    assert first == again == (0, [Outcome.UNKNOWN])


@pytest.mark.parametrize("way", ["stop", "crash"])
def test_a_retry_after_a_restart_is_recognized(way: str) -> None:
    node = PartitionNode()
    offsets = [node.send(numbered(sequence))[0] for sequence in range(30)]
    if way == "stop":
        node.stop_and_start()
    else:
        node.crash_and_start()
    assert [node.send(numbered(sequence))[0] for sequence in range(25, 30)] == offsets[25:]
    assert node.send(numbered(30))[0] == 30


def test_the_log_alone_is_enough() -> None:
    node = PartitionNode(config=NEVER)
    for sequence in range(30):
        node.send(numbered(sequence))
    node.stop_and_start()
    assert snapshot_offsets(node.disk, GROUP) == []
    assert node.send(numbered(27))[0] == 27
    assert node.send(numbered(30))[0] == 30


def test_a_batch_lost_in_a_crash_is_accepted_as_new() -> None:
    node = PartitionNode(holds_syncs=True)
    node.send(numbered(0))
    node.sync()
    node.send(numbered(1))
    node.crash_and_start()
    assert node.send(numbered(1))[0] == 1
    node.sync()
    assert node.values() == [b"0", b"1"]


def test_a_batch_that_another_leader_overwrote_is_accepted_as_new() -> None:
    node = a_leader_of_three()
    _, outcomes = node.send(numbered(0))
    term = node.replica.raft.term + 1
    opened = Entry(1, 2, term, TermOpened())
    other = entry(2, term, a_batch(b"other", term=term))
    node.step(append(term, 1, opened, other, prev_term=1, commit=3))
    assert outcomes == [Outcome.UNKNOWN]
    node.upkeep()
    node.elect()
    assert node.send(numbered(0))[0] == 1
    assert node.values() == [b"other", b"0"]


def test_the_next_leader_recognizes_a_batch_that_it_kept() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    term = node.replica.raft.term + 1
    opened = Entry(2, 3, term, TermOpened())
    node.step(append(term, 2, opened, prev_term=1, commit=3))
    node.elect()
    assert node.send(numbered(0)) == (0, COMMITTED)
    assert node.values() == [b"0"]


def test_a_follower_knows_exactly_what_is_committed() -> None:
    node = PartitionNode(THREE)
    first = numbered(0)
    opened = Entry(0, 1, 1, TermOpened())
    stamped = bytearray(first)
    stamped[12:16] = (1).to_bytes(4, "big")
    node.step(append(1, 0, opened, entry(1, 1, stamped), commit=1))
    node.upkeep()
    assert len(node.partition.producers) == 0
    node.step(append(1, 2, prev_term=1, commit=2))
    node.upkeep()
    assert len(node.partition.producers) == 1


def test_only_a_serving_leader_accepts_batches() -> None:
    node = PartitionNode(THREE)
    with pytest.raises(NotLeader):
        node.send(numbered(0))
    node.tick(20)
    node.grants(2, 1, is_pre=True)
    node.grants(2, 1, is_pre=False)
    with pytest.raises(LeaderNotReady):
        node.send(numbered(0))


# ── transactions that have ended ─────────────────────────────────────────────────────────────


def test_a_leader_without_readers_forgets_ended_transactions_once_committed() -> None:
    node = a_leader_of_three()
    for number in range(ENDED):
        producer = Producer(number, 0)
        batch = memoryview(transactional(0, b"x", producer=producer))
        node.partition.append(batch, lambda _: None, verified=1)
        marker = Marker(
            producer_id=producer.producer_id,
            epoch=producer.epoch,
            is_commit=True,
            coordinator_term=1,
            number=1,
        )
        node.partition.end_transaction(marker, lambda _: None)
    node.upkeep()
    assert not is_forgotten(node, 0), "none of them is committed"
    node.sync()
    node.accepts(2, node.replica.raft.end)
    node.upkeep()
    assert is_forgotten(node, ENDED - 1)


def test_a_follower_forgets_ended_transactions() -> None:
    node = PartitionNode(THREE)
    node.step(append(1, 0, Entry(0, 1, 1, TermOpened()), commit=1))
    for number in range(ENDED):
        batch = transactional(0, b"x", producer=Producer(number, 0))
        stamp(batch, 2 * number, 1)
        marker = build_control_batch(
            kind=ControlType.COMMIT,
            producer_id=number,
            producer_epoch=0,
            coordinator_epoch=1,
            timestamp_ms=START_MS,
            base_offset=2 * number + 1,
            term=1,
        )
        at = 1 + 2 * number
        entries = entry(at, 1, batch), entry(at + 1, 1, marker)
        node.step(append(1, at, *entries, prev_term=1, commit=at + 2))
        node.upkeep()
    assert len(node.partition.producers) == ENDED
    assert is_forgotten(node, ENDED - 1)


# ── snapshots ────────────────────────────────────────────────────────────────────────────────


def test_snapshots_are_written_as_the_log_grows_and_old_ones_are_deleted() -> None:
    node = PartitionNode()
    for sequence in range(100):
        node.send(numbered(sequence))
        node.upkeep()
    offsets = snapshot_offsets(node.disk, GROUP)
    assert len(offsets) == SNAPSHOTS_KEPT
    assert offsets[-1] == node.partition.producers.snapshot_offset > 90


def test_a_snapshot_is_taken_when_a_segment_begins() -> None:
    node = PartitionNode(config=NEVER)
    while node.replica.log.segments.point().segment_base == 0:
        node.send(numbered(node.replica.log.end_offset))
    node.upkeep()
    assert snapshot_offsets(node.disk, GROUP) == [node.replica.log.end_offset]


def test_a_snapshot_is_not_written_before_all_of_it_is_committed() -> None:
    node = a_leader_of_three()
    for sequence in range(10):
        node.send(numbered(sequence))
    node.upkeep()
    assert snapshot_offsets(node.disk, GROUP) == []
    node.accepts(2, node.replica.raft.end)
    node.upkeep()
    assert snapshot_offsets(node.disk, GROUP) == [10]


def test_a_snapshot_taken_before_leadership_was_lost_is_not_written() -> None:
    node = a_leader_of_three()
    for sequence in range(10):
        node.send(numbered(sequence))
    node.upkeep()
    term = node.replica.raft.term + 1
    opened = Entry(1, 2, term, TermOpened())
    batches = [entry(2 + at, term, a_batch(b"x", base=at, term=term)) for at in range(10)]
    node.step(append(term, 1, opened, *batches, prev_term=1, commit=12))
    node.upkeep()
    node.elect()
    assert len(node.partition.producers) == 0


def test_a_restarted_replica_uses_its_snapshot_before_it_knows_the_commit() -> None:
    node = a_leader_of_three()
    for sequence in range(10):
        node.send(numbered(sequence))
    node.accepts(2, node.replica.raft.end)
    node.upkeep()
    node.crash_and_start()
    assert node.replica.high_watermark == 0
    node.upkeep()
    assert len(node.partition.producers) == 1
    assert node.partition.producers.snapshot_offset == 10


def test_a_snapshot_beyond_the_end_of_the_log_is_never_used() -> None:
    node = PartitionNode(config=NEVER)
    for sequence in range(3):
        node.send(numbered(sequence))
    liar = PartitionNode(config=NEVER)
    liar.send(numbered(77))
    state = liar.partition.producers._producers
    assert state is not None
    write_snapshot(node.disk, GROUP, 5, state.state())
    node.stop_and_start()
    for sequence in range(3, 8):
        node.send(numbered(sequence))
    node.crash_and_start()
    assert node.send(numbered(8))[0] == 8
    with pytest.raises(OutOfOrderSequence):
        node.send(numbered(78))


def test_a_snapshot_is_retried_after_the_disk_was_full() -> None:
    node = PartitionNode()
    for sequence in range(10):
        node.send(numbered(sequence))
    node.disk.faults = DiskFaults(page_bytes=64, full_at_bytes=1)
    with pytest.raises(Exception, match="room"):
        node.upkeep()
    node.disk.faults = DiskFaults(page_bytes=64)
    node.upkeep()
    assert snapshot_offsets(node.disk, GROUP) == [10]


# ── deleted and compacted records ────────────────────────────────────────────────────────────


def test_producers_survive_the_deletion_of_their_records() -> None:
    node = PartitionNode()
    node.send(numbered(0))
    while node.replica.log.segments.point().segment_base == 0:
        node.send(build(b"filler"))
    node.upkeep()
    node.replica.log.trim(node.replica.log.end_offset)
    node.sync()
    node.upkeep()
    assert node.replica.log.segments.first_base > 0
    node.crash_and_start()
    assert node.send(numbered(0))[0] == 0
    assert node.send(numbered(1))[0] == node.replica.log.end_offset - 1


def test_with_a_snapshot_from_before_the_start_of_the_log_no_producer_is_refused() -> None:
    node = PartitionNode()
    for sequence in range(10):
        node.send(numbered(sequence))
    node.upkeep()
    for sequence in range(10, 40):
        node.send(numbered(sequence))
    node.replica.log.trim(40)
    node.sync()
    node.crash_and_start()
    with pytest.raises(FirstBatchMissing):  # only while a first batch may still come
        node.send(numbered(40))
    node.clock.ms += FIRST_MS_MAX
    assert node.send(numbered(40))[0] == 40


def keyed(sequence: int, producer_id: int) -> bytes:
    record = Record(offset=0, timestamp_ms=START_MS, key=b"same", value=b"v" * 50)
    stamp = ProducerStamp(producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
    return bytes(build_batch([record], producer=stamp))


def test_producers_survive_compaction() -> None:
    node = PartitionNode()
    node.send(keyed(0, PRODUCER))
    for sequence in range(40):
        node.send(keyed(sequence, PRODUCER + 1))
        node.upkeep()
    log = node.replica.log
    log.allow_holes()
    node.sync()
    below = min(log.compactable_below, node.partition.producers.snapshot_offset)
    rules = CompactionRules()
    for _ in compact(log.segments, below=below, ages=Ages(now_ms=START_MS), rules=rules):
        node.sync()
    assert log.entries(log.start.index, 1 << 20)[-1].end - len(node.values()) > 30
    node.crash_and_start()
    assert node.send(keyed(0, PRODUCER))[0] == 0
    assert node.send(keyed(1, PRODUCER))[0] == 41


# ── idle partitions ──────────────────────────────────────────────────────────────────────────


def test_an_idle_partition_still_forgets_its_idle_producers() -> None:
    node = PartitionNode(config=ProducerConfig(expiration_ms=1000))
    node.send(numbered(0))
    node.upkeep()
    assert len(node.partition.producers) == 1
    node.clock.ms += 2000
    node.upkeep()
    assert len(node.partition.producers) == 0


@pytest.mark.complains(
    "clock_in_doubt node=1: the wall clock has jumped ahead *",
    "clock_believed node=1: deletion by age resumes",
)
def test_setting_a_slow_clock_forward_forgets_no_producers() -> None:
    node = PartitionNode(config=ProducerConfig(expiration_ms=600_000))
    node.clock.ahead_ms = -7_200_000
    clocks = WallClocks(1, node.clock, HousekeepingConfig(), lambda _: None, node.heard)
    node.partition.producers.ages = lambda: clocks.ages
    node.send(numbered(0))
    node.clock.ahead_ms = 0
    clocks.tick({2, 3})
    for _ in range(2):
        node.clock.ms += 300_000
        for other in (2, 3):
            clocks.receive(ClockTold(source=other, target=1, wall_ms=node.clock.ms))
        clocks.tick({2, 3})
        assert clocks.is_sound
        node.upkeep()
        assert len(node.partition.producers) == 1
    node.clock.ms += 1
    clocks.tick({2, 3})
    node.upkeep()
    assert len(node.partition.producers) == 0


@pytest.mark.parametrize("place", [45, 52, 56, 62], ids=["id", "epoch", "sequence", "records"])
@pytest.mark.complains("damage_found partition=orders offset=*")
def test_the_producer_fields_of_a_damaged_batch_are_ignored(place: int) -> None:
    node = PartitionNode(config=NEVER)
    for sequence in range(20):
        node.send(numbered(sequence))
    path = node.segment(0)

    def harm() -> None:
        file = node.disk.open(path)
        data = file.read(0, file.size())
        size = next(split_batches(data)).size
        file.write(size + place, bytes([data[size + place] ^ 1]))
        file.close()

    node.restart(after=harm)
    node.lead()
    assert node.replica.damage.found, "it is found when the log is read for producers"
    views = list(node.partition.producer_views())
    assert [view.producer_id for view in views] == [PRODUCER]


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_follower_that_finds_damage_while_reading_for_producers_keeps_its_log_and_vote() -> None:
    node = PartitionNode(THREE, config=NEVER)
    opened = Entry(0, 1, 1, TermOpened())
    batches = [bytearray(numbered(n)) for n in range(20)]
    for n, batch in enumerate(batches):
        stamp(batch, n, 1)
    entries = [entry(1 + n, 1, batch) for n, batch in enumerate(batches)]
    node.step(append(1, 0, opened, *entries, commit=21))
    path = node.segment(0)
    node.restart(after=lambda: node.disk.flip_bit(path, 62, 2))
    node.lead()
    node.step(append(1, 21, prev_term=1, commit=21))
    node.upkeep()
    assert node.replica.damage.found
    assert node.replica.error is None and not node.failures
    node.sent.clear()
    end = node.replica.raft.end
    node.step(
        VoteRequest(source=2, target=1, term=2, last_term=1, end=end, is_pre=False, is_forced=True)
    )
    assert [answer.is_granted for answer in node.sent if isinstance(answer, VoteResponse)] == [True]
