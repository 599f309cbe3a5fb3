"""Which ranges of its log a replica sends to one whose own is damaged."""

import pytest

from kafkaesque.broker.cluster.repairs import NotYet, mendable_below
from kafkaesque.broker.replication.repair_ranges import (
    RangeAnswer,
    RangeAsked,
    RangePiece,
    RangeRefused,
    give_range,
)
from kafkaesque.log.errors import CorruptLog
from kafkaesque.record.view import split_batches
from kafkaesque.types import Offset
from tests.broker.nodes import GROUP, THREE
from tests.broker.partitions import PartitionNode, build
from tests.broker.test_damage import COUNT, filled, harm


def asked(first: Offset, end: Offset, bytes_max: int = 1 << 20) -> RangeAsked:
    return RangeAsked(source=2, group=GROUP, first=first, end=end, bytes_max=bytes_max)


def base_of(node: PartitionNode, place: int) -> Offset:
    return int(node.segment(place).split("/")[1].removesuffix(".log"))


def refused(answer: RangeAnswer) -> str:
    assert isinstance(answer, RangeRefused)
    return answer.reason


def test_a_range_is_sent_in_consecutive_pieces() -> None:
    node = filled(alone=False)
    first, end = base_of(node, 1), base_of(node, 3)
    offsets: list[Offset] = []
    at = first
    while at < end:
        answer = give_range(node.replica, asked(at, end, bytes_max=200))
        assert isinstance(answer, RangePiece) and not answer.has_holes
        views = list(split_batches(answer.data))
        assert answer.end == views[-1].end_offset
        offsets += [view.base_offset for view in views]
        at = answer.end
    assert offsets == list(range(first, end))


def test_uncommitted_data_is_not_sent() -> None:
    node = filled(alone=False)
    node.send(build(b"not committed"))
    assert node.replica.log.end_offset == COUNT + 1
    assert isinstance(give_range(node.replica, asked(COUNT - 1, COUNT)), RangePiece)
    assert "committed" in refused(give_range(node.replica, asked(COUNT - 1, COUNT + 1)))


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_segment_with_noted_damage_is_not_sent_and_others_are() -> None:
    node = filled(alone=False)
    first, end = base_of(node, 1), base_of(node, 2)
    node.replica.damaged(CorruptLog(node.segment(1), 0, "noted earlier"), first + 1)
    assert "damaged" in refused(give_range(node.replica, asked(first, end)))
    assert "damaged" in refused(give_range(node.replica, asked(first - 1, first + 1)))
    assert isinstance(give_range(node.replica, asked(0, first)), RangePiece)
    assert isinstance(give_range(node.replica, asked(end, COUNT)), RangePiece)


@pytest.mark.complains("damage_found partition=orders offset=*")
@pytest.mark.parametrize("what", ["a bit in the records", "a high bit in the base offset"])
def test_damage_found_while_sending_is_noted_and_not_sent(what: str) -> None:
    node = filled(alone=False)
    harm(node, what)
    first, end = base_of(node, 1), base_of(node, 2)
    answers = [give_range(node.replica, asked(first, end)) for _ in range(2)]
    assert "damaged" in refused(answers[-1])
    assert node.replica.damage.found
    assert node.replica.raft.leadership is None


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_broker_without_the_replica_or_with_a_later_start_sends_nothing() -> None:
    node = filled(alone=False)
    assert "no such replica" in refused(give_range(None, asked(0, 1)))
    node.replica.log.trim(20)
    node.sync()
    assert "starts at" in refused(give_range(node.replica, asked(3, 30)))


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_only_committed_closed_and_synced_data_is_repaired() -> None:
    node = PartitionNode(THREE)
    node.elect()
    for number in range(COUNT):
        node.send(build(b"%d" % number))
    node.tick(3)
    assert len(node.replica.log.segments.bases) > 3 and node.partition.high_watermark == 0
    first = base_of(node, 1)
    with pytest.raises(NotYet):
        mendable_below(node.replica, first)
    node.accepts(2, node.replica.raft.end)
    settle(node)
    assert mendable_below(node.replica, first) >= base_of(node, 2)
    active = node.replica.log.segments.active_base
    with pytest.raises(NotYet):
        mendable_below(node.replica, active)
    assert node.replica.log.segments.active_base > active, "the repair closes the segment"
    settle(node)
    assert mendable_below(node.replica, active) == node.replica.log.end_offset


def settle(node: PartitionNode) -> None:
    """Record in the journal how far the segments are synced."""
    for _ in range(3):
        node.tick()
        node.store.flusher.pass_time(1_000)
        node.replica.log.note_point()
        node.sync()
