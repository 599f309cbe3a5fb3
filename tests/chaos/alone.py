"""Faults of a single broker: it may be away for a while, but it loses nothing."""

from tests.chaos.disks import PoweredDisk, SmallDisk
from tests.chaos.faults import SYNCS, failing_calls
from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage

ROUNDS = 3


@scenario("B3", "B11", "B21", is_short=True)
def a_single_broker_is_killed_again_and_again(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.work(0.5)
        stage.kill(1)
        stage.start(1)
        stage.wait_for_progress()


@scenario("B24", "B40", setting=Setting(roles=("confluent-slow", *Setting().roles)))
def a_single_broker_is_paused(stage: Stage) -> None:
    for seconds in (1, 3):
        stage.pause(1)
        stage.work(seconds)
        stage.resume(1)
        stage.wait_for_progress()


@scenario(
    *("B1", "B3", "B7", "B8"),
    setting=Setting(disk=PoweredDisk),
    needs=("mkfs.ext4", "losetup"),
    is_short=True,
)
def a_single_broker_loses_power(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.work(0.5)
        stage.lose_power(1)
        stage.start(1)
        stage.wait_for_progress()


@scenario("B4", setting=Setting(disk=PoweredDisk), needs=("mkfs.ext4", "losetup", "strace"))
def a_sync_fails_on_a_single_broker(stage: Stage) -> None:
    """The broker must stop: while it runs, it cannot know what a failed sync left on the disk."""
    broker = stage.brokers[1]
    for _ in range(ROUNDS):
        stage.work(0.5)
        with failing_calls(broker.pid, SYNCS, "EIO"):
            stage.count("sync")
            code = broker.wait()
        assert code != 0, "a broker whose disk failed must not exit successfully"
        stage.start(1)
        stage.wait_for_progress()


@scenario(
    "B37",
    setting=Setting(disk=SmallDisk),
    needs=("mount",),
    is_short=True,
    complains=("disk_full folder=* free_bytes=*",),
)
def the_disk_of_a_single_broker_is_full(stage: Stage) -> None:
    disk = stage.disk(1, SmallDisk)
    for _ in range(2):
        stage.count("full")
        disk.fill()
        stage.work(2)
        assert stage.brokers[1].is_running, stage.brokers[1].last_words()
        disk.free()
        stage.wait_for_progress()


@scenario("B37", "B11", setting=Setting(disk=SmallDisk), needs=("mount",))
def a_single_broker_is_killed_while_its_disk_is_full(stage: Stage) -> None:
    disk = stage.disk(1, SmallDisk)
    stage.count("full")
    disk.fill()
    stage.work(1)
    stage.kill(1)
    disk.free()
    stage.start(1)
