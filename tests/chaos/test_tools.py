"""The tools of the tests themselves: a fault that does nothing would prove nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.clocks import WallClock
from tests.chaos.disks import PoweredDisk, SmallDisk
from tests.chaos.faults import SYNCS, failing_calls, missing
from tests.chaos.network import Network

pytestmark = pytest.mark.chaos

_NEEDS_MOUNT = pytest.mark.skipif(bool(missing("mkfs.ext4", "losetup")), reason="needs root")
_NEEDS_IP = pytest.mark.skipif(bool(missing("ip")), reason="needs root and ip")
_NEEDS_STRACE = pytest.mark.skipif(bool(missing("strace")), reason="needs root and strace")

_CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), 0.5)
except TimeoutError:
    print("silence")
except ConnectionRefusedError:
    print("reached")
"""

_SYNC = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for line in sys.stdin:
    try:
        os.fsync(file)
        print("synced", flush=True)
    except OSError as error:
        print(error.errno, flush=True)
"""


def reach(network: Network, sender: int, receiver: int) -> str:
    """Try to connect to a port without a listener, and return the result."""
    command = [*network.prefix(sender), sys.executable, "-c", _CONNECT, network.address(receiver)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@_NEEDS_IP
def test_a_cut_separates_two_brokers_and_no_others_until_it_is_healed() -> None:
    with Network(3) as network:
        assert reach(network, 1, 2) == "reached"
        network.cut(1, 2)
        assert reach(network, 1, 2) == reach(network, 2, 1) == "silence"
        assert reach(network, 1, 3) == reach(network, 0, 2) == "reached"
        network.heal()
        assert reach(network, 1, 2) == reach(network, 2, 1) == "reached"


@_NEEDS_IP
def test_a_one_way_cut_lets_the_other_direction_through() -> None:
    with Network(2) as network:
        network.cut_one_way(2, 1)
        hear = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.settimeout(0.5)\n"
        hear += f"s.bind(('{network.address(2)}', 99)); print('bound', flush=True)\n"
        hear += "print(s.recv(9).decode())"
        say = "import socket; socket.socket(type=socket.SOCK_DGRAM)"
        say += f".sendto(b'hello', ('{network.address(2)}', 99))"
        with subprocess.Popen(
            [*network.prefix(2), sys.executable, "-c", hear], stdout=subprocess.PIPE, text=True
        ) as listener:
            assert listener.stdout is not None
            assert listener.stdout.readline() == "bound\n"
            subprocess.run([*network.prefix(1), sys.executable, "-c", say], check=True)
            assert listener.stdout.readline() == "hello\n"
        assert reach(network, 1, 2) == "silence"


@_NEEDS_MOUNT
def test_a_power_loss_loses_exactly_what_was_not_synced(tmp_path: Path) -> None:
    with PoweredDisk(tmp_path / "disk", 16) as disk:
        synced, unsynced = disk.folder / "synced", disk.folder / "unsynced"
        command = [sys.executable, "-c", _SYNC, str(synced)]
        synced.write_text("kept")
        subprocess.run(command, input="\n", text=True, capture_output=True, check=True)
        unsynced.write_text("lost")
        disk.cut_power()
        with pytest.raises(OSError, match=r"."):
            synced.write_text("more")
        disk.restore_power()
        assert synced.read_text() == "kept"
        assert not unsynced.exists() or unsynced.read_text() == ""


@_NEEDS_MOUNT
def test_a_full_disk_accepts_no_byte_until_there_is_room(tmp_path: Path) -> None:
    with SmallDisk(tmp_path / "disk", 4) as disk:
        disk.fill()
        with pytest.raises(OSError, match="No space"):
            (disk.folder / "one").write_bytes(b"x")
        disk.free()
        (disk.folder / "one").write_bytes(b"x")


@_NEEDS_STRACE
def test_syncs_of_another_process_fail_as_long_as_the_fault_lasts(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _SYNC, str(tmp_path / "file")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None

        def sync() -> str:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        assert sync() == "synced"
        with failing_calls(process.pid, SYNCS, "EIO"):
            assert sync() == "5"
        assert sync() == "synced"


@pytest.mark.skipif(bool(missing("cc")), reason="needs a C compiler")
def test_the_wall_clock_jumps_and_the_monotonic_clock_does_not(tmp_path: Path) -> None:
    clock = WallClock(tmp_path, "broker")
    command = [sys.executable, "-c", "import time; print(int(time.time()), time.monotonic())"]

    def ask() -> tuple[float, float]:
        done = subprocess.run(
            command, env={**os.environ, **clock.environment}, capture_output=True, check=True
        )
        wall, monotonic = done.stdout.split()
        return float(wall), float(monotonic)

    wall, monotonic = ask()
    clock.jump(-3600)
    earlier, later = ask()
    assert earlier < wall - 3000
    assert later > monotonic
