"""Memory tuning for a process that only serves."""

import ctypes
import gc

COLLECT_AFTER = 20_000
"""Allocations minus frees before the collector looks for new cycles."""

HEAP_KEPT_BYTES = 64 << 20
"""Freed memory that the process keeps: the use of a few dozen large requests."""

_HEAP_BLOCK_BYTES_MAX = 32 << 20
"""Larger blocks go straight to the system; glibc allows no higher limit."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def settle_memory() -> None:
    """Let the garbage collector check only objects created from now on, and less often.

    Request handling leaves no cycles (`tests/server/test_memory.py`), and everything imported and
    opened stays: scanning it again and again took a quarter of the time of `bench/latency.py`.
    """
    gc.freeze()  # without collecting first: the few cycles of startup cost less than finding them
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    _keep_heap()


def _keep_heap() -> None:
    """Keep freed memory for the next request, if the allocator supports it.

    glibc returns the end of its heap once 128 KiB of it are free. Each request of 1 MB then gets
    new pages, which the kernel clears: a fifth of the throughput of `bench/cluster_traffic.py`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not on macOS or with musl
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, HEAP_KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _HEAP_BLOCK_BYTES_MAX)
