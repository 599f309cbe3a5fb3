"""The folder of a backup: one process at a time, and nothing else in it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkaesque.errors import BackupError, FolderInUse

LOCK_NAME = "lock"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Keep other processes out of a folder; raises FolderInUse, and BackupError if it cannot be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(root / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise BackupError(f"{root} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUse(str(root)) from None
        yield
    finally:
        os.close(descriptor)
