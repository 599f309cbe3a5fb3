"""Keeps a copy of a machine that holds what is committed and nothing else, whoever leads.

It is fed from the log as the commit index moves, on leaders and followers alike, and never has to
take anything back. The leader's own machine (`broker/machine_host.py`), which is ahead of the
commit and decides, is another one. Snapshots are taken of this copy: what is in it stays.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from kafkaesque.broker.failing import can_be_mended
from kafkaesque.broker.machine_snapshots import MachineSnapshots
from kafkaesque.broker.machine_trim import MachineState, trim_covered
from kafkaesque.broker.replica import Replica
from kafkaesque.clock import Clock
from kafkaesque.errors import LogError
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView
from kafkaesque.types import Index, Offset

_READ_BYTES = 1 << 20

WAIT_TICKS_MAX = 100
"""Whoever waits for a copy that lags is not kept for ever: what it waits for is committed."""

M = TypeVar("M", bound=Machine)


class MachineFollower(Generic[M]):
    """The committed copy of one machine; `on_applied` is told when it has changed.

    `on_failed` is told when the log cannot be understood; then the copy stays as it is. Where the
    log is damaged it waits until that is mended.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        machine: M,
        on_applied: Callable[[], None],
        on_failed: Callable[[LogError], None],
        snapshots: MachineSnapshots,
    ) -> None:
        self.machine = machine
        self.applied: Offset = replica.log.start.offset
        """The copy shows all records before this offset."""
        self._replica = replica
        self._clock = clock
        self._on_applied = on_applied
        self._on_failed = on_failed
        self._snapshots = snapshots
        self._next: Index = replica.log.start.index
        self._has_failed = False
        self._is_stuck = False
        """Whether the log is damaged where it is to be read on."""
        self._unsaved_bytes = 0
        self._unsaved_since_ms = 0
        self._ticks = 0
        self._waiting: deque[tuple[Offset, int, Callable[[], None]]] = deque()
        before = replica.on_commit

        def on_commit() -> None:
            before()
            self.catch_up()

        replica.on_commit = on_commit
        replica.on_installed = self._installed
        MachineState(replica, snapshots)
        self._load()

    def catch_up(self) -> None:
        """Apply what is committed by now."""
        log, commit = self._replica.log, self._replica.raft.commit
        if self._has_failed or self._is_stuck or self._next >= commit:
            return
        try:
            self._apply_to(commit)
        except LogError as error:
            if not can_be_mended(error):  # written by a later version, or the disk fails
                self._has_failed = True
                self._on_failed(error)
                return
            self._is_stuck = True
            self._replica.damaged(error)
        self.applied = log.offset_at(self._next)
        self._on_applied()
        self._tell()

    def when_applied(self, offset: Offset, then: Callable[[], None]) -> None:
        """Call back when everything before `offset` shows in the copy, or does not for long."""
        self._waiting.append((offset, self._ticks + WAIT_TICKS_MAX, then))
        self._tell()

    def tick(self) -> None:
        """Save the state if that is due."""
        self._ticks += 1
        if self._is_stuck and not self._replica.damage.found:
            self._is_stuck = False
            self.catch_up()
        self._tell()
        unsaved_ms = self._clock.monotonic_ms() - self._unsaved_since_ms
        if self._snapshots.is_due(self._unsaved_bytes, unsaved_ms) and not self._has_failed:
            self._snapshots.begin(self.applied, self.machine.records())
            self._unsaved_bytes = 0
        trim_covered(self._replica, self._snapshots)

    def stop(self) -> None:
        """Save the state before a clean stop, so that the next start replays nothing."""
        if self._unsaved_bytes and self._replica.error is None and not self._has_failed:
            self._snapshots.write(self.applied, self.machine.records())
            self._unsaved_bytes = 0

    def _installed(self) -> None:
        """Go on from the state with which the log has begun anew."""
        self._load()
        if not self._has_failed:
            self._on_applied()
            self._tell()

    def _load(self) -> None:
        """Let the machine become what the newest snapshot says, in place: others look at it."""
        log = self._replica.log
        try:
            offset, records = self._snapshots.load(log.start.offset, log.end_offset)
            kept = {record.key for record in records}
            gone = [r.key for r in self.machine.records() if r.value and r.key not in kept]
            for key in gone:
                self.machine.apply(MachineRecord(key, None))
            for record in records:
                self.machine.apply(record)
        except LogError as error:
            self._has_failed = True
            self._on_failed(error)
            return
        self._unsaved_bytes = 0
        self.applied = offset
        # Behind the last record that was applied: marks that follow it may not be committed, and
        # what replaces them must not be passed over.
        is_later = offset > log.start.offset
        self._next = log.index_at(offset - 1) + 1 if is_later else log.start.index

    def _apply_to(self, commit: Index) -> None:
        log = self._replica.log
        while self._next < commit:
            entries = log.entries(self._next, _READ_BYTES)
            if not entries:
                self._next = commit  # nothing but a hole that compaction left
            for entry in entries:
                if entry.end > commit:
                    self._next = commit  # a hole reaches up to here
                    return
                if isinstance(entry.payload, bytes | bytearray | memoryview):
                    self._unsaved(len(entry.payload))
                    for one in read_records(BatchView(entry.payload)):
                        assert one.key is not None, "every record of a machine has a key"
                        self.machine.apply(MachineRecord(one.key, one.value))
                self._next = entry.end

    def _unsaved(self, size: int) -> None:
        if not self._unsaved_bytes:
            self._unsaved_since_ms = self._clock.monotonic_ms()
        self._unsaved_bytes += size

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for offset, until, then in waiting:
            if self.applied >= offset or self._ticks >= until:
                then()
            else:
                self._waiting.append((offset, until, then))
