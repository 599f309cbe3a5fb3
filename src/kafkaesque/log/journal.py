"""The broker's one journal: hard state, marks, starts and synced points of all its groups.

One file for all groups, so that a thousand elections at once need one sync and not a thousand. It
is written in *rounds*: what was added since the last round goes out as one frame, and the next
frame is written only after the last one is durable. So a damaged frame with a good one behind it
is damage to synced data and never a torn tail; only the very last frame can be either.

    file  = header frame*
    frame = marker 4 | length 4 | crc 4 | round 8 | msgpack array of records

When the file has grown, the next round writes the whole state to `journal.new` instead and renames
it over `journal`.
"""

import struct
from collections.abc import Iterator

import msgspec

from kafkaesque.config import LogConfig
from kafkaesque.errors import CorruptLog, DiskFull, ForeignFile, NewerFormat
from kafkaesque.log.disk import Disk, File, Synced
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.journal_records import (
    GroupForgotten,
    GroupState,
    JournalRecord,
    LogStarted,
    RunBegan,
    RunEnded,
    start_of,
)
from kafkaesque.record.crc import crc32c
from kafkaesque.types import GroupId, NodeId

FORMAT = 1
PATH = "journal"
_NEW_PATH = "journal.new"
_MAGIC = b"KFKQJRNL"
_MARKER = b"KJFR"
_HEADER = struct.Struct(">8sHqI")
_FRAME = struct.Struct(">4sIIQ")
_CHECKED_FROM = 12
_FRAME_BYTES_MAX = 1 << 30

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[JournalRecord])


class Journal:
    """The journal of one node; the `Flusher` alone decides when a round is written."""

    def __init__(self, disk: Disk, config: LogConfig, node: NodeId) -> None:
        self.node = node
        self.groups: dict[GroupId, GroupState] = {}
        self._disk = disk
        self._config = config
        self._file: File | None = None
        self._newest: File | None = None
        self._size = 0
        self._rewrite_at = config.journal_rewrite_bytes
        self._round = 0
        self._added: list[JournalRecord] = []
        self._notes: dict[GroupId, JournalRecord] = {}
        self.boot = ""
        """In which run of its machine the node last started; empty if nobody noted it."""
        self.is_stopped = False
        """Whether it has stopped cleanly since."""

    @classmethod
    def create(cls, disk: Disk, config: LogConfig, node: NodeId) -> "Journal":
        """Start the journal of a new node in an empty folder; durable when this returns."""
        journal = cls(disk, config, node)
        journal.write_now()
        return journal

    @classmethod
    def open(cls, disk: Disk, config: LogConfig) -> "Journal":
        """Replay the journal of an earlier run and cut its torn tail.

        Raises CorruptLog when synced frames are damaged: then term and votes may be lost, and the
        node must not go on under its old name.
        """
        with disk_errors(PATH):
            if _NEW_PATH in disk.list(""):
                disk.remove(_NEW_PATH)  # a rewrite was interrupted
            file = disk.open(PATH)
            data = file.read(0, file.size())
            node = _read_header(data)
            journal = cls(disk, config, node)
            journal._file = file
            start = position = _HEADER.size
            for number, records, end in _frames(data):
                assert number >= journal._round, "rounds are written in order"
                journal._round = number
                start, position = position, end
                for record in records:
                    journal._apply(record)
            if position < len(data):
                file.truncate(position)
            # Nobody knows whether the last frame was synced. Write it again: if its sync failed,
            # the kernel shows it, counts it as clean and would never write it. Nor does anybody
            # know whether the name was: a rewrite may have been interrupted behind its rename.
            file.write(start, data[start:position])
            disk.sync_now([file], [""])
        journal._size = position
        journal._rewrite_at = position + config.journal_rewrite_bytes
        return journal

    @staticmethod
    def exists(disk: Disk) -> bool:
        """Return whether a node was ever created on this disk."""
        return PATH in disk.list("")

    @property
    def has_additions(self) -> bool:
        """Whether anything was added or noted that no round has begun to write."""
        return bool(self._added or self._notes)

    def add(self, record: JournalRecord) -> None:
        """Apply a record now; it is on disk when the next round is done."""
        self.add_notes()
        self._apply(record)
        self._added.append(record)

    def begin_run(self, boot: str) -> None:
        """Note that the node has started; durable with the next round."""
        self.add(RunBegan(group="", boot=boot))

    def end_run(self) -> None:
        """Note that all is synced and nothing will be written any more."""
        self.add(RunEnded(group=""))

    def note(self, record: JournalRecord) -> None:
        """Apply a record now that nobody waits for; a later one of the same group replaces it.

        It goes to disk with the next that is added, or when `add_notes` is called.
        """
        _apply(self.groups, record)
        self._notes[record.group] = record

    def add_notes(self) -> None:
        """Let the next round write what was noted."""
        if self._notes:
            self._added += self._notes.values()
            self._notes.clear()

    def has_note(self, group: GroupId) -> bool:
        """Whether something was noted of a group that the next round does not write."""
        return group in self._notes

    def write_round(self, files: list[File], folders: list[str], done: Synced) -> None:
        """Write what was added as one frame and sync it together with `files` and `folders`.

        One round at a time: the caller waits for `done` before it begins another. After DiskFull
        nothing has begun, and the same round can be tried again.
        """
        assert self._file is not None
        if self._size > self._rewrite_at:
            try:
                self._rewrite(files, folders, done)
            except DiskFull:  # a frame takes less
                self._rewrite_at = self._size + self._config.journal_rewrite_bytes
            else:
                return
        if self._added:
            with disk_errors(PATH):
                self._append_frame(self._file, self._added)
            self._added = []
            files = [*files, self._file]
        self._disk.sync(files, folders, done)

    def write_now(self) -> None:
        """Write the whole state anew and wait until it is durable.

        For start-up and a clean stop. A round may be under way: it is overtaken, for what it writes
        is part of the state.
        """
        with disk_errors(PATH):
            if _NEW_PATH in self._disk.list(""):
                self._disk.remove(_NEW_PATH)
            file = self._write_new()
            self._disk.sync_now([file], [])
            self._adopt_new(file)
            self._disk.sync_now([], [""])

    def close(self) -> None:
        """Close the file; the flusher has written the last round before."""
        if self._file is not None:
            self._file.close()

    def _apply(self, record: JournalRecord) -> None:
        match record:
            case RunBegan():
                self.boot, self.is_stopped = record.boot, False
            case RunEnded():
                self.is_stopped = True
            case _:
                _apply(self.groups, record)

    def _append_frame(self, file: File, records: list[JournalRecord]) -> None:
        self._round += 1
        body = _encoder.encode(records)
        frame = bytearray(_FRAME.size + len(body))
        _FRAME.pack_into(frame, 0, _MARKER, len(body), 0, self._round)
        frame[_FRAME.size :] = body
        struct.pack_into(">I", frame, 8, crc32c(memoryview(frame)[_CHECKED_FROM:]))
        file.write(self._size, frame)
        self._size += len(frame)

    def _rewrite(self, files: list[File], folders: list[str], done: Synced) -> None:
        """Replace the file by one that holds only the state: written, synced, then renamed."""
        with disk_errors(_NEW_PATH):
            file = self._write_new()

        def written(error: OSError | None) -> None:
            try:
                if error is not None:
                    raise error
                if self._newest is file:  # else `write_now` has overtaken this round
                    self._adopt_new(file)
            except OSError as failure:
                done(failure)
                return
            self._disk.sync([], [""], done)

        self._disk.sync([*files, file], folders, written)

    def _write_new(self) -> File:
        """Write the whole state to a new file; after an error all is as before."""
        size = self._size
        file = self._disk.create(_NEW_PATH)
        head = _HEADER.pack(_MAGIC, FORMAT, self.node, 0)
        records: list[JournalRecord] = []
        if self.boot:
            records.append(RunBegan(group="", boot=self.boot))
        if self.is_stopped:
            records.append(RunEnded(group=""))
        records += [r for group, state in self.groups.items() for r in state.snapshot(group)]
        try:
            file.write(0, head[:-4] + struct.pack(">I", crc32c(head[:-4])))
            self._size = _HEADER.size
            self._append_frame(file, records)
        except OSError:
            self._size = size
            file.close()
            self._disk.remove(_NEW_PATH)
            raise
        self._newest = file
        self._added = []
        self._notes.clear()
        return file

    def _adopt_new(self, file: File) -> None:
        self._disk.rename(_NEW_PATH, PATH)
        if self._file is not None:
            self._file.close()
        self._file = file
        self._rewrite_at = self._size + self._config.journal_rewrite_bytes


def read_journal(data: bytes) -> tuple[NodeId, dict[GroupId, GroupState], int]:
    """Return node, groups and where the good frames end, of a journal's bytes; changes nothing.

    Raises as `Journal.open` does.
    """
    node = _read_header(data)
    groups: dict[GroupId, GroupState] = {}
    position = _HEADER.size
    for _, records, end in _frames(data):
        for record in records:
            if not isinstance(record, RunBegan | RunEnded):
                _apply(groups, record)
        position = end
    return node, groups, position


def _apply(groups: dict[GroupId, GroupState], record: JournalRecord) -> None:
    if isinstance(record, GroupForgotten):
        groups.pop(record.group, None)
        return
    state = groups.get(record.group)
    if state is None:
        assert isinstance(record, LogStarted), "a group's first record says where it starts"
        state = groups[record.group] = GroupState(start_of(record))
    state.apply(record)


def _read_header(data: bytes) -> NodeId:
    if len(data) < _HEADER.size:
        raise CorruptLog(PATH, len(data), "it ends inside its header")
    magic, version, node, crc = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise ForeignFile(PATH, "it does not begin as a journal does")
    if crc != crc32c(data[: _HEADER.size - 4]):
        raise CorruptLog(PATH, 0, "the checksum of its header is wrong")
    if version > FORMAT:
        raise NewerFormat(PATH, version, FORMAT)
    return NodeId(node)


def _frames(data: bytes) -> Iterator[tuple[int, list[JournalRecord], int]]:
    """Yield round, records and end position of each good frame, up to a torn tail."""
    position = _HEADER.size
    while position < len(data):
        frame = _frame_at(data, position)
        if frame is None:
            _refuse_if_synced(data, position)
            return
        yield frame
        position = frame[2]


def _frame_at(data: bytes, position: int) -> tuple[int, list[JournalRecord], int] | None:
    if len(data) - position < _FRAME.size:
        return None
    marker, length, crc, number = _FRAME.unpack_from(data, position)
    end = position + _FRAME.size + length
    if marker != _MARKER or length > _FRAME_BYTES_MAX or end > len(data):
        return None
    if crc32c(memoryview(data)[position + _CHECKED_FROM : end]) != crc:
        return None
    try:
        return number, _decoder.decode(data[position + _FRAME.size : end]), end
    except msgspec.ValidationError as error:
        raise NewerFormat(PATH, FORMAT + 1, FORMAT) from error


def _refuse_if_synced(data: bytes, position: int) -> None:
    """Raise if a good frame lies behind the damage: it was begun after the first was synced."""
    place = data.find(_MARKER, position + 1)
    while place != -1:
        if _frame_at(data, place) is not None:
            raise CorruptLog(PATH, position, "a frame is damaged and later ones are whole")
        place = data.find(_MARKER, place + 1)
