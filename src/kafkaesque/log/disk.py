"""The interface between the log and real disks.

Production uses `log/posix_disk.py`; the simulator and the tests use `sim/disk.py`, which can lose
unsynced writes, tear pages, fail and fill up. Paths are relative to the disk's root, parts joined
by "/". Every fault arrives as `OSError`; the log translates it into its own errors.

Durability rules that both implementations keep:
- a file's bytes and its size are durable after a sync of that file;
- a file's name (created, renamed, removed) is durable after a sync of its folder;
- nothing else is promised: unsynced writes may reach the disk in part, in pages, in any order.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkaesque.types import Buffer

Synced = Callable[[OSError | None], None]
"""Called once, later, on the log's own thread; the argument is None when all is durable."""


class File(Protocol):
    """An open file, read and written at explicit positions."""

    @property
    def path(self) -> str:
        """The file's path at the time it was opened or created."""
        ...

    def size(self) -> int:
        """Return the file's length in bytes."""
        ...

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def write(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`; after an error the bytes there are undefined."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        ...

    def modified_ms(self) -> int:
        """Return the wall time of the last change; only a hint, for retention of old files."""
        ...

    def close(self) -> None:
        """Close the file; syncs nothing. Closing twice does no harm."""
        ...


class Disk(Protocol):
    """One folder of the machine, and every operation the log may do in it."""

    def open(self, path: str) -> File:
        """Open an existing file for reading and writing; raises FileNotFoundError."""
        ...

    def create(self, path: str) -> File:
        """Create an empty file; raises FileExistsError."""
        ...

    def list(self, folder: str) -> list[str]:
        """Return the names in `folder`, sorted; none if there is no such folder."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its missing parents; durable on return."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Rename a file within its folder, atomically replacing any file of that name."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; raises FileNotFoundError."""
        ...

    def rename_folder(self, source: str, target: str) -> None:
        """Rename a folder to a free name in the same parent folder; durable on return.

        Nothing in it may be open or being synced. Raises FileNotFoundError, FileExistsError.
        """
        ...

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder; durable after a sync of its parent. Raises OSError."""
        ...

    def location(self) -> str:
        """Return where this disk is, for messages."""
        ...

    def boot_id(self) -> str:
        """Return the ID of the machine's current boot; it changes after a power loss."""
        ...

    def space(self) -> tuple[int, int]:
        """Return the disk's total size and its free space, in bytes."""
        ...

    def sync(self, files: Sequence[File], folders: Sequence[str], done: Synced) -> None:
        """Make these files and folders durable as they are now, then call `done`.

        Returns at once. Writes made after the call may or may not be covered.
        """
        ...

    def sync_now(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Make these durable before returning; for start-up and recovery, never on the hot path."""
        ...
