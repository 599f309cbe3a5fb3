"""Batches behind a temporarily refused batch are refused too, but not as a gap."""

import pytest

from kafkaesque.broker.partition.partition_errors import (
    NotEnoughReplicas,
    OutOfOrderSequence,
    RecordsRefused,
)
from kafkaesque.broker.partition.refusals import (
    FIRST_MS_MAX,
    REFUSED_MAX,
    REFUSED_MS_MAX,
    TAKEOVER_MS_MAX,
    BehindRefused,
    FirstBatchMissing,
    Refusals,
)
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import ChangeInProgress, NotLeader
from kafkaesque.record.view import BatchView
from kafkaesque.topic_settings import TopicSettings
from kafkaesque.types import NodeId
from tests.broker.nodes import THREE
from tests.broker.partitions import PRODUCER, PartitionNode, build, numbered
from tests.log.logs import HandClock

LAST = (1 << 31) - 1


def a_leader_of_three() -> PartitionNode:
    node = PartitionNode(THREE)
    node.elect()
    return node


def refused_by_a_transfer(node: PartitionNode, *sequences: int) -> None:
    """Start a transfer and cancel it; refuse these batches meanwhile."""
    node.accepts(2, node.replica.raft.end)
    node.replica.transfer(2)
    for sequence in sequences:
        with pytest.raises((ChangeInProgress, BehindRefused)):
            node.send(numbered(sequence), needs_all=False)
    node.let_the_transfer_fail()


def test_a_batch_behind_one_refused_during_a_transfer_is_not_a_gap_after_it() -> None:
    """librdkafka would renumber all batches in flight, and some would be duplicated."""
    node = a_leader_of_three()
    node.send(numbered(0))
    refused_by_a_transfer(node, 1)
    for sequence in (2, 3):
        with pytest.raises(BehindRefused):
            node.send(numbered(sequence))
    for sequence in (1, 2, 3):
        node.send(numbered(sequence))
    assert node.values() == [b"0", b"1", b"2", b"3"]


def test_a_new_producers_second_batch_is_refused_if_the_first_was() -> None:
    """An unknown producer may start at any sequence, and the first batch could never be written."""
    node = a_leader_of_three()
    refused_by_a_transfer(node, 0, 1)
    with pytest.raises(BehindRefused):
        node.send(numbered(2))
    for sequence in (0, 1, 2):
        node.send(numbered(sequence))
    assert node.values() == [b"0", b"1", b"2"]


def test_a_transactional_batch_behind_a_refused_one_is_refused_without_a_lookup() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    refused_by_a_transfer(node, 1)
    with pytest.raises(BehindRefused):
        node.partition.needs_check(BatchView(numbered(2)))


def test_the_batches_behind_a_refused_one_are_awaited_in_turn() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    refused_by_a_transfer(node, 1, 2)
    node.send(numbered(1))
    with pytest.raises(BehindRefused):
        node.send(numbered(3))
    node.send(numbered(2))
    node.send(numbered(3))
    with pytest.raises(OutOfOrderSequence):
        node.send(numbered(5))


def test_a_gap_without_a_refused_batch_is_a_gap() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    refused_by_a_transfer(node, 1)
    node.send(numbered(1))
    with pytest.raises(OutOfOrderSequence):
        node.send(numbered(3))
    node.send(numbered(0, producer_id=9))
    with pytest.raises(OutOfOrderSequence):
        node.send(numbered(2, producer_id=9))


def test_a_refused_batch_that_is_not_retried_leaves_a_gap() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    refused_by_a_transfer(node, 1)
    node.clock.ms += REFUSED_MS_MAX - 1
    with pytest.raises(BehindRefused):
        node.send(numbered(2))
    node.clock.ms += 1
    with pytest.raises(OutOfOrderSequence):
        node.send(numbered(2))


def test_batches_behind_one_refused_for_too_few_replicas_stay_refused() -> None:
    node = PartitionNode(THREE, settings=TopicSettings(min_insync_replicas=2))
    away: set[NodeId] = set()
    node.replica.is_reachable = lambda one: one not in away
    node.elect()
    node.replica.look_in_sync()
    node.send(numbered(0))
    node.accepts(2, node.replica.raft.end)
    away |= {2, 3}
    node.replica.look_in_sync()
    with pytest.raises(NotEnoughReplicas):
        node.send(numbered(1))
    away.clear()
    node.replica.look_in_sync()
    with pytest.raises(BehindRefused):
        node.send(numbered(2))
    outcomes: list[Outcome] = node.send(numbered(1))[1]
    node.accepts(2, node.replica.raft.end)
    assert outcomes == [Outcome.COMMITTED]


def test_batches_refused_before_a_replica_leads_count_when_it_does() -> None:
    node = PartitionNode(THREE)
    with pytest.raises(NotLeader):
        node.send(numbered(0))
    node.elect()
    with pytest.raises(BehindRefused):
        node.send(numbered(1))
    assert node.send(numbered(0))[0] == 0


def test_a_new_epoch_of_a_producer_waits_only_for_its_own_batches() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    refused_by_a_transfer(node, 1)
    with pytest.raises(OutOfOrderSequence):
        node.send(numbered(2, epoch=1))
    node.send(numbered(0, epoch=1))


def test_a_producers_batches_are_awaited_across_the_wrap_around() -> None:
    node = a_leader_of_three()
    node.send(numbered(LAST - 1))
    refused_by_a_transfer(node, LAST)
    with pytest.raises(BehindRefused):
        node.send(numbered(0))
    node.send(numbered(LAST))
    node.send(numbered(0))


def test_batches_that_will_not_be_retried_are_not_awaited() -> None:
    found = Refusals(HandClock())
    found.refused(memoryview(numbered(3)), RecordsRefused("no", (0,)))
    found.refused(memoryview(b"too short"), NotLeader(None))
    assert len(found.by_producer) == 0


def test_the_number_of_remembered_producers_is_bounded() -> None:
    found = Refusals(HandClock())
    for producer_id in range(REFUSED_MAX + 1):
        found.refused(memoryview(numbered(3, producer_id=producer_id)), NotLeader(None))
    assert len(found.by_producer) == REFUSED_MAX
    assert PRODUCER in found.by_producer
    assert 0 not in found.by_producer


def a_second_leader_of_three() -> PartitionNode:
    """Elect a node in a term that is not the first one of its partition."""
    node = a_leader_of_three()
    node.stop_and_start()
    node.elect()
    return node


def test_a_new_leader_waits_for_the_first_batch_of_an_unknown_producer() -> None:
    """Only the previous leader had that batch, and librdkafka took a later one as proof of it."""
    node = a_second_leader_of_three()
    for sequence in (5, 6):
        with pytest.raises((FirstBatchMissing, BehindRefused)):
            node.send(numbered(sequence))
    for sequence in (0, 1, 2, 3, 4, 5, 6):
        node.send(numbered(sequence))
    assert node.values() == [b"%d" % sequence for sequence in range(7)]


def test_a_new_leader_gives_up_waiting_for_a_first_batch() -> None:
    node = a_second_leader_of_three()
    with pytest.raises(FirstBatchMissing):
        node.send(numbered(5))
    node.clock.ms += FIRST_MS_MAX - 1
    with pytest.raises(FirstBatchMissing):
        node.send(numbered(5))
    node.clock.ms += 1
    assert node.send(numbered(5))[0] == 0


def test_a_leader_that_took_over_long_ago_accepts_any_first_batch() -> None:
    node = a_second_leader_of_three()
    node.clock.ms += TAKEOVER_MS_MAX
    assert node.send(numbered(5))[0] == 0


def test_the_first_leader_accepts_any_first_batch() -> None:
    """A topic that was deleted and created again has producers that go on counting."""
    node = a_leader_of_three()
    assert node.send(numbered(5))[0] == 0


def test_a_new_leader_does_not_wait_for_first_batches_of_known_producers() -> None:
    node = a_leader_of_three()
    node.send(numbered(0))
    node.accepts(2, node.replica.raft.end)
    node.stop_and_start()
    node.elect()
    assert node.send(numbered(1))[0] == 1


def test_a_batch_of_a_transaction_waits_for_the_first_one_at_a_new_leader() -> None:
    node = a_second_leader_of_three()
    with pytest.raises(FirstBatchMissing):
        node.partition.needs_check(BatchView(numbered(5)))


def test_a_new_leader_accepts_batches_without_a_producer() -> None:
    node = a_second_leader_of_three()
    assert node.send(build(b"plain"))[0] == 0
