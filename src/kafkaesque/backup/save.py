"""Makes a backup while the brokers run, and resumes an interrupted one.

    nothing ──plan──> plan.json ──chunk by chunk──> all chunks ──> manifest.json

The plan is written first and holds for every later attempt; a chunk with its final name is whole;
the manifest comes last. So a folder with a manifest is a complete backup, and one with only a plan
is unfinished.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kafkaesque.backup.chunk import ChunkWriter, scan_chunk
from kafkaesque.backup.committed import committed
from kafkaesque.backup.errors import BackupError, BackupExists, DamagedBackup
from kafkaesque.backup.folder import LOCK_NAME, locked
from kafkaesque.backup.limits import BackupLimits
from kafkaesque.backup.manifest import (
    MANIFEST_NAME,
    NEW_SUFFIX,
    PLAN_NAME,
    Backup,
    SavedChunk,
    SavedPartition,
    SavedTopic,
    check_name,
    partition_folder,
    read_backup,
    write_sealed,
)
from kafkaesque.backup.plan import Wanted, make_plan
from kafkaesque.backup.watch import Watch
from kafkaesque.client.admin import Admin
from kafkaesque.client.batches import Fetched
from kafkaesque.client.errors import Refused
from kafkaesque.client.topics import EARLIEST, Place
from kafkaesque.clock import Clock
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset
from kafkaesque.wire.error_codes import ErrorCode

_GONE = ErrorCode.OFFSET_OUT_OF_RANGE.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What saving and restoring take from their caller."""

    clock: Clock
    sleep: Callable[[float], None]
    watch: Watch
    limits: BackupLimits


class Saver:
    """Makes one backup in one folder."""

    def __init__(self, admin: Admin, root: Path, around: Surroundings) -> None:
        self._admin = admin
        self._root = root
        self._around = around
        self._notes: list[str] = []

    def run(self, wanted: Wanted) -> Backup:
        """Make the backup, or finish it; raises BackupExists if the folder holds another one.

        Whatever interrupts this, even a kill, the same call resumes it.
        """
        with locked(self._root):
            plan = self._plan(wanted)
            self._notes = list(plan.notes)
            for note in self._notes:
                self._around.watch.note(note)
            self._around.watch.begins(
                partitions=sum(len(topic.partitions) for topic in plan.topics),
                total=sum(one.end - one.start for topic in plan.topics for one in topic.partitions),
            )
            topics = tuple(self._topic(topic) for topic in plan.topics)
            done = replace(
                plan,
                topics=topics,
                ended_ms=self._around.clock.now_ms(),
                notes=tuple(self._notes),
            )
            write_sealed(self._root / MANIFEST_NAME, done)
            (self._root / PLAN_NAME).unlink()
            return done

    def _plan(self, wanted: Wanted) -> Backup:
        if (self._root / MANIFEST_NAME).exists():
            raise BackupExists(f"{self._root} holds a complete backup: take another folder")
        path = self._root / PLAN_NAME
        if path.exists():
            plan = read_backup(path)
            self._check_same(plan, wanted)
            return plan
        strange = {one.name for one in self._root.iterdir()} - {LOCK_NAME, PLAN_NAME + NEW_SUFFIX}
        if strange:
            raise BackupExists(f"{self._root} is not a backup and not empty: take another folder")
        plan = make_plan(self._admin, wanted, self._around.clock.now_ms())
        for topic in plan.topics:
            check_name(path, topic.name)
        write_sealed(path, plan)
        return plan

    def _check_same(self, plan: Backup, wanted: Wanted) -> None:
        where = f"{self._root} holds an unfinished backup"
        if (plan.wanted_topics, plan.wanted_groups) != (wanted.topics, wanted.groups):
            raise BackupExists(f"{where} of other topics or groups: take another folder")
        if plan.cluster_id != self._admin.cluster().cluster_id:
            raise BackupExists(f"{where} of another cluster: take another folder")
        ids = {info.name: info.topic_id.hex() for info in self._admin.topics.list()}
        for topic in plan.topics:
            if ids.get(topic.name) != topic.topic_id:
                raise BackupExists(
                    f"{where}, and topic {topic.name} is no longer the one it started with: "
                    "take another folder"
                )

    # --- one topic -------------------------------------------------------------------------------

    def _topic(self, topic: SavedTopic) -> SavedTopic:
        partitions = []
        for one in topic.partitions:
            partitions.append(replace(one, chunks=self._partition(topic, one)))
            self._around.watch.partition_done((topic.name, one.partition))
        saved = replace(topic, partitions=tuple(partitions))
        self._around.watch.topic_done(topic.name, records=saved.records, size=saved.size)
        return saved

    def _partition(self, topic: SavedTopic, one: SavedPartition) -> tuple[SavedChunk, ...]:
        """Save one partition; return its chunks."""
        folder = partition_folder(self._root, topic, one.partition)
        folder.mkdir(parents=True, exist_ok=True)
        kept = _keep_sound(folder, one)
        position = kept[-1].end if kept else one.start
        for chunk in kept:
            self._around.watch.moved(amount=chunk.end - chunk.first, size=chunk.size)
        copy = _Copy(folder, position, self._around.limits.chunk_bytes_max)
        try:
            while position < one.end:  # ends: every turn advances or gives up
                position = self._copy_some((topic.name, one.partition), position, one.end, copy)
            fresh = copy.finish(one.end)
        finally:
            copy.abandon()
        return (*kept, *fresh)

    def _copy_some(self, place: Place, position: Offset, end: Offset, copy: "_Copy") -> Offset:
        """Copy the batches of one fetch; return the offset to go on from."""
        try:
            fetched = self._fetch(place, position)
        except Refused as error:
            if error.code != _GONE:
                raise
            return self._skip_gone(place, position, end)
        before = copy.size
        for view in committed(fetched.batches, fetched.aborted):
            if position < view.end_offset and view.base_offset < end:
                view.check_crc()
                copy.append(view)
        after = min(end, fetched.batches[-1].end_offset)
        if after <= position:
            raise BackupError(f"{_text(place)}: the broker sends records that were not requested")
        self._around.watch.moved(amount=after - position, size=copy.size - before)
        return after

    def _fetch(self, place: Place, position: Offset) -> Fetched:
        limits = self._around.limits
        for _ in range(limits.empty_fetches_max):
            fetched = self._admin.batches.fetch(
                *place,
                position,
                wait_ms=limits.fetch_wait_ms,
                bytes_max=limits.fetch_bytes_max,
                is_committed=True,
            )
            if fetched.batches:
                return fetched
        raise BackupError(f"{_text(place)}: the broker sends no records from offset {position}")

    def _skip_gone(self, place: Place, position: Offset, end: Offset) -> Offset:
        start = self._admin.topics.offsets([place], EARLIEST)[place]
        if start <= position:
            raise BackupError(f"{_text(place)} ends before offset {position}: records were lost")
        after = min(start, end)
        note = f"{_text(place)}: the records from {position} to before {after} were deleted before"
        self._notes.append(f"{note} they could be saved")
        self._around.watch.note(self._notes[-1])
        self._around.watch.moved(amount=after - position, size=0)
        return after


class _Copy:
    """The chunks of one partition while they are written."""

    def __init__(self, folder: Path, position: Offset, bytes_max: int) -> None:
        self.size = 0
        self._folder = folder
        self._position = position
        self._bytes_max = bytes_max
        self._writer: ChunkWriter | None = None
        self._done: list[SavedChunk] = []

    def append(self, view: BatchView) -> None:
        """Write a batch, into a new chunk if this one is full."""
        writer = self._writer
        if writer is not None and writer.size and writer.size + view.size > self._bytes_max:
            self.finish(view.base_offset)
        if self._writer is None:
            self._writer = ChunkWriter(self._folder, self._position)
        self._writer.append(view)
        self.size += view.size

    def finish(self, end: Offset) -> Sequence[SavedChunk]:
        """Close the last chunk at `end`; return all chunks written."""
        if self._writer is None and self._position < end:
            self._writer = ChunkWriter(self._folder, self._position)
        if self._writer is not None:
            self._done.append(self._writer.finish(end))
            self._writer = None
            self._position = end
        return self._done

    def abandon(self) -> None:
        """Give up an unfinished chunk."""
        if self._writer is not None:
            self._writer.abandon()


def _keep_sound(folder: Path, one: SavedPartition) -> list[SavedChunk]:
    """Return the sound chunks of an earlier attempt, up to the first bad one; drop the rest."""
    position = one.start
    kept: list[SavedChunk] = []
    paths = sorted(folder.iterdir())
    for path in paths:
        try:
            chunk = scan_chunk(path)
        except DamagedBackup:
            break
        if chunk.first != position or not position < chunk.end <= one.end:
            break
        kept.append(chunk)
        position = chunk.end
    for path in paths[len(kept) :]:
        path.unlink()
    return kept


def _text(place: Place) -> str:
    return f"partition {place[1]} of topic {place[0]}"
