"""Trims the start of a machine's log, and nothing that this broker still needs.

Every replica does so on its own, whichever leads. The log is kept from the older of the two newest
snapshots on. A follower that needs more is sent the newest snapshot
(`broker/replication/state_transfer.py`) and starts with it.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeAlias, TypeVar

from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.machine_hosting.replay import Replay
from kafkaesque.broker.replication.failures import StateLost, can_be_mended
from kafkaesque.broker.replication.replica import Replica
from kafkaesque.entry import LogStart
from kafkaesque.errors import LogError
from kafkaesque.log.snapshot import MACHINE, SnapshotKind
from kafkaesque.log.snapshot_pieces import read_piece
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.raft.messages import StateOffer
from kafkaesque.slices import Sliced
from kafkaesque.types import Buffer, Offset

Live: TypeAlias = tuple[Offset, Iterable[MachineRecord]]
"""A committed state, and the offset up to which it holds."""

M = TypeVar("M", bound=Machine)


class MachineState:
    """The state of a machine as an install sends it: its newest snapshot."""

    def __init__(self, replica: Replica, snapshots: MachineSnapshots) -> None:
        self._replica = replica
        self._snapshots = snapshots
        self._checked: tuple[Offset, int, int] | None = None
        replica.log.has_own_start = True
        replica.keep_state(self)

    @property
    def kind(self) -> SnapshotKind:
        """The kind of snapshot as which a follower stores it."""
        return MACHINE

    def offer(self) -> tuple[LogStart, StateOffer] | None:
        """Return the newest intact state, and the start of a log behind it."""
        log = self._replica.log
        newest = max(self._snapshots.offsets(), default=0)
        if self._checked is None or self._checked[0] != newest:
            self._checked = self._snapshots.newest_good(log.start.offset, log.end_offset)
        if self._checked is None:
            return None
        offset, size, crc = self._checked
        return log.start_at(offset), StateOffer(kind=self.kind.suffix, size=size, crc=crc)

    def piece(self, offset: Offset, crc: int, position: int, bytes_max: int) -> Buffer | None:
        """Return some bytes of the snapshot, if it is the offered one."""
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
        except LogError as error:  # the batch at the new start is lost: do not trim yet
            replica.unreadable(error, offset)


class MachineSaver(Generic[M]):
    """Takes snapshots on one replica, in slices.

    Each is taken of a machine built for that, from the previous snapshot and the log behind it: no
    other change may touch the state while it is written, and a follower has no other machine. If
    one of these is damaged, the snapshot is taken of `live`, the state in memory, if there is one.
    """

    def __init__(
        self,
        site: MachineSite,
        make: Callable[[], M],
        live: Callable[[], Live | None],
    ) -> None:
        self._site = site
        self._replica = site.replica
        self._snapshots = site.snapshots
        self._make = make
        self._live = live
        self._saving: Sliced[None] | None = None
        self._has_failed = False
        self._is_stuck = False
        """Whether the log is damaged at the next place to read."""
        self._saved: Offset = -1
        """The offset of the last snapshot, as far as known."""
        self._unsaved_since_ms: int | None = None

    def tick(self) -> None:
        """Start a snapshot if it is due."""
        replica = self._replica
        if replica.error is not None or self._has_failed:
            self.close()
            return
        if self._is_stuck and replica.damage.found:
            return  # resumes when that is mended
        self._is_stuck = False
        if self._saving is not None:
            return
        try:
            is_due = self._is_due()
        except LogError as error:  # an index had to be rebuilt, and its segment is damaged
            self._unreadable(error)
            return
        if is_due:
            self._saving = self._save()
            self._site.slices.queue(self._saving)

    def close(self) -> None:
        """Give up the current snapshot."""
        if self._saving is not None:
            self._saving.close()
            self._saving = None
        self._saved = -1

    def _is_due(self) -> bool:
        log = self._replica.log
        if self._saved < log.start.offset:
            self._saved = max(self._snapshots.offsets(), default=log.start.offset)
        stop = min(self._replica.raft.commit, log.stable)
        if stop < log.start.index or log.offset_at(stop) <= self._saved:
            self._unsaved_since_ms = None
            return False
        now_ms = self._site.clock.monotonic_ms()
        if self._unsaved_since_ms is None:
            self._unsaved_since_ms = now_ms
        unsaved_bytes = log.segments.bytes_behind(self._saved)
        return self._snapshots.is_due(unsaved_bytes, now_ms - self._unsaved_since_ms)

    def _save(self) -> Sliced[None]:
        log = self._replica.log
        replay = Replay(self._make(), log, self._snapshots)
        try:
            yield from replay.load()
            stop = min(self._replica.raft.commit, log.stable)
            yield from replay.advance(lambda: stop)
            if replay.next < log.start.index:
                return  # the log restarted meanwhile
            offset = log.offset_at(replay.next)
            yield from self._snapshots.saving(offset, replay.machine.records())
            self._saved, self._unsaved_since_ms = offset, None
        except LogError as error:
            live = self._live()
            if live is not None:
                self._snapshots.write(*live)  # as a whole, which is rare enough
                # If there was no room, try again after more changes, not at each tick.
                self._saved, self._unsaved_since_ms = live[0], None
            if live is None or not isinstance(error, StateLost):
                self._unreadable(error)
        finally:
            self._saving = None

    def _unreadable(self, error: LogError) -> None:
        if can_be_mended(error):
            self._is_stuck = True
            self._replica.damaged(error)
        else:  # a later version's log, or a failed disk
            self._has_failed = True
            self._site.failed(error)
