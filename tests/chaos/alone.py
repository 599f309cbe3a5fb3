"""What happens to one broker alone: it may be away for a while, and forgets nothing."""

from tests.chaos.disks import PoweredDisk, SmallDisk
from tests.chaos.faults import SYNCS, failing_calls
from tests.chaos.scenario import scenario
from tests.chaos.stage import Setting, Stage

ROUNDS = 3


@scenario("B3", "B11", "B21", is_short=True)
def a_broker_alone_is_killed_again_and_again(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.work(0.5)
        stage.kill(1)
        stage.start(1)
        stage.wait_for_progress()


@scenario("B24", "B40", setting=Setting(roles=("confluent-slow", *Setting().roles)))
def a_broker_alone_stands_still(stage: Stage) -> None:
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
def a_broker_alone_loses_its_power(stage: Stage) -> None:
    for _ in range(ROUNDS):
        stage.work(0.5)
        stage.lose_power(1)
        stage.start(1)
        stage.wait_for_progress()


@scenario("B4", setting=Setting(disk=PoweredDisk), needs=("mkfs.ext4", "losetup", "strace"))
def a_sync_fails_on_a_broker_alone(stage: Stage) -> None:
    """It must end by itself: what a failed sync left behind cannot be known while it runs."""
    broker = stage.brokers[1]
    for _ in range(ROUNDS):
        stage.work(0.5)
        with failing_calls(broker.pid, SYNCS, "EIO"):
            stage.count("sync")
            code = broker.wait()
        assert code != 0, "a broker whose disk failed must not say that all is well"
        stage.start(1)
        stage.wait_for_progress()


@scenario(
    "B37",
    setting=Setting(disk=SmallDisk),
    needs=("mount",),
    is_short=True,
    complains=("disk_full folder=* free_bytes=*",),
)
def the_disk_of_a_broker_alone_is_full(stage: Stage) -> None:
    disk = stage.disk(1, SmallDisk)
    for _ in range(2):
        stage.count("full")
        disk.fill()
        stage.work(2)
        assert stage.brokers[1].is_running, stage.brokers[1].last_words()
        disk.free()
        stage.wait_for_progress()


@scenario("B37", "B11", setting=Setting(disk=SmallDisk), needs=("mount",))
def a_broker_alone_is_killed_while_its_disk_is_full(stage: Stage) -> None:
    disk = stage.disk(1, SmallDisk)
    stage.count("full")
    disk.fill()
    stage.work(1)
    stage.kill(1)
    disk.free()
    stage.start(1)
