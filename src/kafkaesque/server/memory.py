"""How a process that does nothing but serve keeps its memory."""

import ctypes
import gc

COLLECT_AFTER = 20_000
"""Objects that are made, and not freed, before the collector looks for cycles among them."""

HEAP_KEPT_BYTES = 64 << 20
"""Of freed memory so much stays with the process: what a few dozen large requests take."""

_HEAP_BLOCK_BYTES_MAX = 32 << 20
"""Larger blocks are the system's own business; glibc allows no larger limit."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h of glibc


def settle_memory() -> None:
    """Have the collector of cycles look at what was made since now alone, and less often.

    Nothing on the way of a request leaves cycles behind (`tests/server/test_memory.py`), and all
    that was imported and opened stays: to look through it again and again took a quarter of the
    time of `bench/latency.py`.
    """
    gc.freeze()  # without a last look: the few cycles of starting cost less than finding them
    gc.set_threshold(COLLECT_AFTER, *gc.get_threshold()[1:])
    _keep_heap()


def _keep_heap() -> None:
    """Keep freed memory for the next request, where the allocator can be told to.

    glibc gives the end of its heap back as soon as 128 KiB of it are free. Requests of 1 MB then
    get new pages from the kernel, which clears them, each time: a fifth of the throughput of
    `bench/cluster_traffic.py`.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # not on a Mac, nor with musl
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, HEAP_KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _HEAP_BLOCK_BYTES_MAX)
