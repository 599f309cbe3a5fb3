"""Memory that the machine has to have before anything counts.

The first write to a page of a virtual machine makes its host bring that page, which takes ten times
as long as to write it again, and pages that lie free go back to the host within seconds. Whoever
writes first would be charged for that. So before each measurement as much page cache as it may need
is written, in a file that is deleted at once, and its pages are the next ones to be given out.
"""

import os
from pathlib import Path

from bench.field import machine
from bench.field.workload import MIB, Kind, Plan, Workload

MEMORY_SHARE_MAX = 0.5
"""Of the memory that lies free: what is used already has its pages."""
DISK_SHARE_MAX = 0.25
"""Of what the disk has left. Little of it gets there: the file is gone before that."""
MESSAGES_PER_SECOND_MAX = 4_000_000
"""More small messages than that no producer sends."""
ASIDE_BYTES = 128 * MIB
"""What clients and servers may need for themselves."""
_PIECE = bytes(MIB)


def stored_bytes(plan: Plan, workload: Workload) -> int:
    """Return the most that a measurement may store on one broker."""
    match workload.kind:
        case Kind.REPLAY:  # as fast as loopback almost
            return 2 * plan.bytes_max
        case Kind.LATENCY:
            return int(workload.rate * plan.latency_seconds * workload.size)
        case _:
            most = int(MESSAGES_PER_SECOND_MAX * plan.seconds * workload.size)
            return min(most, plan.bytes_max)


def bytes_to_touch(wanted: int, *, memory_free: int, disk_free: int) -> int:
    """Return how much of what is wanted may be written, in whole pieces."""
    most = min(wanted, int(memory_free * MEMORY_SHARE_MAX), int(disk_free * DISK_SHARE_MAX))
    return max(0, most) // len(_PIECE) * len(_PIECE)


def touch(folder: Path, wanted: int) -> int:
    """Write and delete so much in the folder that holds the data; return how much it was."""
    disk = os.statvfs(folder)
    size = bytes_to_touch(
        wanted,
        memory_free=machine.free_memory_bytes(),
        disk_free=disk.f_bavail * disk.f_frsize,
    )
    path = folder / "touched"
    try:
        with path.open("wb", buffering=0) as file:
            for _ in range(size // len(_PIECE)):
                file.write(_PIECE)
    finally:
        path.unlink(missing_ok=True)
    return size
