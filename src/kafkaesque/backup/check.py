"""Checks a backup without a broker: every checksum, every header, and completeness."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafkaesque.backup.chunk import scan_chunk
from kafkaesque.backup.errors import BackupError, DamagedBackup
from kafkaesque.backup.manifest import (
    MANIFEST_NAME,
    PLAN_NAME,
    Backup,
    SavedChunk,
    SavedPartition,
    SavedTopic,
    partition_folder,
    read_backup,
)
from kafkaesque.backup.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The result of a check."""

    backup: Backup
    damages: tuple[DamagedBackup, ...]


def load(root: Path) -> Backup:
    """Read a backup's manifest; raises BackupError if there is none or it is incomplete."""
    if not (root / MANIFEST_NAME).exists():
        if (root / PLAN_NAME).exists():
            raise BackupError(
                f"the backup in {root} was not finished: run `kafkaesque backup` again to finish it"
            )
        raise BackupError(f"{root} holds no backup: it has no {MANIFEST_NAME}")
    return read_backup(root / MANIFEST_NAME)


def check(root: Path, watch: Watch) -> Checked:
    """Read all of a backup; damage to the manifest is raised, other damage is collected."""
    backup = load(root)
    return Checked(backup=backup, damages=tuple(check_topics(root, backup.topics, watch)))


def check_topics(
    root: Path, topics: tuple[SavedTopic, ...], watch: Watch
) -> Iterator[DamagedBackup]:
    """Yield the damage of some topics, at most one per file."""
    watch.begins(
        partitions=sum(len(topic.partitions) for topic in topics),
        total=sum(topic.size for topic in topics),
    )
    manifest = str(root / MANIFEST_NAME)
    for topic in topics:
        for one in topic.partitions:
            if not _covers(one):
                reason = (
                    f"the chunks of partition {one.partition} of topic {topic.name} do not cover "
                    f"the offsets {one.start} to {one.end}"
                )
                yield DamagedBackup(manifest, 0, reason)
            folder = partition_folder(root, topic, one.partition)
            for chunk in one.chunks:
                damage = _damage(folder / chunk.name, chunk)
                watch.moved(amount=chunk.size, size=chunk.size)
                if damage is not None:
                    yield damage
            watch.partition_done((topic.name, one.partition))
        watch.topic_done(topic.name, records=topic.records, size=topic.size)


def _covers(one: SavedPartition) -> bool:
    position = one.start
    for chunk in one.chunks:
        if chunk.first != position or chunk.end <= position:
            return False
        position = chunk.end
    return position == one.end


def _damage(path: Path, chunk: SavedChunk) -> DamagedBackup | None:
    try:
        found = scan_chunk(path)
    except DamagedBackup as damage:
        return damage
    if found != chunk:
        return DamagedBackup(str(path), found.size, "the manifest describes another file")
    return None
