"""Keeps a copy of a machine that holds exactly what is committed, whichever broker leads.

It is fed from the log as the commit index moves, on leaders and followers alike, and never takes
anything back. The leader's own machine (`broker/machine_hosting/machine_host.py`), which runs ahead
of the commit and decides, is separate. Snapshots are taken of this copy, because its content is
final.
"""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from kafkaesque.broker.machine_hosting.machine_saver import Live, MachineState
from kafkaesque.broker.machine_hosting.machine_site import MachineSite
from kafkaesque.broker.machine_hosting.replay import Replay
from kafkaesque.broker.replication.failures import can_be_mended
from kafkaesque.errors import LogError
from kafkaesque.machines.machine import Machine, MachineRecord
from kafkaesque.slices import whole
from kafkaesque.types import Offset

WAIT_TICKS_MAX = 100
"""Limit of the wait for a lagging copy; what callers wait for is committed already."""

M = TypeVar("M", bound=Machine)


class MachineFollower(Generic[M]):
    """The committed copy of one machine; `on_applied` is called when it has changed.

    If the log cannot be understood the copy stays as it is. If the log is damaged the copy waits
    until that is mended.
    """

    def __init__(
        self,
        site: MachineSite,
        machine: M,
        on_applied: Callable[[], None],
    ) -> None:
        self.machine = machine
        replica, snapshots = site.replica, site.snapshots
        self.applied: Offset = replica.log.start.offset
        """The copy reflects all records before this offset."""
        self._replica = replica
        self._on_applied = on_applied
        self._on_failed = site.failed
        self._snapshots = snapshots
        self._replay = Replay(machine, replica.log, snapshots)
        self._has_failed = False
        self._is_stuck = False
        """Whether the log is damaged at the next place to read."""
        self._ticks = 0
        self._waiting: deque[tuple[Offset, int, Callable[[], None]]] = deque()
        replica.on_commit.append(self.catch_up)
        replica.on_installed.append(self._installed)
        MachineState(replica, snapshots)
        self._load()

    def catch_up(self) -> None:
        """Apply everything committed so far."""
        replay, commit = self._replay, self._replica.raft.commit
        if self._has_failed or self._is_stuck or replay.next >= commit:
            return
        try:
            whole(replay.advance(lambda: commit))
        except LogError as error:
            if not can_be_mended(error):  # a later version's log, or a failed disk
                self._has_failed = True
                self._on_failed(error)
                return
            self._is_stuck = True
            self._replica.damaged(error)
        self.applied = self._replica.log.offset_at(replay.next)
        self._on_applied()
        self._tell()

    def when_applied(self, offset: Offset, then: Callable[[], None]) -> None:
        """Call back when the copy reflects everything before `offset`, or after a timeout."""
        self._waiting.append((offset, self._ticks + WAIT_TICKS_MAX, then))
        self._tell()

    def tick(self) -> None:
        """Resume after damage was mended, and call back waiters that timed out."""
        self._ticks += 1
        if self._is_stuck and not self._replica.damage.found:
            self._is_stuck = False
            self.catch_up()
        self._tell()

    def live(self) -> Live | None:
        """Return the state, unless the copy cannot follow the log."""
        if self._has_failed or self._is_stuck:
            return None
        return self.applied, self.machine.records()

    def stop(self) -> None:
        """Save the state before a clean stop, so that the next start replays nothing."""
        if self._replica.error is None and not self._has_failed:
            self._snapshots.write(self.applied, self.machine.records())

    def _installed(self) -> None:
        """Continue from the state with which the log was restarted."""
        self._load()
        if not self._has_failed:
            self._on_applied()
            self._tell()

    def _load(self) -> None:
        """Load the newest snapshot's state in place: others hold references to the machine."""
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
        self.applied = offset
        self._replay.loaded(offset)

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, deque()
        for offset, until, then in waiting:
            if self.applied >= offset or self._ticks >= until:
                then()
            else:
                self._waiting.append((offset, until, then))
