"""Identify the machine's current boot: after a reboot, unsynced writes may be gone."""

import ctypes
import ctypes.util
import sys
import uuid
from pathlib import Path

_LINUX = Path("/proc/sys/kernel/random/boot_id")
_MAC_NAME = b"kern.bootsessionuuid"
_NAME_BYTES_MAX = 64


def read_boot_id() -> str:
    """Return an ID that changes with every boot of the machine.

    If the system provides none, each call returns a new one: then every unclean stop counts as a
    power loss, which is safe.
    """
    try:
        return _LINUX.read_text(encoding="ascii").strip()
    except OSError:
        return _of_mac() if sys.platform == "darwin" else _unknown()


def _of_mac() -> str:
    buffer = ctypes.create_string_buffer(_NAME_BYTES_MAX)
    size = ctypes.c_size_t(_NAME_BYTES_MAX)
    library = ctypes.CDLL(ctypes.util.find_library("c"))
    if library.sysctlbyname(_MAC_NAME, buffer, ctypes.byref(size), None, 0) != 0:
        return _unknown()
    return buffer.value.decode("ascii", "replace")


def _unknown() -> str:
    return str(uuid.uuid1())
