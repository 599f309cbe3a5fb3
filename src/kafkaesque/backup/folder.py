"""Locks a backup's folder: one process at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafkaesque.backup.errors import BackupError
from kafkaesque.errors import FolderInUse

LOCK_NAME = "lock"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Lock a folder against other processes; raises FolderInUse, or BackupError if unusable."""
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
