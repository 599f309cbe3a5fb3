"""Touches memory before a measurement, so that its cost counts for no system.

The first write to a page of a virtual machine makes its host provide that page, which takes ten
times as long as writing it again, and free pages return to the host within seconds. The first
writer would be charged for that. So before each measurement as much page cache as it may need is
written, in a file that is deleted at once, and its pages are the next ones to be allocated.
"""

import os
from pathlib import Path

from bench.field import machine
from bench.field.workload import MIB, Kind, Plan, Workload

MEMORY_SHARE_MAX = 0.5
"""Share of the free memory: used memory already has its pages."""
DISK_SHARE_MAX = 0.25
"""Share of the free disk space. Little is written to disk: the file is deleted before."""
MESSAGES_PER_SECOND_MAX = 4_000_000
"""No producer sends more small messages than that."""
ASIDE_BYTES = 128 * MIB
"""What clients and servers may need for themselves."""
_PIECE = bytes(MIB)


def stored_bytes(plan: Plan, workload: Workload) -> int:
    """Return the most that a measurement may store on one broker."""
    match workload.kind:
        case Kind.REPLAY:  # almost as fast as loopback
            return 2 * plan.bytes_max
        case Kind.LATENCY:
            return int(workload.rate * plan.latency_seconds * workload.size)
        case _:
            most = int(MESSAGES_PER_SECOND_MAX * plan.seconds * workload.size)
            return min(most, plan.bytes_max)


def bytes_to_touch(wanted: int, *, memory_free: int, disk_free: int) -> int:
    """Return how much of `wanted` may be written, in whole pieces."""
    most = min(wanted, int(memory_free * MEMORY_SHARE_MAX), int(disk_free * DISK_SHARE_MAX))
    return max(0, most) // len(_PIECE) * len(_PIECE)


def touch(folder: Path, wanted: int) -> int:
    """Write and delete this much in the data's folder; return the amount."""
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
