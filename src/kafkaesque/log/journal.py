"""The broker's one journal: hard state, marks, starts and synced points of all its groups.

One file for all groups, so that a thousand elections at once need one sync and not a thousand. It
is written in *rounds*: what was added since the last round goes out as one frame, and the next
frame is written only after the last one is durable. So a damaged frame with a good one behind it
is damage to synced data and never a torn tail; only the very last frame can be either.

When the file has grown, the next round writes the whole state to `journal.new` instead and renames
it over `journal`. What its bytes are is in `journal_frames.py`.
"""

from kafkaesque.config import LogConfig
from kafkaesque.errors import DiskFull
from kafkaesque.log.disk import Disk, File, Synced
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.journal_frames import (
    FORMAT,
    PATH,
    frame_bytes,
    frames,
    read_state,
    refuse_damage,
    state_bytes,
)
from kafkaesque.log.journal_records import (
    GroupForgotten,
    GroupState,
    JournalRecord,
    LogStarted,
    MemoryDoubted,
    OldCopyFound,
    PeerHeard,
    RunBegan,
    RunEnded,
    RunNamed,
    start_of,
)
from kafkaesque.types import NO_TERM, GroupId, NodeId, Term

__all__ = ["FORMAT", "PATH", "Journal", "read_journal"]

_NEW_PATH = "journal.new"
_RUN_LEAP = 1 << 20
_ROUND_LEAP = 1 << 40


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
        self.run = 0
        """How often the node has started, as far as it told others."""
        self.heard: dict[NodeId, PeerHeard] = {}
        """The newest that each peer told of its own journal."""
        self.old_copy: OldCopyFound | None = None
        """Who remembers more of this folder than it holds; nothing in it may count as it is."""
        self.doubted_term: Term = NO_TERM
        """In which term groups begin that may have been here and of which nothing is known;
        NO_TERM if there can be none."""
        self.damaged_copy = ""
        """Which copy of its state had gone bad, `first` or `second`; the next round mends it."""
        self.opened_round = 0
        """The round that was there when the journal was opened."""
        self.durable_round = 0
        self._session = 0
        self._unwritten: dict[NodeId, PeerHeard] = {}

    @classmethod
    def create(cls, disk: Disk, config: LogConfig, node: NodeId) -> "Journal":
        """Start the journal of a new node in an empty folder; durable when this returns."""
        journal = cls(disk, config, node)
        journal.write_now()
        return journal

    @classmethod
    def open(cls, disk: Disk, config: LogConfig) -> "Journal":
        """Replay the journal of an earlier run and cut its torn tail.

        Raises CorruptLog when synced frames are damaged, and leaves the file as it is: then term
        and votes may be lost, and the node must not go on under its old name.
        """
        with disk_errors(PATH):
            file = disk.open(PATH)
            data = file.read(0, file.size())
            state = read_state(data)
            journal = cls(disk, config, state.node)
            journal.damaged_copy = state.damaged
            journal._file = file
            journal._replay(state.round, state.records)
            start = position = state.end
            for number, records, end in frames(data, position):
                journal._replay(number, records)
                start, position = position, end
            if position < len(data):
                refuse_damage(data, position, is_same_boot=journal.boot == disk.boot_id())
                file.truncate(position)
            if _NEW_PATH in disk.list(""):
                disk.remove(_NEW_PATH)  # a rewrite was interrupted
            # Nobody knows whether the last frame was synced. Write it again: if its sync failed,
            # the kernel shows it, counts it as clean and would never write it. Nor does anybody
            # know whether the name was: a rewrite may have been interrupted behind its rename.
            file.write(start, data[start:position])
            disk.sync_now([file], [""])
        journal._size = position
        journal.opened_round = journal.durable_round = journal._round
        # A copy that went bad, or a file of an earlier format, is replaced with the next round.
        journal._rewrite_at = position + config.journal_rewrite_bytes if state.is_whole else 0
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

    def leap(self, run: int = 0, number: int = 0) -> None:
        """Go on with a run and a round that lie far beyond those that a peer has heard of.

        Durable with the next write. Another peer may have heard of more: it says so, and the folder
        is found to be an old copy once more.
        """
        run = max(self.run, run) + _RUN_LEAP
        self.add(RunNamed(group="", run=run, session=self._session))
        self._round = max(self._round, number) + _ROUND_LEAP
        self.opened_round = self._round

    def end_run(self) -> None:
        """Note that all is synced and nothing will be written any more."""
        self.add(RunEnded(group=""))

    def note(self, record: JournalRecord) -> None:
        """Apply a record now that nobody waits for; a later one of the same group replaces it.

        It goes to disk with the next that is added, or when `add_notes` is called.
        """
        _apply(self.groups, record)
        self._notes[record.group] = record

    def hear(self, record: PeerHeard) -> None:
        """Remember what a peer tells of itself; it goes to disk with whatever is written next.

        It asks for no round of its own: else brokers that hear of each other's rounds would keep
        each other writing.
        """
        self.heard[record.node] = self._unwritten[record.node] = record

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

        def durable(error: OSError | None) -> None:
            if error is None:
                self.durable_round = self._round
            done(error)

        if self._size > self._rewrite_at:
            try:
                self._rewrite(files, folders, durable)
            except DiskFull:  # a frame takes less
                self._rewrite_at = self._size + self._config.journal_rewrite_bytes
            else:
                return
        if self._added:
            with disk_errors(PATH):
                self._append_frame(self._file, [*self._added, *self._unwritten.values()])
            self._added = []
            self._unwritten.clear()
            files = [*files, self._file]
        self._disk.sync(files, folders, durable)

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
        self.durable_round = self._round

    def close(self) -> None:
        """Close the file; the flusher has written the last round before."""
        if self._file is not None:
            self._file.close()

    def _replay(self, number: int, records: list[JournalRecord]) -> None:
        assert number >= self._round, "rounds are written in order"
        self._round = number
        for record in records:
            self._apply(record)

    def _apply(self, record: JournalRecord) -> None:
        match record:
            case RunBegan():
                self.boot, self.is_stopped = record.boot, False
            case RunEnded():
                self.is_stopped = True
            case RunNamed():
                self.run, self._session = record.run, record.session
            case PeerHeard():
                self.heard[record.node] = record
            case OldCopyFound():
                self.old_copy = record if record.peer else None
            case MemoryDoubted():
                self.doubted_term = record.term
            case _:
                _apply(self.groups, record)

    def _append_frame(self, file: File, records: list[JournalRecord]) -> None:
        frame = frame_bytes(self._round + 1, records)
        file.write(self._size, frame)
        self._size += len(frame)
        self._round += 1

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
        file = self._disk.create(_NEW_PATH)
        records: list[JournalRecord] = []
        if self.boot:
            records.append(RunBegan(group="", boot=self.boot))
        if self.is_stopped:
            records.append(RunEnded(group=""))
        if self.run:
            records.append(RunNamed(group="", run=self.run, session=self._session))
        if self.old_copy is not None:
            records.append(self.old_copy)
        if self.doubted_term:
            records.append(MemoryDoubted(group="", term=self.doubted_term))
        records += self.heard.values()
        records += [r for group, state in self.groups.items() for r in state.snapshot(group)]
        data = state_bytes(self.node, self._round + 1, records)
        try:
            file.write(0, data)
        except OSError:
            file.close()
            self._disk.remove(_NEW_PATH)
            raise
        self._round += 1
        self._size = len(data)
        self._newest = file
        self._added = []
        self._unwritten.clear()
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
    state = read_state(data)
    groups: dict[GroupId, GroupState] = {}
    _apply_all(groups, state.records)
    position = state.end
    for _, records, end in frames(data, position):
        _apply_all(groups, records)
        position = end
    if position < len(data):
        refuse_damage(data, position, is_same_boot=False)
    return state.node, groups, position


def _apply_all(groups: dict[GroupId, GroupState], records: list[JournalRecord]) -> None:
    for record in records:
        if record.group:  # else it is about the node
            _apply(groups, record)


def _apply(groups: dict[GroupId, GroupState], record: JournalRecord) -> None:
    if isinstance(record, GroupForgotten):
        groups.pop(record.group, None)
        return
    state = groups.get(record.group)
    if state is None:
        assert isinstance(record, LogStarted), "a group's first record says where it starts"
        state = groups[record.group] = GroupState(start_of(record))
    state.apply(record)
