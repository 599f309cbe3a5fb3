"""Disks of three or five brokers fail: they lose power, fill up, flip bits, or are lost."""

import shutil
from pathlib import Path

from tests.chaos.disks import PoweredDisk, SmallDisk
from tests.chaos.faults import SYNCS, failing_calls
from tests.chaos.job import TOPIC
from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage

POWERED = Setting(brokers=3, disk=PoweredDisk)
MOUNTS = ("mkfs.ext4", "losetup")
ROUNDS = 3


@scenario("B1", "B3", "B11", setting=POWERED, needs=MOUNTS)
def all_three_lose_power_at_once(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.work(1)
        stage.lose_power(1, 2, 3)
        stage.start(1, 2, 3)
        stage.wait_for_progress()


@scenario("B1", "B15", setting=POWERED, needs=MOUNTS)
def the_leader_of_three_loses_power(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        stage.lose_power(leader)
        stage.wait_for_progress()
        stage.start(leader)
        stage.wait_for_progress()


@scenario("B2", "B22", setting=Setting(brokers=5, disk=PoweredDisk), needs=MOUNTS)
def one_of_five_loses_power_while_others_are_paused(stage: Stage) -> None:
    """A voter that forgets what it acknowledged can make two different majorities possible."""
    for _ in range(2):
        leader = stage.leader()
        others = [node for node in stage.brokers if node != leader]
        stage.pause(*others[:2])
        stage.work(2)
        stage.lose_power(others[2])
        stage.resume(*others[:2])
        stage.pause(leader, others[3])
        stage.start(others[2])
        stage.work(3)
        stage.resume(leader, others[3])
        stage.wait_for_progress()


@scenario("B4", setting=POWERED, needs=(*MOUNTS, "strace"))
def a_sync_fails_on_the_leader_of_three(stage: Stage) -> None:
    for _ in range(ROUNDS):
        leader = stage.leader()
        broker = stage.brokers[leader]
        with failing_calls(broker.pid, SYNCS, "EIO"):
            stage.count("sync")
            assert broker.wait() != 0, "it must not go on with a disk that failed"
        stage.wait_for_progress()
        stage.start(leader)
        stage.wait_for_progress()


@scenario("B21", "B37", setting=Setting(brokers=3, disk=SmallDisk), needs=("mount",))
def the_disk_of_the_leader_of_three_is_full(stage: Stage) -> None:
    for _ in range(2):
        disk = stage.disk(stage.leader(), SmallDisk)
        stage.count("full")
        disk.fill()
        stage.work(3)
        assert all(broker.is_running for broker in stage.brokers.values())
        disk.free()
        stage.wait_for_progress()


@scenario("B37", setting=Setting(brokers=3, disk=SmallDisk), needs=("mount",))
def the_disk_of_a_follower_of_three_is_full(stage: Stage) -> None:
    """Writes do not wait for it: the other two are a majority."""
    disk = stage.disk(stage.followers()[0], SmallDisk)
    stage.count("full")
    disk.fill()
    stage.work(3)
    disk.free()


@scenario("B5", setting=Setting(brokers=3))
def bits_flip_in_the_segments_of_one_of_three(stage: Stage) -> None:
    """The others repair the damage when it is found, and then the broker may lead again.

    Only one broker: if a second one were damaged before the first was found, a majority would be.
    """
    stage.work(1)
    node = stage.leader()
    stage.kill(node)
    flip_bits(stage, node, f"{TOPIC}.*/**/*.log")
    stage.start(node)
    stage.wait_for_progress()
    for other in [other for other in stage.brokers if other != node]:
        stage.kill(other)
        stage.start(other)
        stage.wait_for_progress()


@scenario("B6", setting=Setting(brokers=3))
def bits_flip_in_the_catalog_of_one_of_three(stage: Stage) -> None:
    """The broker deletes nothing and is refilled by the others, so its copy counts again.

    Not the first broker: until the catalog has more voters, no other could refill that one.
    """
    node = next(node for node in stage.followers() if node != 1)
    data = stage.brokers[node].place.data
    stage.kill(node)
    flip_bits(stage, node, "cluster-metadata/*.log")
    damaged = {path.read_bytes() for path in data.glob("cluster-metadata/*.log")}
    stage.start(node)
    kept = {path.read_bytes() for path in data.glob("cluster-metadata/*.damaged")}
    assert kept >= damaged, "the damaged files are not kept"
    stage.wait_for_progress()
    other = next(other for other in stage.brokers if other != node)
    stage.kill(other)
    stage.wait_for_progress()
    stage.start(other)


@scenario("B10", setting=Setting(brokers=3))
def the_disk_of_one_of_three_is_lost(stage: Stage) -> None:
    """It returns as a new broker: under its old id it could vote twice in a term."""
    node = stage.followers()[0]
    stage.kill(node)
    stage.wait_for_progress()
    start_over(stage, node)
    assert stage.brokers[node].number not in stage.brokers, "it reuses the id of the lost broker"


def start_over(stage: Stage, node: int) -> None:
    """Start a broker with an empty folder, like a new one that joins the others."""
    stage.count("wipe")
    broker = stage.brokers[node]
    shutil.rmtree(broker.place.data)
    broker.join = next(other.address for other in stage.brokers.values() if other is not broker)
    broker.start()


def flip_bits(stage: Stage, node: int, pattern: str) -> None:
    """Damage long-synced data in all of a broker's files of this kind."""
    stage.count("bit")
    found = [one for one in stage.brokers[node].place.data.glob(pattern) if one.stat().st_size > 99]
    assert found, "there is nothing to damage"
    for path in found:
        flip_a_bit(path)


def flip_a_bit(path: Path) -> None:
    """Flip a bit far from the end of the file."""
    with path.open("r+b") as file:
        at = path.stat().st_size // 3
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))
