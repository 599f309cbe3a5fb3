"""The events of a broker, provoked on a real log, disk and group."""

import pytest

from kafkaesque.broker.cluster.live_settings import LiveSettings
from kafkaesque.broker.cluster.lost_brokers import LostBrokers, save_lost
from kafkaesque.broker.problems import ProblemKind, problems
from kafkaesque.broker.storage.old_copy_restart import Held
from kafkaesque.broker.storage.store import Store
from kafkaesque.config import BrokerConfig, LogConfig
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.errors import DiskFull as NoRoom
from kafkaesque.events import (
    DamageFound,
    DiskFull,
    DiskHasRoom,
    LeaderElected,
    LeadershipLost,
    LogNotRebuilt,
    LogTruncated,
    OldCopyLacks,
    ReplicaStopped,
    SettingsRefused,
    SlowSync,
    VotersChanged,
)
from kafkaesque.log.errors import CorruptLog, DiskFailed
from kafkaesque.log.journal_records import OldCopyFound
from kafkaesque.machines.catalog.catalog import Catalog
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.disk import DiskFaults, SimDisk
from tests.broker.brokers import BrokerNode
from tests.broker.nodes import ALONE, Node, a_batch, append, entry, heartbeat
from tests.heard import Heard
from tests.log.logs import TINY

OPENED = Entry(0, 1, 1, TermOpened())


@pytest.mark.event("leader_elected", "leadership_lost")
def test_a_new_leader_reports_its_election_and_later_who_replaced_it() -> None:
    node = Node()
    node.elect()
    term = node.replica.raft.term
    assert node.heard.of(LeaderElected) == [LeaderElected(partition="orders", term=term)]
    assert node.heard.of(LeadershipLost) == []
    node.step(heartbeat(term + 1))
    lost = LeadershipLost(partition="orders", term=term + 1, leader=2)
    assert node.heard.of(LeadershipLost) == [lost]


def test_a_partition_with_one_replica_reports_no_election() -> None:
    node = Node(ALONE)
    node.replica.campaign()
    node.sync()
    assert node.replica.is_serving
    assert node.heard.of(LeaderElected) == []


@pytest.mark.event("voters_changed")
def test_a_change_of_voters_is_reported_when_it_is_committed() -> None:
    node = Node()
    node.elect()
    node.replica.change_voters(Voters(voters=(1, 2, 3), learners=(4,)), lambda _: None)
    node.after_event()
    assert node.heard.of(VotersChanged) == []
    node.accepts(2, node.replica.raft.end)
    changed = VotersChanged(partition="orders", voters=(1, 2, 3), learners=(4,))
    assert node.heard.of(VotersChanged) == [changed]


@pytest.mark.event("log_truncated")
def test_cut_records_are_counted_and_cut_marks_are_not_reported() -> None:
    node = Node()
    node.step(append(1, 0, OPENED, entry(1, 1, a_batch(b"a", b"b", term=1)), commit=1))
    kept = Entry(1, 2, 2, TermOpened())
    node.step(append(2, 1, kept, prev_term=1, commit=1))
    cut = LogTruncated(partition="orders", offset=0, records=2)
    assert node.heard.of(LogTruncated) == [cut]
    node.step(append(3, 1, Entry(1, 2, 3, TermOpened()), prev_term=1, commit=1))
    assert node.heard.of(LogTruncated) == [cut]


@pytest.mark.complains("replica_stopped partition=*")
@pytest.mark.event("replica_stopped")
def test_a_replica_that_stops_reports_why() -> None:
    node = BrokerNode()
    node.create("orders")
    replica = node.broker.partition("orders", 0).replica
    replica.stop(DiskFailed("the disk is gone"))
    stopped = ReplicaStopped(partition=replica.group, reason="the disk is gone")
    assert node.heard.of(ReplicaStopped) == [stopped]
    (damaged,) = (one for one in problems(node.broker) if one.kind is ProblemKind.DAMAGED)
    assert damaged.text == "the copy of orders-0 cannot be used: the disk is gone"
    catalog = node.broker.replicas.by_group[CATALOG_GROUP]
    catalog.stop(DiskFailed("all of it"))
    (damaged,) = (one for one in problems(node.broker) if one.kind is ProblemKind.DAMAGED)
    assert damaged.text == "the copy of the catalog, orders-0 cannot be used: all of it"


@pytest.mark.complains("damage_found partition=orders *", "damage_not_noted partition=orders *")
@pytest.mark.event("damage_found", "damage_not_noted")
def test_damage_that_cannot_be_noted_on_disk_is_still_reported() -> None:
    node = Node()
    node.elect()
    node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes)
    error = CorruptLog("orders/00000000000000000000.log", 40, "a bit flipped", offset=0)
    node.replica.damaged(error, 0)
    (found,) = node.heard.of(DamageFound)
    assert (found.partition, found.offset) == ("orders", 0)
    assert "damaged at byte 40: a bit flipped" in found.reason


@pytest.mark.complains("disk_full folder=simulated free_bytes=*")
@pytest.mark.event("disk_full", "disk_has_room")
def test_a_full_disk_is_reported_once_when_it_fills_and_once_when_it_has_room() -> None:
    node = BrokerNode()
    node.create("orders")
    node.disk.faults = DiskFaults(full_at_bytes=node.disk.used_bytes + 20)
    with pytest.raises(NoRoom):
        node.produce("orders", b"x" * 100)
    node.tick(5)
    assert [one.folder for one in node.heard.of(DiskFull)] == ["simulated"]
    assert node.heard.of(DiskHasRoom) == []
    node.disk.faults = DiskFaults()
    node.tick(5)
    assert len(node.heard.of(DiskFull)) == len(node.heard.of(DiskHasRoom)) == 1


@pytest.mark.event("slow_sync")
def test_a_slow_sync_is_reported() -> None:
    node = BrokerNode()
    node.create("orders")
    limit_ms = LogConfig().slow_sync_ms
    node.holds_syncs = True
    for took_ms in (limit_ms - 1, limit_ms):
        node.produce("orders", b"a")
        node.clock.ms += took_ms
        node.sync()
    assert node.heard.of(SlowSync) == [SlowSync(took_ms=limit_ms)]


@pytest.mark.complains("settings_refused reason=*")
@pytest.mark.event("settings_refused")
def test_inconsistent_settings_from_another_broker_are_refused_and_reported() -> None:
    heard = Heard()
    live = LiveSettings(BrokerConfig(), heard)
    live.take({"group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "5"})
    assert live.config == BrokerConfig()
    (refused,) = heard.of(SettingsRefused)
    assert "group.min.session.timeout.ms" in refused.reason


@pytest.mark.complains(
    "old_copy peer=2 *", "old_copy_lacks partition=gone/0", "log_not_rebuilt partition=bad/0 *"
)
@pytest.mark.event("old_copy", "old_copy_lacks", "log_not_rebuilt")
def test_an_old_copy_reports_the_partitions_that_it_lacks_or_cannot_rebuild() -> None:
    node = BrokerNode()
    store = node.broker._store
    store.forget(CATALOG_GROUP)
    store.journal.add(OldCopyFound(group="", peer=2))
    store.journal.write_now()
    node.disk.kill()
    store = Store.open(node.disk, TINY, node.clock, 1, node.failures.append, node.heard)
    node.disk.make_folder("bad/0")
    file = node.disk.create("bad/0/00000000000000000000.log")
    terms = (5, 5, 3, 3)  # terms never decrease, so one of the two is damaged
    batches = [a_batch(b"a", base=base, term=term) for base, term in enumerate(terms)]
    file.write(0, b"".join(batches))
    held = Held(voters=Voters(voters=(1,)), is_alone=True)
    store.settle({"gone/0": held, "bad/0": held})
    assert node.heard.of(OldCopyLacks) == [OldCopyLacks(partition="gone/0")]
    (found,) = node.heard.of(LogNotRebuilt)
    assert found.partition == "bad/0"


@pytest.mark.complains("lost_brokers_kept reason=*")
@pytest.mark.event("lost_brokers_drained", "lost_brokers_kept")
def test_a_note_of_lost_brokers_that_cannot_be_removed_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = BrokerNode()
    heard = Heard()
    save_lost(node.disk, [3], heard)
    lost = LostBrokers(node.disk, Catalog, lambda *_: None, heard)
    lost.start()

    def fails(_disk: SimDisk, path: str) -> None:
        raise OSError(5, "it cannot be removed", path)

    with monkeypatch.context() as broken:
        broken.setattr(SimDisk, "remove", fails)
        lost.tick()
