"""Real brokers with records in them, saved and restored; run as a program it dies on the way.

python -m tests.backup.clusters save|restore FOLDER BOOTSTRAP MOVES

kills itself with SIGKILL after that many steps of progress.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from kafkaesque.backup.limits import BackupLimits
from kafkaesque.backup.manifest import Backup
from kafkaesque.backup.plan import Wanted
from kafkaesque.backup.restore import Restored, Restorer, What
from kafkaesque.backup.save import Saver, Surroundings
from kafkaesque.backup.watch import Watch
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import EARLIEST, LATEST
from kafkaesque.clock import SystemClock
from kafkaesque.record.build import PLAIN, BatchTraits, build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import Codec

NOW_MS = SystemClock().now_ms()
SMALL = BackupLimits(chunk_bytes_max=2_000, fetch_bytes_max=1_000)
"""Several chunks for a few records."""

Seen: TypeAlias = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""What must be the same after a restore: key, value, headers and timestamp."""


class Notes(Watch):
    """Keeps the reported progress."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)


class Fatal(Watch):
    """Kills the process after some steps."""

    def __init__(self, moves: int) -> None:
        self._left = moves

    def moved(self, *, amount: int, size: int) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def around(watch: Watch | None = None, limits: BackupLimits = SMALL) -> Surroundings:
    return Surroundings(
        clock=SystemClock(), sleep=time.sleep, watch=watch or Watch(), limits=limits
    )


def save(
    bootstrap: str, folder: Path, wanted: Wanted | None = None, watch: Watch | None = None
) -> Backup:
    with Admin(bootstrap) as admin:
        return Saver(admin, folder, around(watch)).run(wanted or Wanted())


def restore(
    bootstrap: str, folder: Path, what: What | None = None, watch: Watch | None = None
) -> Restored:
    with Admin(bootstrap) as admin:
        return Restorer(admin, folder, around(watch)).run(what or What())


def die(verb: str, folder: Path, bootstrap: str, moves: int) -> None:
    """Save or restore in a process that is killed after some steps."""
    words = [sys.executable, "-m", "tests.backup.clusters", verb, str(folder), bootstrap]
    done = subprocess.run([*words, str(moves)], check=False)
    assert done.returncode == -signal.SIGKILL


def some_records(count: int, *, name: str = "r", time_ms: int = NOW_MS) -> list[Record]:
    return [
        Record(
            offset=number,
            timestamp_ms=time_ms + number,
            key=None if number % 3 == 0 else f"{name}-key-{number}".encode(),
            value=None if number % 7 == 6 else f"{name}-value-{number}".encode() * 3,
            headers=(("h", b"x"), ("h", None)) if number % 2 else (),
        )
        for number in range(count)
    ]


def put(
    admin: Admin,
    topic: str,
    partition: int,
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    per_batch: int = 5,
    traits: BatchTraits = PLAIN,
) -> None:
    """Append records in batches of a few."""
    for first in range(0, len(records), per_batch):
        batch = build_batch(records[first : first + per_batch], codec=codec, traits=traits)
        admin.batches.produce(topic, partition, batch)


def seen(records: Iterable[Record]) -> list[Seen]:
    return [(one.key, one.value, one.headers, one.timestamp_ms) for one in records]


def everything(admin: Admin, topic: str) -> dict[int, list[Record]]:
    """Return all records of a topic that a reader sees."""
    found: dict[int, list[Record]] = {}
    info = admin.topics.describe(topic)
    starts = admin.topics.offsets(info.places, EARLIEST)
    ends = admin.topics.offsets(info.places, LATEST)
    for place in info.places:
        rows: list[Record] = []
        position = starts[place]
        while position < ends[place]:
            batches = admin.batches.fetch(*place, position).batches
            for view in batches:
                rows += [one for one in read_records(view) if one.offset >= position]
                position = view.end_offset
        found[place[1]] = rows
    return found


def contents(bootstrap: str, topic: str) -> dict[int, list[Seen]]:
    with Admin(bootstrap) as admin:
        return {number: seen(rows) for number, rows in everything(admin, topic).items()}


if __name__ == "__main__":
    verb, folder, bootstrap, moves = sys.argv[1:]
    call = save if verb == "save" else restore
    call(bootstrap, Path(folder), None, Fatal(int(moves)))
