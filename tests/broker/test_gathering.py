"""Batches of one event: one write, one message to each follower, the same guarantees."""

import pytest

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import NotLeader
from kafkaesque.log.errors import CorruptLog
from kafkaesque.raft.messages import AppendRequest
from kafkaesque.types import Offset
from tests.broker.nodes import Node, a_batch, heartbeat
from tests.broker.test_replica import a_leader_alone

Fates = list[tuple[bytes, Outcome]]


def gather(node: Node, *values: bytes) -> tuple[list[Offset], Fates]:
    """Append batches of one record each in one event, which is not over yet."""
    fates: Fates = []

    def append(value: bytes) -> Offset:
        return node.replica.gather(a_batch(value), lambda fate: fates.append((value, fate)), 1)

    return [append(value) for value in values], fates


def test_batches_of_one_event_get_dense_offsets_and_are_answered_in_order() -> None:
    node = a_leader_alone()
    node.propose(b"before")
    offsets, fates = gather(node, b"a", b"b", b"c")
    assert offsets == [1, 2, 3]
    assert fates == []
    node.after_event()
    assert fates == [(value, Outcome.COMMITTED) for value in (b"a", b"b", b"c")]
    assert node.values() == [b"before", b"a", b"b", b"c"]


def test_batches_of_one_event_are_written_with_one_write() -> None:
    node = a_leader_alone()
    writes = node.disk.writes
    gather(node, *[b"%d" % number for number in range(5)])
    assert node.disk.writes == writes
    node.store.flusher.kick()
    assert node.disk.writes == writes + 1


def test_each_follower_gets_one_message_with_all_batches() -> None:
    node = Node()
    node.elect()
    node.accepts(3, node.replica.raft.end)
    node.sent.clear()
    gather(node, b"a", b"b", b"c")
    node.after_event()
    sent = [message for message in node.sent if isinstance(message, AppendRequest)]
    assert sorted(message.target for message in sent) == [2, 3]
    assert [len(message.entries) for message in sent] == [3, 3]


def test_a_proposal_during_the_event_follows_the_gathered_batches() -> None:
    node = a_leader_alone()
    offsets, fates = gather(node, b"a", b"b")
    last, outcomes = node.propose(b"c")
    assert [*offsets, last] == [0, 1, 2]
    assert [fate for _, fate in fates] + outcomes == [Outcome.COMMITTED] * 3


def test_a_message_before_the_write_finds_the_batches_in_the_log() -> None:
    node = Node()
    node.elect()
    _, fates = gather(node, b"a", b"b")
    end = node.replica.raft.end
    node.replica.step(heartbeat(node.replica.raft.term + 1))
    assert node.replica.log.end == end
    node.after_event()
    assert [fate for _, fate in fates] == [Outcome.UNKNOWN] * 2


def test_a_duplicate_in_the_same_event_gets_the_outcome_of_the_first() -> None:
    node = a_leader_alone()
    (offset, _), _ = gather(node, b"a", b"b")
    outcomes: list[Outcome] = []
    node.replica.when_held(offset, 1, outcomes.append)
    node.replica.when_committed(outcomes.append)
    assert outcomes == []
    node.after_event()
    assert outcomes == [Outcome.COMMITTED] * 2


def test_when_a_replica_stops_before_the_write_the_outcome_is_unknown() -> None:
    node = a_leader_alone()
    _, fates = gather(node, b"a")
    node.replica.stop(CorruptLog("orders", 0, "planted"))
    node.after_event()
    assert [fate for _, fate in fates] == [Outcome.UNKNOWN]
    with pytest.raises(NotLeader):
        gather(node, b"b")
