"""Lets go of the beginning of a machine's log, and of nothing that anybody here still needs.

Every replica does so by itself, whoever leads. The log is kept behind the older of the two newest
snapshots. A follower that needs more is sent the newest snapshot (`broker/installing.py`) and
begins with it. Followers have no machine of their own to take snapshots of unless somebody looks at
their copy, so `MachineSaver` makes one for as long as it takes.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from kafkaesque.broker.failing import can_be_mended
from kafkaesque.broker.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.entry import LogStart
from kafkaesque.errors import LogError
from kafkaesque.log.snapshot import MACHINE, SnapshotKind
from kafkaesque.log.snapshot_pieces import read_piece
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.raft.messages import StateOffer
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView
from kafkaesque.types import Buffer, Index, Offset

_SLICE_BYTES = 64 << 10
"""Of the log, in one tick: about a millisecond."""

M = TypeVar("M", bound=Machine)


class MachineState:
    """The state of a machine as it goes with an install: its newest snapshot."""

    def __init__(self, replica: Replica, snapshots: MachineSnapshots) -> None:
        self._replica = replica
        self._snapshots = snapshots
        self._checked: tuple[Offset, int, int] | None = None
        replica.log.has_own_start = True
        replica.keep_state(self)

    @property
    def kind(self) -> SnapshotKind:
        """What a follower keeps it as."""
        return MACHINE

    def offer(self) -> tuple[LogStart, StateOffer] | None:
        """Return the newest state that is whole, and the start of a log behind it."""
        log = self._replica.log
        newest = max(self._snapshots.offsets(), default=0)
        if self._checked is None or self._checked[0] != newest:
            self._checked = self._snapshots.newest_good(log.start.offset, log.end_offset)
        if self._checked is None:
            return None
        offset, size, crc = self._checked
        return log.start_at(offset), StateOffer(kind=self.kind.suffix, size=size, crc=crc)

    def piece(self, offset: Offset, crc: int, position: int, bytes_max: int) -> Buffer | None:
        """Return some bytes of the snapshot, if it is the one that was offered."""
        if self._checked is None or (offset, crc) != (self._checked[0], self._checked[2]):
            return None
        segments = self._replica.log.segments
        return read_piece(segments.disk, segments.folder, offset, MACHINE, position, bytes_max)


def trim_covered(replica: Replica, snapshots: MachineSnapshots) -> None:
    """Drop the log before the older of the two newest snapshots, once it is durable up to there."""
    log = replica.log
    if not snapshots.has_news or replica.error is not None or not log.is_settled:
        return
    offset = snapshots.needed_from()
    if offset <= log.start.first_offset:
        snapshots.has_news = False
        return
    settled = min(replica.raft.commit, log.durable)
    if settled >= log.start.index and offset <= log.offset_at(settled):
        snapshots.has_news = False
        try:
            log.trim(offset)
        except LogError as error:  # the batch at the new start is lost: it stays for now
            replica.unreadable(error, offset)


class MachineSaver(Generic[M]):
    """Takes snapshots on a replica that does not lead; `on_failed` as with `MachineHost`."""

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        make: Callable[[], M],
        on_failed: Callable[[LogError], None],
        snapshots: MachineSnapshots,
    ) -> None:
        self._replica = replica
        self._clock = clock
        self._make = make
        self._on_failed = on_failed
        self._snapshots = snapshots
        self._copy: M | None = None
        self._next: Index = 0
        self._stop: Index = 0
        self._has_failed = False
        self._is_stuck = False
        """Whether the log is damaged where it is to be read on."""
        self._saved: Offset = -1
        """Where the last snapshot was taken, as far as is known."""
        self._unsaved_since_ms: int | None = None

    def tick(self) -> None:
        """Take a little of the log into the copy that a snapshot is being made of."""
        replica = self._replica
        if replica.error is not None or replica.is_serving or self._has_failed:
            self._copy = None
            self._saved = -1
            return
        if self._is_stuck and replica.damage.found:
            return  # it goes on when that is mended
        self._is_stuck = False
        try:
            if self._copy is None:
                self._begin_if_due()
            else:
                self._go_on(self._copy)
        except LogError as error:
            self._copy = None
            if can_be_mended(error):
                self._is_stuck = True
                replica.damaged(error)
            else:  # written by a later version, or the disk fails
                self._has_failed = True
                self._on_failed(error)

    def _begin_if_due(self) -> None:
        log = self._replica.log
        if self._saved < log.start.offset:
            self._saved = max(self._snapshots.offsets(), default=log.start.offset)
        stop = min(self._replica.raft.commit, log.stable)
        if stop < log.start.index or log.offset_at(stop) <= self._saved:
            self._unsaved_since_ms = None
            return
        now_ms = self._clock.monotonic_ms()
        if self._unsaved_since_ms is None:
            self._unsaved_since_ms = now_ms
        unsaved_bytes = log.segments.bytes_from(self._saved)
        if not self._snapshots.is_due(unsaved_bytes, now_ms - self._unsaved_since_ms):
            return
        offset, records = self._snapshots.load(log.start.offset, log.end_offset)
        self._copy = self._make()
        for record in records:
            self._copy.apply(record)
        self._next = log.index_at(offset) if offset > log.start.offset else log.start.index
        self._stop = stop

    def _go_on(self, copy: M) -> None:
        log = self._replica.log
        if self._next < log.start.index:  # it began anew meanwhile
            self._copy = None
            return
        entries = log.entries(self._next, _SLICE_BYTES) if self._next < self._stop else []
        for entry in entries:
            if entry.end > self._stop:
                break
            if isinstance(entry.payload, bytes | bytearray | memoryview):
                for one in read_records(BatchView(entry.payload)):
                    assert one.key is not None, "every record of a machine has a key"
                    copy.apply(MachineRecord(one.key, one.value))
            self._next = entry.end
        else:
            if entries and self._next < self._stop:
                return
        offset = log.offset_at(self._next)
        self._snapshots.begin(offset, copy.records())
        self._copy, self._saved, self._unsaved_since_ms = None, offset, None
