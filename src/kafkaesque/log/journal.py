"""The broker's one journal: hard state, marks, starts and synced points of all its groups.

One file serves all groups, so a thousand simultaneous elections need one sync and not a thousand.
It is written in *rounds*: everything added since the last round goes out as one frame, and the next
frame is written only after the last one is durable. So a damaged frame with a good one behind it is
damage to synced data, never a torn tail; only the very last frame can be either.

When the file has grown, the next round writes the whole state to `journal.new` instead and renames
it over `journal`. `journal_frames.py` describes the bytes.
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
    """The journal of one node; only the `Flusher` decides when a round is written."""

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
        """The machine's boot ID at the node's last start; empty if it was never noted."""
        self.is_stopped = False
        """Whether the node has stopped cleanly since."""
        self.run = 0
        """How often the node has started, as announced to peers."""
        self.heard: dict[NodeId, PeerHeard] = {}
        """The newest state that each peer has announced of its own journal."""
        self.old_copy: OldCopyFound | None = None
        """The peer that remembers more of this folder than it holds; the content is untrusted."""
        self.doubted_term: Term = NO_TERM
        """The term in which unknown groups start that may have been here before; NO_TERM if there
        can be none.
        """
        self.damaged_copy = ""
        """Which copy of the state was bad, `first` or `second`; the next round repairs it."""
        self.opened_round = 0
        """The last round when the journal was opened."""
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

        Raises CorruptLog when synced frames are damaged, and leaves the file unchanged: term and
        votes may be lost, so the node must not continue under its old name.
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
                disk.remove(_NEW_PATH)  # left by an interrupted rewrite
            # The last frame may not be synced. Write it again: if its sync failed, the kernel still
            # shows it, counts it as clean and would never write it. The name may not be synced
            # either: a rewrite may have been interrupted after its rename.
            file.write(start, data[start:position])
            disk.sync_now([file], [""])
        journal._size = position
        journal.opened_round = journal.durable_round = journal._round
        # The next round replaces a file with a bad copy or of an earlier format.
        journal._rewrite_at = position + config.journal_rewrite_bytes if state.is_whole else 0
        return journal

    @staticmethod
    def exists(disk: Disk) -> bool:
        """Return whether a node was ever created on this disk."""
        return PATH in disk.list("")

    @property
    def has_additions(self) -> bool:
        """Whether anything was added or noted that no round has started to write."""
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
        """Continue with a run and a round far beyond those that a peer has heard of.

        Durable with the next write. If another peer has heard of later ones, it reports that, and
        the folder is again found to be an old copy.
        """
        run = max(self.run, run) + _RUN_LEAP
        self.add(RunNamed(group="", run=run, session=self._session))
        self._round = max(self._round, number) + _ROUND_LEAP
        self.opened_round = self._round

    def end_run(self) -> None:
        """Note that everything is synced and nothing more will be written."""
        self.add(RunEnded(group=""))

    def note(self, record: JournalRecord) -> None:
        """Apply a record that nothing waits for; a later one of the same group replaces it.

        It is written with the next added record, or when `add_notes` is called.
        """
        _apply(self.groups, record)
        self._notes[record.group] = record

    def hear(self, record: PeerHeard) -> None:
        """Remember what a peer announces about itself; it is written along with the next write.

        It requests no round: otherwise brokers that hear of each other's rounds would keep each
        other writing.
        """
        self.heard[record.node] = self._unwritten[record.node] = record

    def add_notes(self) -> None:
        """Let the next round write what was noted."""
        if self._notes:
            self._added += self._notes.values()
            self._notes.clear()

    def has_note(self, group: GroupId) -> bool:
        """Return whether a group has a note that the next round does not write."""
        return group in self._notes

    def write_round(self, files: list[File], folders: list[str], done: Synced) -> None:
        """Write all additions as one frame and sync it together with `files` and `folders`.

        One round at a time: the caller waits for `done` before starting another. After DiskFull
        nothing has started, and the same round can be retried.
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
        """Rewrite the whole state and wait until it is durable.

        For start-up and a clean stop. This supersedes a round under way, whose content is part of
        the state.
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
        """Close the file; the flusher has already written the last round."""
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
        """Replace the file with one that holds only the state: write, sync, then rename."""
        with disk_errors(_NEW_PATH):
            file = self._write_new()

        def written(error: OSError | None) -> None:
            try:
                if error is not None:
                    raise error
                if self._newest is file:  # otherwise `write_now` has superseded this round
                    self._adopt_new(file)
            except OSError as failure:
                done(failure)
                return
            self._disk.sync([], [""], done)

        self._disk.sync([*files, file], folders, written)

    def _write_new(self) -> File:
        """Write the whole state to a new file; an error leaves everything unchanged."""
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
    """Return node, groups and the end of the good frames in a journal's bytes; changes nothing.

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
        if record.group:  # otherwise it is about the node
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
