"""The problems that a broker finds in itself."""

import pytest

from kafkaesque.broker.problems import ProblemKind, problems
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.config import BrokerConfig, ProducerConfig
from kafkaesque.entry import Voters
from kafkaesque.log.errors import CorruptLog
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from tests.broker.brokers import BrokerNode
from tests.broker.partitions import numbered


def kinds(node: BrokerNode) -> list[ProblemKind]:
    return [one.kind for one in problems(node.broker)]


def test_a_healthy_broker_reports_no_problems() -> None:
    node = BrokerNode()
    node.create("orders", 2)
    node.tick(3)
    assert kinds(node) == []


def test_a_full_disk_is_reported_while_a_write_waits_for_it() -> None:
    node = BrokerNode()
    node.create("orders")
    node.tick(3)
    log = node.broker.partition("orders", 0).replica.log
    log.is_full = True
    (found,) = problems(node.broker)
    assert found.kind is ProblemKind.DISK_FULL
    assert "has no room" in found.text
    log.is_full = False
    assert kinds(node) == []


@pytest.mark.complains(
    "partition_offline partition=orders.*/0 reason=*",
)
def test_a_damaged_partition_is_named_with_the_reason_and_has_no_leader() -> None:
    node = BrokerNode()
    node.create("orders", 2)
    node.produce("orders", b"a" * 40)
    node.tick(3)
    (folder,) = node.folders()
    node.broker.stop()
    node.disk.kill()
    node.disk.open(f"{folder}/0/00000000000000000000.log").truncate(90)
    node.start()
    node.tick(3)
    damaged, leaderless = problems(node.broker)
    assert (damaged.kind, leaderless.kind) == (ProblemKind.DAMAGED, ProblemKind.LEADERLESS)
    assert damaged.text.startswith("the copy of orders-0 cannot be used: this partition is offline")
    assert leaderless.text == "no leader for orders-0"


def harm(replica: Replica, offset: int) -> None:
    replica.damaged(CorruptLog(f"{replica.group}/x", 70, "wrong checksum"), offset)


@pytest.mark.complains("damage_found partition=* offset=0 reason=*")
def test_damage_in_the_only_copy_is_reported_and_clients_are_not_sent_away() -> None:
    node = BrokerNode()
    node.create("orders", 2)
    node.produce("orders", b"a" * 40)
    node.tick(3)
    harm(node.broker.partition("orders", 1).replica, 0)
    (found,) = problems(node.broker)
    assert found.kind is ProblemKind.DAMAGED
    assert found.text == (
        "the only copy of orders-1 is damaged: reads of lost records fail, "
        "everything else is served"
    )
    assert found.kind.is_final
    assert not found.kind.concerns_all


@pytest.mark.complains("damage_found partition=* offset=0 reason=*")
def test_damage_in_the_catalog_is_reported_too() -> None:
    node = BrokerNode()
    node.tick(3)
    harm(node.broker.replicas.by_group[CATALOG_GROUP], 0)
    (found,) = problems(node.broker)
    assert found.text.startswith("the catalog cannot be served, because the only copy is damaged: ")


@pytest.mark.complains("damage_found partition=* offset=0 reason=*")
def test_damage_that_other_copies_will_repair_is_reported_as_such() -> None:
    node = BrokerNode()
    node.create("orders")
    node.tick(3)
    replica = node.broker.partition("orders", 0).replica
    replica.raft.change_voters(Voters(voters=(1, 2)))
    harm(replica, 0)
    found = problems(node.broker)[0]
    assert found.text == (
        "the copy of orders-0 is damaged: lost records are restored from another copy"
    )


def test_a_limit_that_is_nearly_reached_is_reported_before_requests_are_refused() -> None:
    node = BrokerNode(config=BrokerConfig(producers=ProducerConfig(all_max=10)))
    node.create("orders")
    node.tick(3)
    for producer_id in range(9):
        batch = memoryview(numbered(0, producer_id=producer_id))
        node.broker.partition("orders", 0).append(batch, lambda _: None)
        node.after_event()
    node.tick(3)
    (found,) = problems(node.broker)
    assert found.kind is ProblemKind.CROWDED
    assert "producers" in found.text
