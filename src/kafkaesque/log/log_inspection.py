"""Read log files without changing a byte: for users, and for when a broker will not start.

Nothing here locks the folder, repairs or trusts anything. A running broker writes at the same time,
so the end of its newest segment may look torn.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafkaesque.errors import KafkaesqueError
from kafkaesque.log.journal import read_journal
from kafkaesque.log.journal_records import GroupState
from kafkaesque.log.offset_index import ENTRY_BYTES as OFFSET_ENTRY_BYTES
from kafkaesque.log.offset_index import OffsetIndex
from kafkaesque.log.segment import SEGMENT_NAME
from kafkaesque.log.time_index import ENTRY_BYTES as TIME_ENTRY_BYTES
from kafkaesque.log.time_index import TimeIndex
from kafkaesque.log.window import SCAN_BYTES, BadBatch, Window
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import BatchView
from kafkaesque.types import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBatch:
    """A batch with a correct checksum."""

    path: Path
    position: int
    view: BatchView


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenIndex:
    """An index file in which every entry is correct."""

    path: Path
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGroup:
    """The journal's state of one group."""

    node: NodeId
    group: str
    state: GroupState


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """Damaged bytes."""

    path: Path
    position: int
    reason: str


DEPTH_MAX = 4
"""How deep to descend: a data folder has two levels; symlinks can make endless ones."""

Seen = SeenBatch | SeenIndex | SeenGroup | Damage


class ReadOnly:
    """A read-only file; implements the part of `log.disk.File` that its readers need."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._stream = path.open("rb")

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes from `position`; fewer only at the end of the file."""
        self._stream.seek(position)
        return self._stream.read(length)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def look(path: Path, depth_max: int = DEPTH_MAX) -> Iterator[Seen]:
    """Yield the contents of a file, of a partition's folder, or of a whole data folder.

    Raises OSError for unreadable files and folders.
    """
    if path.is_dir():
        journal = path / "journal"
        if journal.is_file():
            yield from look_at_journal(journal)
        for found in sorted(path.iterdir()):
            if found.is_dir():
                if depth_max > 0:
                    yield from look(found, depth_max - 1)
            elif (name := SEGMENT_NAME.fullmatch(found.name)) and name[2] == ".log" and not name[3]:
                yield from look_at_segment(found)
    elif path.name == "journal":
        yield from look_at_journal(path)
    else:
        yield from look_at_segment(path)


def look_at_journal(path: Path) -> Iterator[SeenGroup | Damage]:
    """Yield the journal's state of each group."""
    data = path.read_bytes()
    try:
        node, groups, end = read_journal(data)
    except KafkaesqueError as error:
        yield Damage(path=path, position=getattr(error, "position", 0), reason=str(error))
        return
    for group, state in sorted(groups.items()):
        yield SeenGroup(node=node, group=group, state=state)
    if end < len(data):
        yield Damage(path=path, position=end, reason="the last frame is torn")


def look_at_segment(path: Path) -> Iterator[SeenBatch | SeenIndex | Damage]:
    """Yield the batches of a segment up to the first damaged one, then its indexes."""
    size = path.stat().st_size
    file = ReadOnly(path)
    try:
        window = Window(file, size)  # type: ignore[arg-type]  # it only reads
        yield from _batches(path, window, size)
        yield from _offset_index(path, window, size)
        yield from _time_index(path)
    finally:
        file.close()


def _batches(path: Path, window: Window, size: int) -> Iterator[SeenBatch | Damage]:
    position = 0
    end = 0
    while position < size:  # terminates: every batch has a size
        try:
            window.load_unless_there(position, SCAN_BYTES)
            base, batch_end, batch_bytes, _ = window.head(position)
            view = BatchView(window.batch(position, batch_bytes, ahead_bytes=SCAN_BYTES))
            view.check_crc()
        except (BadBatch, BatchError) as bad:
            yield Damage(path=path, position=position, reason=str(bad))
            return
        if base < end:
            reason = f"offset {base} follows offset {end - 1}"
            yield Damage(path=path, position=position, reason=reason)
        yield SeenBatch(path=path, position=position, view=view)
        position += batch_bytes
        end = batch_end


def _offset_index(path: Path, window: Window, size: int) -> Iterator[SeenIndex | Damage]:
    file = path.with_suffix(".index")
    if not file.exists() or not path.stem.isdigit():
        return
    data = file.read_bytes()
    index = OffsetIndex.decode(data, size)
    whole_bytes = len(index) * OFFSET_ENTRY_BYTES
    if whole_bytes < len(data):
        yield Damage(path=file, position=whole_bytes, reason="an entry is out of order or torn")
    for number, (relative, position) in enumerate(
        zip(index.relatives, index.positions, strict=True)
    ):
        try:
            window.check_entry(position, int(path.stem) + relative)
        except BadBatch as bad:
            place = number * OFFSET_ENTRY_BYTES
            yield Damage(path=file, position=place, reason=f"an entry is wrong: {bad.reason}")
            return
    yield SeenIndex(path=file, entries=len(index))


def _time_index(path: Path) -> Iterator[SeenIndex | Damage]:
    file = path.with_suffix(".timeindex")
    if not file.exists():
        return
    data = file.read_bytes()
    index = TimeIndex.decode(data)
    whole_bytes = len(index) * TIME_ENTRY_BYTES
    if whole_bytes < len(data):
        yield Damage(path=file, position=whole_bytes, reason="an entry is out of order or torn")
    yield SeenIndex(path=file, entries=len(index))
