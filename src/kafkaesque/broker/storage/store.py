"""Everything that one node keeps on disk: its journal, its logs, and the rounds that sync them."""

import random
from collections.abc import Callable, Mapping

from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replication.replica import Replica, Send
from kafkaesque.broker.storage import old_copy_restart
from kafkaesque.broker.storage.aside import NOBODY, begun, distrust, put_aside
from kafkaesque.broker.storage.salvage import open_journal
from kafkaesque.callbacks import ignore
from kafkaesque.clock import Clock
from kafkaesque.config import LogConfig, RaftConfig
from kafkaesque.entry import LogStart, Voters
from kafkaesque.errors import LogError
from kafkaesque.events import DiskFull, DiskHasRoom, Events, JournalMended, SlowSync
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import GroupForgotten, synced_record
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.slices import Slices
from kafkaesque.types import NO_TERM, GroupId, NodeId, Offset

_CHECK_BYTES = 1 << 20
"""How much is read at once when a log is checked."""

_LAST_ROUNDS_MAX = 8
"""Rounds of a clean stop: the longest operation takes three, and few queue up."""


class Store:
    """One node's data folder. `failed` is called once when nothing more can be written to it."""

    def __init__(
        self,
        disk: Disk,
        journal: Journal,
        config: LogConfig,
        clock: Clock,
        failed: Callable[[LogError], None],
        events: Events,
    ) -> None:
        self.journal = journal
        self.events = events
        """Where everything that runs on this folder reports its events."""
        self.slices = Slices()
        """Long work on this folder, done between events."""
        self.flusher = Flusher(journal, failed)
        self.flusher.now_ms = clock.monotonic_ms
        self.flusher.on_round = self._round_took
        self.disk = self._disk = disk
        self._config = config
        self._clock = clock
        self._logs: dict[GroupId, PartitionLog] = {}
        self._snapshots: dict[GroupId, MachineSnapshots] = {}
        self._was_full = False

    @classmethod
    def open(
        cls,
        disk: Disk,
        config: LogConfig,
        clock: Clock,
        node: NodeId,
        failed: Callable[[LogError], None],
        events: Events,
    ) -> "Store":
        """Open the folder of an earlier run, or create one for a new node."""
        if Journal.exists(disk):
            journal = open_journal(disk, config)
            if journal.damaged_copy:
                events.tell(JournalMended(node=journal.node, copy=journal.damaged_copy))
            if journal.old_copy is not None:
                old_copy_restart.begin_again(journal, disk, events)
        else:
            journal = Journal.create(disk, config, node)
        _begin_run(journal, disk.boot_id())
        return cls(disk, journal, config, clock, failed, events)

    def settle(self, held: Mapping[GroupId, old_copy_restart.Held]) -> None:
        """Learn from the catalog what this node holds, before any of it is opened.

        The catalog must be current up to a change made in this run.
        """
        if self.journal.doubted_term:
            old_copy_restart.settle_doubts(self.journal, self._disk, held, self.events)

    def create_log(self, group: GroupId, voters: Voters) -> PartitionLog:
        """Create the empty log of a new replica."""
        start = LogStart(offset=0, marks_before=0, prev_term=NO_TERM, voters=voters)
        log = PartitionLog.create(
            group,
            start,
            disk=self._disk,
            config=self._config,
            clock=self._clock,
            journal=self.journal,
            flusher=self.flusher,
        )
        self._logs[group] = log
        return log

    def open_log(self, group: GroupId, *, has_machine: bool = False) -> PartitionLog:
        """Recover a log; raises CorruptLog if its end is damaged, and changes nothing then.

        If the log feeds a machine, the state that it starts with must be intact, too, and all that
        follows: the machine reads it at once, and the broker could not continue without it.
        """
        log = self._recover(group)
        if has_machine:
            try:
                offset, _ = self.snapshots(group).load(log.start.offset, log.end_offset)
                _check_sound(log, offset)
            except CorruptLog:
                log.close()
                raise
        self._logs[group] = log
        return log

    def refill_log(self, group: GroupId, damage: CorruptLog) -> None:
        """Put a damaged log aside: reopened, it is empty, and votes once peers have filled it.

        Call this only while a majority of the others is whole (`broker/cluster/refills.py`). Raises
        the damage if there are no others: then only an operator can decide.
        """
        voters = self.journal.groups[group].marks.voters()[-1][1]
        if voters.members == (self.journal.node,):
            raise damage
        damaged = self._logs.pop(group, None)
        if damaged is not None:
            # Found in use: a round in progress must not let it continue, or it would write records
            # of a group that now belongs to the new log, and take that log's place in the next
            # round.
            damaged.close()
        put_aside(self.journal, self._disk, {group: voters})

    def replica(
        self, log: PartitionLog, config: RaftConfig, chance: random.Random, send: Send
    ) -> Replica:
        """Return the replica that runs on a log of this store."""
        return Replica(
            log.group, config, log, self.journal, self.flusher, chance, send, self.events
        )

    def look_at_room(self) -> None:
        """Report when a write starts to wait for room on the disk, and when none waits any more.

        Call this after time has passed: waiting writes have then been retried.
        """
        is_full = self.flusher.wants_room
        if is_full != self._was_full:
            self._was_full = is_full
            folder, free = self._disk.location(), self._disk.space()[1]
            told = DiskFull if is_full else DiskHasRoom
            self.events.tell(told(folder=folder, free_bytes=free))

    def _round_took(self, took_ms: int) -> None:
        if took_ms >= self._config.slow_sync_ms:
            self.events.tell(SlowSync(took_ms=took_ms))

    def snapshots(self, group: GroupId) -> MachineSnapshots:
        """Return where the machine on a log of this store keeps its state."""
        if group not in self._snapshots:
            self._snapshots[group] = MachineSnapshots(self._disk, group, self._config)
        return self._snapshots[group]

    def forget(self, group: GroupId) -> None:
        """Note that this node no longer has a replica of the group; its files stay."""
        self._snapshots.pop(group, None)
        log = self._logs.pop(group, None)
        if log is not None:  # otherwise it could not be opened
            log.close(syncs=False)  # it will not be read again
        self.journal.add(GroupForgotten(group=group))

    def leave(self, group: GroupId) -> None:
        """Note that others now hold what this node held of the group; its files may be removed.

        The node does not forget its term, or it could vote and acknowledge again in a term in which
        it already did. If the group comes back, its log starts empty, and the replica is in the
        next term and does not vote until it holds what is committed: like one whose disk lost
        everything (`docs/adr/0008-damaged-replicas-leave-their-term.md`).
        """
        log = self._logs.pop(group, None)
        if log is not None:
            log.close(syncs=False)  # it will not be read again
        if self.has_left(group):
            return
        distrust(self.journal, group)
        self.journal.add(begun(group, NOBODY))

    def has_left(self, group: GroupId) -> bool:
        """Whether the journal says that nothing is held of a group that was once here."""
        state = self.journal.groups[group]
        return state.is_reset and state.is_recovering and state.marks.start.voters == NOBODY

    def close(self) -> None:
        """Stop cleanly: everything is durable and the journal says so, so opening is quick."""
        self.flusher.stop()
        self._finish_operations()
        for group, log in self._logs.items():
            if log.is_settled:
                with disk_errors(group):
                    self._disk.sync_now(log.unsynced(), [group])
                self.journal.add(synced_record(group, log.segments.point()))
            log.close()
        if all(log.error is None for log in self._logs.values()) and not self._has_unopened():
            self.journal.end_run()
        self.journal.write_now()
        self.journal.close()

    def _has_unopened(self) -> bool:
        """Whether a log that was not opened in this run may hold unsynced data."""
        return any(
            state.may_lose and group not in self._logs and not self.has_left(group)
            for group, state in self.journal.groups.items()
        )

    def _finish_operations(self) -> None:
        """Let logs write what waits in memory: it may be acknowledged to callers that did not wait.

        No callback is called any more. Writes that wait for room on a full disk are given up.
        """
        for _ in range(_LAST_ROUNDS_MAX):
            logs = [log for log in self._logs.values() if log.error is None and not log.is_settled]
            if not logs:
                return
            for log in logs:
                log.on_stable = ignore
                with disk_errors(log.group):
                    self._disk.sync_now(*log.round_begins())
            self.journal.write_now()
            for log in logs:
                log.round_done()

    def _recover(self, group: GroupId) -> PartitionLog:
        return PartitionLog.open(
            group,
            disk=self._disk,
            config=self._config,
            clock=self._clock,
            journal=self.journal,
            flusher=self.flusher,
        )


def _begin_run(journal: Journal, boot: str) -> None:
    """Note that the node runs, and which of its replicas may have lost what they acknowledged.

    If the flush policy lets batches count before they are synced, a power loss takes some of them.
    A vote of such a replica could elect a leader without them, although others still have them. So
    it leaves its term, and does not vote until it has all that is committed by a leader elected
    without it, like a replica whose log was damaged. That includes replicas that did not vote
    before: they have acknowledged meanwhile. The only voter of a group just continues: no replica
    knows better.
    """
    has_lost_power = bool(journal.boot) and journal.boot != boot and not journal.is_stopped
    for group, state in journal.groups.items() if has_lost_power else ():
        voters = state.marks.voters()[-1][1].voters
        if state.may_lose and set(voters) - {journal.node}:
            distrust(journal, group)
    journal.begin_run(boot)
    if any(state.may_lose for state in journal.groups.values()):
        # Durable before an unsynced batch counts. Otherwise the next round is soon enough, and a
        # full disk does not prevent the start.
        journal.write_now()


def _check_sound(log: PartitionLog, offset: Offset) -> None:
    """Check a log, starting at an offset; raises CorruptLog.

    Recovery checks only what may be unsynced.
    """
    first = log.index_at(offset - 1) + 1 if offset > log.start.offset else log.start.index
    while first < log.end:  # terminates: each pass advances, or finds a hole up to the end
        entries = log.entries(first, _CHECK_BYTES)
        if not entries:
            return
        first = entries[-1].end
