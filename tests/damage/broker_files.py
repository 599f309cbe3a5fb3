"""Damage to the files of a whole broker: its journal, its identity, its copy of the catalog."""

import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from kafkaesque.broker.storage.identity import PATH as IDENTITY
from kafkaesque.broker.storage.identity import FolderIdentity, load_identity, save_identity
from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError
from kafkaesque.log.posix_disk import LOCK_NAME
from kafkaesque.log.segment import LOG_SUFFIX
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.broker_run import is_of_one_mind
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.disk import SimDisk
from kafkaesque.testing.ports import HOST
from kafkaesque.types import NodeId
from tests.damage.harms import Files
from tests.damage.matrix import MEND_STEPS_MAX, Cell, Heard, Moment, UncheckedWorld, scrub
from tests.sim.test_broker_world import broker_of, create, wait

VICTIM: NodeId = 1
TOPICS = 12
SETTLE_STEPS = 2_000
REFUSE_SECONDS_MAX = 60
REFUSED = "refused"

BrokerHarm = Callable[[Files], None]


def _flip_at(path: str, *shares: float) -> BrokerHarm:
    """Flip a bit at each of these fractions of a file's length."""

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
    "a bit in the identity": _flip_at(IDENTITY, 0.7),
    "the identity deleted": lambda files: files.remove(IDENTITY),
    "a bit in the catalog's log": _flip_newest(LOG_SUFFIX, 1),
    "the catalog's log cut short": _cut_catalog,
    "a bit in the newest snapshot of the catalog": _flip_newest(".machine", 1),
    "a bit in both snapshots of the catalog": _flip_newest(".machine", 2),
}


def play_broker(what: str, brokers: int, moment: Moment) -> Cell:
    """Damage a broker, let it start, work, scrub and start again; return the result."""
    with Heard() as heard:
        return _Life(what, brokers, moment, heard).play()


class _Life:
    """One damaged broker, from the damage to its next start."""

    def __init__(self, what: str, brokers: int, moment: Moment, heard: Heard) -> None:
        self._what = what
        self._moment = moment
        self._heard = heard
        self._is_alone = brokers == 1
        self._world = _filled(brokers)
        self._machine = self._world.nodes[VICTIM]
        self._cell = Cell()

    def play(self) -> Cell:
        machine, world = self._machine, self._world
        if self._moment is Moment.START:
            world.act(machine, machine.stop_cleanly)
        before = everything(machine.disk)
        BROKER_HARMS[self._what](Files(disk=machine.disk, group=""))
        after = everything(machine.disk)
        damaged = {path: data for path, data in after.items() if before[path] != data}
        assert damaged or before.keys() != after.keys(), "nothing is damaged"
        if self._moment is Moment.START and not self._starts("start"):
            return self._cell
        self._work()
        self._heard.phase = "scrub"
        scrub(world, machine)
        world.act(machine, machine.stop_cleanly)
        if not self._starts("next start"):
            return self._cell
        self._judge(damaged)
        return self._cell

    def _starts(self, phase: str) -> bool:
        """Start it; return whether it serves, and record a refused start."""
        machine, world = self._machine, self._world
        self._heard.phase = phase
        before = everything(machine.disk)
        with suppress(LogError):
            load_identity(machine.disk)  # like the process of the simulated broker
            world.start(machine)
        if machine.is_up:
            wait(world, lambda: machine.is_ready)
            wait(world, lambda: is_of_one_mind(world))
            world.run(SETTLE_STEPS)
            return True
        self._cell.noticed, self._cell.result = phase, REFUSED
        if everything(machine.disk) != before:
            self._cell.faults.append("a refused start changed something")
        self._cell.faults += _surprises_of_a_process(before)
        return False

    def _work(self) -> None:
        """Use the catalog."""
        self._heard.phase = "work"
        assert create(self._world, VICTIM, "one-more", partitions=1) is None
        wait(self._world, lambda: is_of_one_mind(self._world))

    def _judge(self, damaged: dict[str, bytes]) -> None:
        cell, group = self._cell, CATALOG_GROUP
        catalog = broker_of(self._world, VICTIM).replicas.by_group[group]
        if not self._is_alone:
            self._world.run_until(lambda: not catalog.damage.found, MEND_STEPS_MAX)
        for node in self._world.nodes:
            topics = broker_of(self._world, node).committed_catalog.machine.topics
            if len(topics) != TOPICS + 1:
                cell.faults.append(f"broker {node} knows {len(topics)} topics")
        cell.noticed = self._heard.groups.get(group, "")
        is_damaged = bool(catalog.damage.found) or catalog.error is not None
        if not cell.noticed:
            cell.result = "harmless"
            if self._is_still(damaged):
                cell.faults.append("remaining damage was not noticed")
        elif group in self._heard.refilled:
            cell.result = "refilled"
        else:
            cell.result = "noted" if self._is_alone and is_damaged else "mended"
        if is_damaged and not self._is_alone:
            cell.faults.append("it is not repaired in the end")

    def _is_still(self, damaged: dict[str, bytes]) -> bool:
        """Whether a segment is still damaged; other files are skipped, or rebuilt."""
        now = everything(self._machine.disk)
        return any(
            path.endswith(LOG_SUFFIX) and now.get(path, b"").startswith(data)
            for path, data in damaged.items()
        )


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


def everything(disk: SimDisk) -> dict[str, bytes]:
    """Return the contents of every file of a disk."""
    files = Files(disk=disk, group="")
    folders = disk.image().keys()
    paths = [f"{folder}/{name}".lstrip("/") for folder in folders for name in disk.list(folder)]
    return {path: files.read(path) for path in paths if path not in folders}


def _surprises_of_a_process(files: dict[str, bytes]) -> list[str]:
    """Start a real broker on these files: it must refuse, say why, and change nothing."""
    with tempfile.TemporaryDirectory(prefix="kafkaesque-damage-") as name:
        folder = Path(name)
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        command = [sys.executable, "-m", "kafkaesque", "serve", "--data", name]
        try:
            done = subprocess.run(
                [*command, "--listen", HOST, "--port", "0"],
                capture_output=True,
                text=True,
                timeout=REFUSE_SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return ["a process starts"]
        surprises = []
        if done.returncode == 0 or not done.stderr or "Traceback" in done.stderr:
            surprises.append(f"a process ends with {done.returncode}: {done.stderr}")
        there = {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.glob("**/*")
            if path.is_file() and path.name != LOCK_NAME
        }
        if there != files:
            surprises.append("a process that refuses changed something")
        return surprises
