"""Disks that can fill up, and disks that can lose power; both need root."""

import errno
import fcntl
import os
import struct
import subprocess
from pathlib import Path
from types import TracebackType

_MIB = 1 << 20
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN, which is _IOR('X', 125, __u32)
_NO_LOG_FLUSH = 2
"""Writes nothing more to the disk, not even the file system's journal in memory."""

BALLAST = "ballast"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class _Mounted:
    """A folder with a separate file system; `with` mounts and unmounts it."""

    def __init__(self, folder: Path, mib: int) -> None:
        self.folder = folder
        self._mib = mib

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.unmount()

    def unmount(self) -> None:
        """Unmount it; all processes that used it must have ended."""
        _run("umount", str(self.folder))


class SmallDisk(_Mounted):
    """A disk that can be filled to its last byte."""

    def __enter__(self) -> "SmallDisk":
        self.folder.mkdir()
        _run("mount", "-t", "tmpfs", "-o", f"size={self._mib}m", "tmpfs", str(self.folder))
        return self

    def fill(self) -> None:
        """Fill the disk."""
        with (self.folder / BALLAST).open("wb", buffering=0) as ballast:
            for size in (_MIB, 4096):
                try:
                    while ballast.write(bytes(size)) == size:
                        pass
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        """Make room again."""
        (self.folder / BALLAST).unlink()


class PoweredDisk(_Mounted):
    """An ext4 file system that loses unsynced data when its power is cut."""

    def __enter__(self) -> "PoweredDisk":
        self.folder.mkdir()
        with self._image.open("wb") as image:
            image.truncate(self._mib * _MIB)
        _run("mkfs.ext4", "-q", str(self._image))
        self._mount()
        return self

    @property
    def _image(self) -> Path:
        return self.folder.with_suffix(".image")

    def _mount(self) -> None:
        _run("mount", "-o", "loop", str(self._image), str(self.folder))

    def cut_power(self) -> None:
        """From now on nothing reaches the disk, and every call fails."""
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(folder)

    def restore_power(self) -> None:
        """Mount what is left; all processes that used the disk must have ended."""
        self.unmount()
        self._mount()
