"""One node's store for tests: tiny limits, and a disk whose syncs the test completes by hand."""

import random
from collections.abc import Sequence

import msgspec

from kafkaesque.broker.storage.store import Store
from kafkaesque.config import LogConfig
from kafkaesque.entry import Entry, LogStart, TermOpened, Voters
from kafkaesque.errors import LogError
from kafkaesque.log.journal import PATH
from kafkaesque.log.journal_records import GroupState, JournalRecord
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.sim.disk import CrashPolicy, DiskFaults, SimDisk
from kafkaesque.types import GroupId, Index, Offset, Term
from tests.heard import Heard
from tests.log.logs import HandClock, a_batch
from tests.sim.disks import Later

GROUP: GroupId = "orders-0"
OTHER: GroupId = "orders-1"
US = Voters(voters=(1, 2, 3))
THEM = Voters(voters=(1, 4), learners=(5,))
TINY_STORE = LogConfig(
    segment_bytes_max=500,
    index_interval_bytes=150,
    index_sync_bytes=300,
    indexes_loaded_max=2,
    journal_rewrite_bytes=1 << 20,
)
ALL_BYTES = 1 << 30
ROUNDS_MAX = 100
JOURNAL_HEADER_BYTES = 22
FRAME_HEADER_BYTES = 20
JOURNAL_COPY_ALIGN_BYTES = 4096

StateDump = tuple[object, ...]
EntryDump = tuple[Index, Index, Term, bytes | TermOpened | Voters]


class AMachine:
    """A disk, and a store once it is opened; reports are kept, and nothing happens on its own."""

    store: Store

    def __init__(self, seed: int = 1, *, config: LogConfig = TINY_STORE) -> None:
        self.later = Later()
        self.config = config
        self.clock = HandClock()
        self.disk = SimDisk(
            random.Random(seed), self.later, DiskFaults(page_bytes=32), clock=self.clock
        )
        self.failures: list[LogError] = []
        self.heard = Heard(self.clock)

    def open(self) -> None:
        self.later.waiting.clear()
        self.store = Store.open(
            self.disk, self.config, self.clock, 1, self.failures.append, self.heard
        )

    def crash(self, policy: CrashPolicy = CrashPolicy.DROP_UNSYNCED) -> None:
        self.disk.crash(policy)
        self.open()

    def begin_round(self) -> None:
        self.store.flusher.want_notes()
        self.store.flusher.kick()
        assert self.later.waiting, "no round was requested"

    def end_round(self) -> None:
        """Complete the current sync; what waited for it continues, in a next round if needed."""
        self.later.play()

    def settle(self) -> None:
        self.store.flusher.want_notes()
        self.store.flusher.kick()
        for _ in range(ROUNDS_MAX):
            if not self.later.waiting:
                return
            self.later.play()
        raise AssertionError("the rounds do not end")


class ANode(AMachine):
    """A machine whose store is open."""

    def __init__(self, seed: int = 1, *, config: LogConfig = TINY_STORE) -> None:
        super().__init__(seed, config=config)
        self.open()

    def a_log(self, group: GroupId = GROUP) -> PartitionLog:
        """A new log that is stable and opened in term 1."""
        log = self.store.create_log(group, US)
        log.append([opened(log, 1)])
        self.settle()
        return log


def batch(
    log: PartitionLog, count: int = 1, *, hole: int = 0, fill: int = 20, term: Term | None = None
) -> Entry:
    """A batch for the log's end, or behind a hole that begins there."""
    first = log.end + hole
    term = log.term_at(log.end) if term is None else term
    view = a_batch(log.end_offset + hole, count, term=term, fill=fill)
    return Entry(first, first + count, term, view.data)


def opened(log: PartitionLog, term: Term) -> Entry:
    return Entry(log.end, log.end + 1, term, TermOpened())


def voters(log: PartitionLog, who: Voters = THEM) -> Entry:
    return Entry(log.end, log.end + 1, log.term_at(log.end), who)


def append(log: PartitionLog, batches: int, *, count: int = 1) -> None:
    for _ in range(batches):
        log.append([batch(log, count)])


def dump(entries: Sequence[Entry]) -> list[EntryDump]:
    """Entries as values that can be compared, whatever buffer holds a batch."""
    return [
        (e.first, e.end, e.term, e.payload)
        if isinstance(e.payload, TermOpened | Voters)
        else (e.first, e.end, e.term, bytes(e.payload))
        for e in entries
    ]


def everything(log: PartitionLog) -> list[EntryDump]:
    return dump(log.entries(log.start.index, ALL_BYTES))


def state_dump(state: GroupState) -> StateDump:
    return (
        state.marks.start,
        state.marks.all(),
        state.hard_state.term,
        state.hard_state.vote,
        state.synced,
        state.is_recovering,
        state.is_reset,
        state.has_holes,
    )


def a_start(
    offset: Offset = 0, marks_before: int = 0, prev_term: Term = 0, who: Voters = US
) -> LogStart:
    return LogStart(offset=offset, marks_before=marks_before, prev_term=prev_term, voters=who)


def state_end(data: bytes) -> int:
    """The end of the first of the two states at the beginning of a journal."""
    length = int.from_bytes(data[JOURNAL_HEADER_BYTES + 4 :][:4], "big")
    return JOURNAL_HEADER_BYTES + FRAME_HEADER_BYTES + length


def rounds_start(data: bytes) -> int:
    """Where the frames of later rounds begin: behind the second state, on a new page."""
    end = state_end(data)
    return end + -(-end // JOURNAL_COPY_ALIGN_BYTES) * JOURNAL_COPY_ALIGN_BYTES


def journal_bytes(disk: SimDisk, path: str = PATH) -> bytes:
    file = disk.open(path)
    return file.read(0, file.size())


def replace_file(disk: SimDisk, path: str, data: bytes) -> None:
    """Replace a file's contents durably, as if they had always been there."""
    file = disk.open(path)
    file.truncate(0)
    file.write(0, data)
    disk.sync_now([file], [])
    file.close()


def flip(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]


def records_on_disk(disk: SimDisk) -> list[JournalRecord]:
    """What the journal's file contains now, durable or not, frame by frame."""
    data = journal_bytes(disk)
    data = data[: state_end(data)] + data[rounds_start(data) :]
    records: list[JournalRecord] = []
    position = JOURNAL_HEADER_BYTES
    while position < len(data):
        length = int.from_bytes(data[position + 4 : position + 8], "big")
        body = data[position + FRAME_HEADER_BYTES :][:length]
        records += msgspec.msgpack.decode(body, type=list[JournalRecord])
        position += FRAME_HEADER_BYTES + length
    return records


def kinds_on_disk(disk: SimDisk, since: int = 0) -> list[str]:
    """The kinds of the journal's records, without the first `since`."""
    return [type(record).__name__ for record in records_on_disk(disk)[since:]]


def segment_bytes(disk: SimDisk, group: GroupId = GROUP) -> int:
    """How many bytes of batches a group has on disk now, durable or not."""
    names = [name for name in disk.list(group) if name.endswith(".log")]
    return sum(len(journal_bytes(disk, f"{group}/{name}")) for name in names)
