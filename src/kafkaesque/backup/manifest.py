"""A backup's manifest, and its plan while unfinished; see `docs/reference/format-backup.md`."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kafkaesque.backup.errors import DamagedBackup
from kafkaesque.errors import NewerFormat
from kafkaesque.record.crc import crc32c
from kafkaesque.types import Offset

FORMAT = 2
"""2 has sections; a version that knows none must not silently ignore them."""
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
    """Bytes of the largest batch."""
    crc32c: int = 0
    """Of the whole file except these last four bytes."""

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.first:020}.batches"


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPartition:
    """One partition, from the first kept offset to before its end at that time."""

    partition: int
    start: Offset
    end: Offset
    chunks: tuple[SavedChunk, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTopic:
    """One topic, with the settings made for it."""

    name: str
    number: int
    """Its index, which its folder's name starts with: some disks ignore case."""
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
        """The size of the largest batch in bytes."""
        return max((chunk.largest for one in self.partitions for chunk in one.chunks), default=0)

    @property
    def size(self) -> int:
        """The total size of its batches in bytes."""
        return sum(chunk.size for one in self.partitions for chunk in one.chunks)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPosition:
    """A group's position in one partition, and its metadata."""

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
    """One part of the state of the whole cluster; `sections.py` knows its meaning."""

    version: int
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """Everything but the batches; in a plan, without the chunks."""

    cluster_id: str | None
    begun_ms: int
    ended_ms: int | None = None
    wanted_topics: tuple[str, ...] = ()
    wanted_groups: tuple[str, ...] = ()
    topics: tuple[SavedTopic, ...]
    groups: tuple[SavedGroup, ...]
    sections: Mapping[str, Section] = field(default_factory=dict)
    """By name."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Sentences on what differs from the request."""


class _Envelope(msgspec.Struct, kw_only=True):
    format: int
    crc32c: int
    backup: msgspec.Raw


def partition_folder(root: Path, topic: SavedTopic, partition: int) -> Path:
    """Return the folder of a partition's chunks."""
    return root / "topics" / f"{topic.number:04}-{topic.name}" / str(partition)


def write_sealed(path: Path, value: object) -> None:
    """Write a value with its checksum as JSON, atomically."""
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
    """Read what `write_sealed` wrote; raises DamagedBackup, or NewerFormat for a newer version."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DamagedBackup(str(path), 0, f"it cannot be read: {error.strerror}") from error
    try:
        sealed = msgspec.json.decode(data, type=_Envelope)
        if sealed.format > FORMAT:
            raise NewerFormat(str(path), sealed.format, FORMAT)
        if sealed.format < FORMAT_FIRST:
            raise DamagedBackup(str(path), 0, f"format {sealed.format} does not exist")
        if crc32c(bytes(sealed.backup)) != sealed.crc32c:
            raise DamagedBackup(str(path), 0, "the checksum does not match")
        return msgspec.json.decode(sealed.backup, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        found = _BYTE.search(str(error))
        position = 0 if found is None else int(found[1])
        raise DamagedBackup(str(path), position, f"it is not valid: {error}") from error


def read_backup(path: Path) -> Backup:
    """Read a manifest or a plan; names that could escape the folder count as damage."""
    backup = read_sealed(path, Backup)
    for topic in backup.topics:
        check_name(path, topic.name)
    return backup


def check_name(path: Path, name: str) -> None:
    """Raise DamagedBackup for a name that no topic or folder may have."""
    if _LEGAL_NAME.fullmatch(name) is None or name in (".", ".."):
        raise DamagedBackup(str(path), 0, f"{name!r} is not a valid topic name")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
