"""Damage found at run time in a log that a machine is built from: it never stops the broker."""

import pytest

from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.problems import ProblemKind, problems
from kafkaesque.broker.replication.failures import StateLost, can_be_mended
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import NotLeader
from kafkaesque.log import snapshot
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.machines.transactions.transaction_commands import Added, Ended
from kafkaesque.raft.raft import Role
from tests.broker.brokers import BrokerNode
from tests.broker.nodes import ALONE, GROUP, Node, heartbeat
from tests.broker.test_machine_follower import Followed, following
from tests.broker.test_machine_host import Hosted
from tests.broker.test_transaction_coordinator import AGE_MS, Led

pytestmark = pytest.mark.complains("damage_found partition=orders offset=*")


def flip(node: Node, place: int = -5) -> None:
    """Change a bit of the newest segment, or change it back."""
    path = node.segment(-1)
    file = node.disk.open(path)
    size = file.size()
    file.close()
    node.disk.flip_bit(path, place % size, 3)


def mend(node: Node) -> None:
    flip(node)
    node.replica.damage.clear(0, node.replica.log.end_offset + 1)
    node.replica.mended()


def test_a_follower_that_cannot_take_a_snapshot_carries_on_and_takes_it_after_the_repair() -> None:
    led = Led()
    node = led.node
    end = node.replica.log.end
    node.step(heartbeat(node.replica.raft.term + 1, node.replica.raft.end))
    flip(node)

    led.follow_for_two_ages()
    assert node.failures == [] and node.replica.error is None
    assert node.replica.damage.found and not node.replica.raft.may_lead
    assert node.replica.log.end == end
    assert snapshot.offsets(node.disk, node.replica.group, MACHINE) == []
    mend(node)
    led.follow_for_two_ages()
    assert snapshot.offsets(node.disk, node.replica.group, MACHINE) != []
    assert not node.replica.damage.found


def test_a_replica_that_cannot_read_the_machine_it_would_host_steps_down() -> None:
    led = Led()
    node = led.node
    node.step(heartbeat(node.replica.raft.term + 1, node.replica.raft.end))
    flip(node)
    node.elect()
    assert node.failures == [] and node.replica.error is None
    assert node.replica.damage.found
    assert node.replica.raft.role is Role.FOLLOWER and not led.coordinator.is_hosted
    mend(node)
    node.elect()
    assert led.coordinator.is_hosted


def test_a_copy_of_a_machine_waits_at_damage_until_it_is_repaired() -> None:
    followed = following()
    node = followed.node
    followed.write(1, "a", "1", commit=1)
    flip(node)
    node.step(heartbeat(1, 2))
    node.step(heartbeat(1, 2))
    assert followed.failures == [] and node.replica.damage.found
    assert list(followed.copy.machine.records()) == []
    followed.copy.tick()
    mend(node)
    followed.copy.tick()
    assert [record.key for record in followed.copy.machine.records()] == [b"a"]
    assert followed.changes


def test_the_only_replica_of_an_unreadable_machine_leads_without_it() -> None:
    hosted = Hosted()
    assert hosted.write("a", "1") == [Outcome.COMMITTED]
    node = hosted.node
    node.restart()
    flip(node)
    host = hosted.start()
    assert hosted.failures == [] and node.replica.damage.found
    assert node.replica.is_serving and not host.is_hosted
    with pytest.raises(NotLeader):
        hosted.write("b", "2")
    hosted.tick()


@pytest.mark.complains("damage_found partition=*")
def test_a_lone_broker_with_a_damaged_catalog_reports_it_and_serves() -> None:
    node = BrokerNode()
    node.create("orders")
    node.tick(3)
    replica = node.broker.replicas.by_group[CATALOG_GROUP]
    replica.damaged(CorruptLog(CATALOG_GROUP, 0, "a bit has changed", offset=0))
    node.tick(3)
    (found,) = problems(node.broker)
    assert found.kind is ProblemKind.DAMAGED
    assert found.text.startswith("the catalog cannot be served, because the only copy is damaged: ")
    node.produce("orders", b"a")
    assert node.failures == []


def test_a_log_damaged_at_its_new_start_is_not_trimmed_and_the_tick_goes_on() -> None:
    led = Led()
    node, log = led.node, led.node.replica.log
    for _ in range(2):
        assert isinstance(led.end(), Ended)
        _, places, told = led.markers.asked.pop()
        told(places[0], None)
        led.agree()
        led.coordinator._host.tick()
        led.clock.ms += AGE_MS
        led.coordinator._host.tick()
        node.sync()
        assert isinstance(led.add(), Added)
    segment, _ = log.segments.span(led.node.store.snapshots(GROUP).needed_from())
    zero(node, segment.path)
    led.coordinator.tick()
    assert log.start.offset == 0 and node.replica.damage.found
    led.coordinator.tick()
    assert node.failures == [] and node.replica.error is None


def zero(node: Node, path: str) -> None:
    file = node.disk.open(path)
    file.write(0, bytes(file.size()))
    file.close()


def test_a_missing_state_is_reported_and_not_treated_as_damage() -> None:
    with pytest.raises(StateLost) as lost:
        MachineSnapshots(Node(ALONE).disk, GROUP, Followed().config).load(3, 5)
    assert not can_be_mended(lost.value)


def test_a_machine_without_its_state_stops_the_broker() -> None:
    hosted = Hosted()
    for value in "123":
        hosted.write("a", value)
    hosted.node.replica.log.trim(2)
    hosted.node.sync()
    hosted.start()
    assert [type(error) for error in hosted.failures] == [StateLost]
    assert not hosted.node.replica.damage.found
