"""Moves of partitions in the catalog, and brokers to be drained and removed."""

from collections.abc import Sequence

import msgspec
import pytest

from kafkaesque.errors import UnknownTopic
from kafkaesque.machines.catalog.catalog import Catalog, Move, Registration, Topic
from kafkaesque.machines.catalog.catalog_errors import (
    BrokerInUse,
    BrokerRemoved,
    InvalidAssignment,
    NoMove,
    UnknownBroker,
    UnknownTopicId,
)
from kafkaesque.machines.catalog.catalog_moves import (
    begin_moves,
    drain_broker,
    finish_move,
    remove_broker,
)
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.types import NodeId

TOPIC_ID = bytes(range(16))


def apply(catalog: Catalog, records: list[MachineRecord]) -> None:
    for record in records:
        catalog.apply(record)


def a_broker(node: NodeId, incarnation: int = 7) -> Registration:
    return Registration(
        node=node,
        host="somewhere",
        port=9092,
        rack="",
        directory=bytes(15) + bytes([node]),
        incarnation=incarnation,
    )


def a_cluster(brokers: int = 6) -> Catalog:
    catalog = Catalog()
    for node in range(1, brokers + 1):
        apply(catalog, catalog.register(a_broker(node)))
    replicas = [(1, 2, 3), (2, 3, 1)]
    apply(catalog, catalog.create_topic("orders", 2, TOPIC_ID, {}, replicas))
    return catalog


def move(catalog: Catalog, nodes: Sequence[NodeId], index: int = 0) -> Topic:
    apply(catalog, begin_moves(catalog, [(TOPIC_ID, index, nodes)]))
    return catalog.topic("orders")


def finish(catalog: Catalog, nodes: Sequence[NodeId], number: int) -> Topic:
    apply(catalog, finish_move(catalog, TOPIC_ID, 0, nodes, number))
    return catalog.topic("orders")


def test_a_moving_partition_is_on_the_old_and_the_new_brokers() -> None:
    topic = move(a_cluster(), [4, 5, 1])
    assert topic.targets == {0: (4, 5, 1)}
    assert topic.replicas[0] == (1, 2, 3)
    assert topic.holders(0) == (1, 2, 3, 4, 5)
    assert topic.holders(1) == (2, 3, 1)
    assert (topic.preferred(0), topic.preferred(1)) == (4, 2)


def test_after_a_move_the_partition_is_only_on_its_new_brokers() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5, 1])
    topic = finish(catalog, [4, 5, 1], 1)
    assert topic.replicas == ((4, 5, 1), (2, 3, 1))
    assert topic.targets == {}
    assert topic.moved == {0}
    assert topic.holders(0) == (4, 5, 1)


def test_only_a_partitions_first_replicas_know_its_voters_from_the_catalog() -> None:
    catalog = a_cluster()
    topic = move(catalog, [1, 2, 4])
    assert topic.is_birthplace(0, 3)
    assert not topic.is_birthplace(0, 4)
    topic = finish(catalog, [1, 2, 4], 1)
    assert not topic.is_birthplace(0, 1)
    assert topic.is_birthplace(1, 1)


def test_a_cancelled_move_leads_back_and_its_targets_stay_until_it_is_done() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5, 1])
    topic = move(catalog, [])
    assert topic.moves[0] == Move(number=2, nodes=(1, 2, 3), leaving=(4, 5))
    assert topic.holders(0) == (1, 2, 3, 4, 5)
    topic = finish(catalog, [1, 2, 3], 2)
    assert topic.holders(0) == (1, 2, 3)
    assert topic.moved == frozenset(), "its birthplace"


def test_a_move_elsewhere_keeps_all_replicas_that_may_vote_by_now() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5])
    topic = move(catalog, [5, 6])
    assert topic.moves[0] == Move(number=2, nodes=(5, 6), leaving=(4,))
    assert topic.holders(0) == (1, 2, 3, 5, 6, 4)


def test_a_late_report_of_an_earlier_move_to_the_same_place_is_refused() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5, 1])
    move(catalog, [])
    move(catalog, [4, 5, 1])
    with pytest.raises(NoMove):
        finish(catalog, [4, 5, 1], 1)
    assert finish(catalog, [4, 5, 1], 3).targets == {}


def test_a_report_with_the_wrong_brokers_is_refused() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5, 1])
    with pytest.raises(NoMove):
        finish(catalog, [4, 5], 1)


def test_repeating_a_request_changes_nothing() -> None:
    catalog = a_cluster()
    assert begin_moves(catalog, [(TOPIC_ID, 0, [1, 2, 3])]) == []
    move(catalog, [4, 5, 1])
    assert begin_moves(catalog, [(TOPIC_ID, 0, [4, 5, 1])]) == []


def test_several_partitions_are_moved_by_one_record() -> None:
    catalog = a_cluster()
    records = begin_moves(catalog, [(TOPIC_ID, 0, [4]), (TOPIC_ID, 1, [5])])
    assert len(records) == 1
    apply(catalog, records)
    assert catalog.topic("orders").targets == {0: (4,), 1: (5,)}


@pytest.mark.parametrize(
    ("moves", "error"),
    [
        ([(bytes(16), 0, [1])], UnknownTopicId),
        ([(TOPIC_ID, 2, [1])], UnknownTopic),
        ([(TOPIC_ID, -1, [1])], UnknownTopic),
        ([(TOPIC_ID, 0, [1, 9])], InvalidAssignment),
        ([(TOPIC_ID, 0, [1, 1])], InvalidAssignment),
        ([(TOPIC_ID, 0, [4]), (TOPIC_ID, 0, [5])], InvalidAssignment),
        ([(TOPIC_ID, 0, [])], NoMove),
    ],
)
def test_impossible_moves_are_refused(
    moves: list[tuple[bytes, int, list[NodeId]]], error: type[Exception]
) -> None:
    with pytest.raises(error):
        begin_moves(a_cluster(), moves)


def test_nothing_is_moved_to_a_broker_that_is_draining_or_was_only_admitted() -> None:
    catalog = a_cluster()
    apply(catalog, drain_broker(catalog, 4, is_draining=True))
    with pytest.raises(InvalidAssignment, match="being drained"):
        move(catalog, [4])
    apply(catalog, drain_broker(catalog, 4, is_draining=False))
    assert move(catalog, [4]).targets == {0: (4,)}
    apply(catalog, catalog.register(a_broker(7, incarnation=0)))
    with pytest.raises(InvalidAssignment, match="never started"):
        move(catalog, [7])


def test_a_drained_broker_may_keep_a_partition_while_its_other_replicas_move() -> None:
    catalog = a_cluster()
    apply(catalog, drain_broker(catalog, 1, is_draining=True))
    assert move(catalog, [1, 2, 4]).targets == {0: (1, 2, 4)}


def test_a_draining_broker_that_restarts_is_still_draining() -> None:
    catalog = a_cluster()
    apply(catalog, drain_broker(catalog, 4, is_draining=True))
    apply(catalog, catalog.register(a_broker(4)))
    assert catalog.brokers[4].is_draining
    assert drain_broker(catalog, 4, is_draining=True) == []


def test_a_broker_that_hosts_something_or_votes_cannot_be_removed() -> None:
    catalog = a_cluster()
    with pytest.raises(BrokerInUse, match="holds partition 0 of topic orders"):
        remove_broker(catalog, 1, [])
    with pytest.raises(BrokerInUse, match="votes on the catalog"):
        remove_broker(catalog, 4, [4, 5, 6])
    with pytest.raises(UnknownBroker):
        remove_broker(catalog, 9, [])
    with pytest.raises(UnknownBroker):
        drain_broker(catalog, 9, is_draining=True)
    apply(catalog, remove_broker(catalog, 4, [1, 2, 3]))
    assert 4 not in catalog.brokers
    assert remove_broker(catalog, 4, [1, 2, 3]) == []  # asked again, because the answer was lost


def test_the_number_of_a_removed_broker_is_never_reused() -> None:
    catalog = a_cluster()
    last = max(catalog.brokers)
    apply(catalog, remove_broker(catalog, last, []))
    again = Catalog()
    apply(again, list(catalog.records()))
    for one in (catalog, again):
        node, records = one.admit(b"n" * 16, "elsewhere", 9092, "")
        assert node == last + 1
        apply(one, records)
        assert one.removed == {last}


def test_a_removed_broker_that_returns_is_refused_with_a_message() -> None:
    catalog = a_cluster()
    apply(catalog, remove_broker(catalog, 4, []))
    with pytest.raises(BrokerRemoved, match="broker 4 was removed from the cluster"):
        catalog.register(a_broker(4))


def test_a_broker_that_is_the_target_of_a_move_cannot_be_removed() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5])
    move(catalog, [])
    with pytest.raises(BrokerInUse):
        remove_broker(catalog, 4, [])


def test_moves_and_draining_survive_in_a_snapshot() -> None:
    catalog = a_cluster()
    move(catalog, [4, 5])
    move(catalog, [], 0)
    apply(catalog, drain_broker(catalog, 6, is_draining=True))
    again = Catalog()
    apply(again, list(catalog.records()))
    assert again.topic("orders") == catalog.topic("orders")
    assert again.brokers == catalog.brokers


def test_a_topic_and_a_broker_in_format_2_can_be_read() -> None:
    catalog = Catalog()
    topic = [4, "orders", TOPIC_ID, [[1, 2]], {}]
    broker = [5, 2, "b2", 9092, "", bytes(16), 7]
    catalog.apply(MachineRecord(b"topic/" + TOPIC_ID, msgspec.msgpack.encode(topic)))
    catalog.apply(MachineRecord(b"broker/2", msgspec.msgpack.encode(broker)))
    assert catalog.topic("orders").targets == {}
    assert not catalog.brokers[2].is_draining
