"""The seam between the log and the world's disks.

Production uses `log/posix_disk.py`; the simulator and the tests use `sim/disk.py`, which can lose
un-synced writes, tear pages, fail and fill up. Paths are relative to the disk's root, parts joined
by "/". Whatever the world does wrong arrives as `OSError`; the log turns it into its own errors.

What is durable, and when (the rules that both sides keep):
- bytes written to a file, and its size, are durable after a sync of that file;
- that a file exists under a name (created, renamed, removed) is durable after a sync of its folder;
- nothing else is promised: un-synced writes may reach the disk in part, in pages, in any order.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from kafkaesque.types import Buffer

Synced = Callable[[OSError | None], None]
"""Called once, later, by the thread that owns the log: None when all is durable."""


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
    """One folder of the machine, and everything that the log may do in it."""

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
        """Create a folder and those above it, unless they exist; made durable before it returns."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Give a file another name in its folder, atomically replacing what had that name."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file; raises FileNotFoundError."""
        ...

    def rename_folder(self, source: str, target: str) -> None:
        """Give a folder a name beside it that is free; made durable before it returns.

        Nothing in it may be open or being synced. Raises FileNotFoundError, FileExistsError.
        """
        ...

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder; durable after a sync of the one above. Raises OSError."""
        ...

    def location(self) -> str:
        """Return where this disk is, for people to read."""
        ...

    def boot_id(self) -> str:
        """Return the name of the machine's present run; another one after a loss of power."""
        ...

    def space(self) -> tuple[int, int]:
        """Return how many bytes the disk has in all, and how many of them we may still use."""
        ...

    def sync(self, files: Sequence[File], folders: Sequence[str], done: Synced) -> None:
        """Make these files and folders durable as they are now, then call `done`.

        Returns at once. Writes that happen after the call may or may not be covered.
        """
        ...

    def sync_now(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """Make these durable before returning; for start-up and recovery, never on the hot path."""
        ...
