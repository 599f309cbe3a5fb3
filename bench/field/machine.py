"""Describes the machine, and its other load."""

import os
import platform
import re
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_KIB = 1024
_IDLE_COLUMNS = (3, 4)


def processor() -> str:
    """Return the processor's name, without its model number."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return re.sub(r"\s+", " ", line.partition(":")[2]).strip()
    return platform.machine()


def memory_bytes() -> int:
    """Return the amount of memory."""
    first = Path("/proc/meminfo").read_text().splitlines()[0]
    return int(first.split()[1]) * _KIB


def free_memory_bytes() -> int:
    """Return the amount of memory that nothing uses, not even the page cache."""
    rows = dict(row.split(":", 1) for row in Path("/proc/meminfo").read_text().splitlines())
    return int(rows["MemFree"].split()[0]) * _KIB


def cores() -> int:
    """Return the number of cores that we may use."""
    return len(os.sched_getaffinity(0))


def load() -> float:
    """Return the load average over the last minute."""
    return os.getloadavg()[0]


def busy_seconds() -> float:
    """Return the processor time of all processes so far."""
    numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(numbers) - sum(numbers[column] for column in _IDLE_COLUMNS)) / _TICKS
