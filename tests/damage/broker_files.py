"""Damage to what a whole broker stands on: its journal, its identity, its copy of the catalog."""

from collections.abc import Callable

from kafkaesque.broker.broker import CATALOG_GROUP
from kafkaesque.broker.identity import FolderIdentity, load_identity, save_identity
from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from tests.damage.harms import Files
from tests.damage.matrix import UncheckedWorld
from tests.sim.test_broker_world import create, wait

VICTIM: NodeId = 1
TOPICS = 12

BrokerHarm = Callable[[Files], None]


def _flip_at(path: str, *shares: float) -> BrokerHarm:
    """Turn a bit at each of these shares of a file's length."""

    def harm(files: Files) -> None:
        data = bytearray(files.read(path))
        for share in shares:
            data[int(len(data) * share)] ^= 2
        files.write(path, bytes(data))

    return harm


def _flip_newest(suffix: str, count: int) -> BrokerHarm:
    def harm(files: Files) -> None:
        catalog = Files(disk=files.disk, group=CATALOG_GROUP)
        found = catalog.ending(suffix)[-count:]
        assert len(found) == count, "there are not so many"
        for path in found:
            _flip_at(path, 0.7)(catalog)

    return harm


def _cut_catalog(files: Files) -> None:
    catalog = Files(disk=files.disk, group=CATALOG_GROUP)
    catalog.write(catalog.active, catalog.read(catalog.active)[:-10])


BROKER_HARMS: dict[str, BrokerHarm] = {
    "a bit in the journal": _flip_at("journal", 0.3),
    "a bit in both copies of the journal's state": _flip_at("journal", 0.3, 0.8),
    "a bit in the head of the journal": _flip_at("journal", 0.0),
    "the journal deleted": lambda files: files.remove("journal"),
    "a bit in the identity": _flip_at("identity", 0.7),
    "the identity deleted": lambda files: files.remove("identity"),
    "a bit in the catalog's log": _flip_newest(".log", 1),
    "the catalog's log cut short": _cut_catalog,
    "a bit in the newest snapshot of the catalog": _flip_newest(".machine", 1),
    "a bit in both snapshots of the catalog": _flip_newest(".machine", 2),
}


def play_broker(what: str, brokers: int) -> str:
    """Damage a stopped broker, start it, and say what became of it."""
    world = _filled(brokers)
    machine = world.nodes[VICTIM]
    world.act(machine, machine.stop_cleanly)
    BROKER_HARMS[what](Files(disk=machine.disk, group=""))
    before = _everything(machine)
    try:
        load_identity(machine.disk)
    except LogError:
        return "start: refused"
    world.start(machine)
    if not machine.is_up:
        assert _everything(machine).items() >= before.items(), "a refused start changed something"
        return "start: refused"
    wait(world, lambda: machine.is_ready)
    assert machine.broker is not None
    refilled = machine.broker.refills.done
    wait(world, lambda: is_of_one_mind(world))
    assert len(machine.broker.committed_catalog.machine.topics) == TOPICS
    return "start: refilled" if refilled else "harmless"


def _filled(brokers: int) -> BrokerWorld:
    settings = BrokerSettings(
        brokers=brokers,
        voters=brokers,
        log=LogConfig(snapshot_growth_bytes=300, internal_segment_bytes_max=700),
    )
    world = UncheckedWorld(1, settings)
    wait(world, lambda: len(world.able()) == brokers)
    for number in range(TOPICS):
        assert create(world, VICTIM, f"topic-{number}", partitions=1) is None
    wait(world, lambda: is_of_one_mind(world))
    disk = world.nodes[VICTIM].disk
    wait(world, lambda: sum(n.endswith(".machine") for n in disk.list(CATALOG_GROUP)) == 2)
    identity = FolderIdentity(
        cluster="simulated", node=VICTIM, directory=bytes(16), is_founder=True, has_begun=True
    )
    save_identity(disk, identity)
    return world


def _everything(machine: BrokerNode) -> dict[str, bytes]:
    files = Files(disk=machine.disk, group="")
    paths = [name for name in ("identity",) if name in machine.disk.list("")]
    paths += [
        f"{CATALOG_GROUP}/{name}"
        for name in machine.disk.list(CATALOG_GROUP)
        if name.endswith((".log", ".machine"))
    ]
    return {path: files.read(path) for path in paths}
