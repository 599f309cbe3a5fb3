"""What a backup holds, and its plan while it is being made; `docs/reference/format-backup.md`."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kafkaesque.errors import DamagedBackup, NewerFormat
from kafkaesque.record.crc import crc32c
from kafkaesque.types import Offset

FORMAT = 2
"""2 has sections; a version that knows none must not pass them over in silence."""
FORMAT_FIRST = 1
MANIFEST_NAME = "manifest.json"
PLAN_NAME = "plan.json"
NEW_SUFFIX = ".new"

T = TypeVar("T")

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_BYTE = re.compile(r"\(byte (\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChunk:
    """One file of batches, which covers the offsets from `first` to before `end`."""

    first: Offset
    end: Offset
    batches: int
    records: int
    size: int
    """Bytes of the batches."""
    largest: int
    """Bytes of the largest of them."""
    crc32c: int = 0
    """Of the whole file, but for these four bytes at its end."""

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.first:020}.batches"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPartition:
    """One partition, from the first offset that was kept to before the end as it was then."""

    partition: int
    start: Offset
    end: Offset
    chunks: tuple[SavedChunk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTopic:
    """One topic, with the settings that were made for it."""

    name: str
    number: int
    """Its place among the topics, which begins its folder's name: some disks know no case."""
    topic_id: str
    replicas: int
    settings: Mapping[str, str]
    partitions: tuple[SavedPartition, ...]

    @property
    def records(self) -> int:
        """How many records were saved."""
        return sum(chunk.records for one in self.partitions for chunk in one.chunks)

    @property
    def largest(self) -> int:
        """How many bytes the largest batch has."""
        return max((chunk.largest for one in self.partitions for chunk in one.chunks), default=0)

    @property
    def size(self) -> int:
        """How many bytes their batches have."""
        return sum(chunk.size for one in self.partitions for chunk in one.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPosition:
    """Where a group stood in one partition, and what it noted there."""

    topic: str
    partition: int
    offset: Offset
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedGroup:
    """One consumer group."""

    group: str
    positions: tuple[SavedPosition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the state of the whole cluster; `sections.py` knows what it means."""

    version: int
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """Everything but the batches; as a plan without the chunks."""

    cluster_id: str | None
    begun_ms: int
    ended_ms: int | None = None
    wanted_topics: tuple[str, ...] = ()
    wanted_groups: tuple[str, ...] = ()
    topics: tuple[SavedTopic, ...]
    groups: tuple[SavedGroup, ...]
    sections: Mapping[str, Section] = field(default_factory=dict)
    """By their names."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Sentences on what is not quite as it was asked for."""


class _Envelope(msgspec.Struct, kw_only=True):
    format: int
    crc32c: int
    backup: msgspec.Raw


def partition_folder(root: Path, topic: SavedTopic, partition: int) -> Path:
    """Return where the chunks of a partition lie."""
    return root / "topics" / f"{topic.number:04}-{topic.name}" / str(partition)


def write_sealed(path: Path, value: object) -> None:
    """Write a value with its checksum as JSON; the file is whole or not there."""
    inner = msgspec.json.format(msgspec.json.encode(value), indent=2)
    sealed = _Envelope(format=FORMAT, crc32c=crc32c(inner), backup=msgspec.Raw(inner))
    new = path.with_name(path.name + NEW_SUFFIX)
    with new.open("wb") as file:
        file.write(msgspec.json.encode(sealed) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_folder(path.parent)


def read_sealed(path: Path, kind: type[T]) -> T:
    """Read what `write_sealed` wrote; raises DamagedBackup, or NewerFormat of a later version."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedBackup(str(path), 0, f"it cannot be read: {error.strerror}") from error
    try:
        sealed = msgspec.json.decode(data, type=_Envelope)
        if sealed.format > FORMAT:
            raise NewerFormat(str(path), sealed.format, FORMAT)
        if sealed.format < FORMAT_FIRST:
            raise DamagedBackup(str(path), 0, f"there never was a format {sealed.format}")
        if crc32c(bytes(sealed.backup)) != sealed.crc32c:
            raise DamagedBackup(str(path), 0, "the checksum does not match")
        return msgspec.json.decode(sealed.backup, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = _BYTE.search(str(error))
        position = 0 if found is None else int(found[1])
        raise DamagedBackup(str(path), position, f"it is not as it was written: {error}") from error


def read_backup(path: Path) -> Backup:
    """Read a manifest or a plan; names that could leave the folder are damage."""
    backup = read_sealed(path, Backup)
    for topic in backup.topics:
        check_name(path, topic.name)
    return backup


def check_name(path: Path, name: str) -> None:
    """Raise DamagedBackup for what no topic can be called, and no folder should be."""
    if _LEGAL_NAME.fullmatch(name) is None or name in (".", ".."):
        raise DamagedBackup(str(path), 0, f"a topic cannot be called {name!r}")


def sync_folder(folder: Path) -> None:
    """Let the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
