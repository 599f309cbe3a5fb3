"""Everything that one node keeps on disk: its journal, its logs, and the rounds that sync them."""

import logging
import random
from collections.abc import Callable, Mapping

from kafkaesque.broker import doubts
from kafkaesque.broker.aside import NOBODY, begun, distrust, put_aside
from kafkaesque.broker.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replica import Replica, Send
from kafkaesque.broker.salvage import open_journal
from kafkaesque.clock import Clock
from kafkaesque.config import LogConfig, RaftConfig
from kafkaesque.entry import LogStart, Voters
from kafkaesque.errors import CorruptLog, LogError
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import GroupForgotten, synced_record
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.types import NO_TERM, GroupId, NodeId, Offset

log = logging.getLogger(__name__)

_CHECK_BYTES = 1 << 20
"""Read at once when a log is looked through."""

_LAST_ROUNDS_MAX = 8
"""Rounds of a clean stop: the longest operation takes three, and few wait behind each other."""


class Store:
    """One node's data folder. `failed` is told once when nothing more can be written to it."""

    def __init__(
        self,
        disk: Disk,
        journal: Journal,
        config: LogConfig,
        clock: Clock,
        failed: Callable[[LogError], None],
    ) -> None:
        self.journal = journal
        self.flusher = Flusher(journal, failed)
        self.flusher.now_ms = clock.monotonic_ms
        self.disk = self._disk = disk
        self._config = config
        self._clock = clock
        self._logs: dict[GroupId, PartitionLog] = {}
        self._snapshots: dict[GroupId, MachineSnapshots] = {}

    @classmethod
    def open(
        cls,
        disk: Disk,
        config: LogConfig,
        clock: Clock,
        node: NodeId,
        failed: Callable[[LogError], None],
    ) -> "Store":
        """Open the folder of an earlier run, or begin one for a new node."""
        if Journal.exists(disk):
            journal = open_journal(disk, config)
            if journal.damaged_copy:
                log.warning(
                    "journal_mended node=%d copy=%s: one of the two copies of its state was "
                    "damaged; the next round writes both anew",
                    *(journal.node, journal.damaged_copy),
                )
            if journal.old_copy is not None:
                doubts.begin_again(journal, disk)
        else:
            journal = Journal.create(disk, config, node)
        _begin_run(journal, disk.boot_id())
        return cls(disk, journal, config, clock, failed)

    def settle(self, held: Mapping[GroupId, doubts.Held]) -> None:
        """Learn from the catalog what this node holds, before any of it is opened.

        The catalog must be known up to a change that was made in this run.
        """
        if self.journal.doubted_term:
            doubts.settle_doubts(self.journal, self._disk, held)

    def create_log(self, group: GroupId, voters: Voters) -> PartitionLog:
        """Begin the empty log of a new replica."""
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

        If a machine lives on it, the state that it begins with must be whole, too, and all that
        follows: the machine reads it at once, and without it the broker could not go on.
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
        """Put a damaged log aside: when it is opened it is empty, and votes once peers filled it.

        To be called only when a majority of the others is whole (`broker/refills.py`). Raises the
        damage if there are no others: then only a person can decide.
        """
        voters = self.journal.groups[group].marks.voters()[-1][1]
        if voters.members == (self.journal.node,):
            raise damage
        damaged = self._logs.pop(group, None)
        if damaged is not None:
            # Found while in use: a round under way must not let it go on, or it would write of a
            # group that is the new log's, and take that one's place in the next round.
            damaged.close()
        put_aside(self.journal, self._disk, {group: voters})

    def replica(
        self, log: PartitionLog, config: RaftConfig, chance: random.Random, send: Send
    ) -> Replica:
        """Return the replica that runs on a log of this store."""
        return Replica(log.group, config, log, self.journal, self.flusher, chance, send)

    def snapshots(self, group: GroupId) -> MachineSnapshots:
        """Return where the machine on a log of this store keeps its state."""
        if group not in self._snapshots:
            self._snapshots[group] = MachineSnapshots(self._disk, group, self._config)
        return self._snapshots[group]

    def forget(self, group: GroupId) -> None:
        """Note that this node has no replica of the group any more; its files stay."""
        self._snapshots.pop(group, None)
        log = self._logs.pop(group, None)
        if log is not None:  # else it could not be opened
            log.close(syncs=False)  # nobody will read it any more
        self.journal.add(GroupForgotten(group=group))

    def leave(self, group: GroupId) -> None:
        """Note that what this node held of the group is held by others now; its files may go.

        The node does not forget its term, or it could vote and acknowledge anew in one in which it
        did so before. Should the group come back, its log begins with nothing, and the replica is
        in the next term and does not vote before it holds what is committed: the same as one whose
        disk lost everything (`docs/adr/0008-damaged-replicas-leave-their-term.md`).
        """
        log = self._logs.pop(group, None)
        if log is not None:
            log.close(syncs=False)  # nobody will read it any more
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
        """Whether a log was not opened in this run that may hold what was never synced."""
        return any(
            state.may_lose and group not in self._logs and not self.has_left(group)
            for group, state in self.journal.groups.items()
        )

    def _finish_operations(self) -> None:
        """Let logs write what waits in memory: it may have been acknowledged to the hasty.

        Nobody hears of it any more. What waits for room on a full disk is given up.
        """
        for _ in range(_LAST_ROUNDS_MAX):
            logs = [log for log in self._logs.values() if log.error is None and not log.is_settled]
            if not logs:
                return
            for log in logs:
                log.on_stable = _ignore
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
    """Note that the node runs, and which of its replicas may have forgotten what they acknowledged.

    Under a flush policy that lets batches count before they are synced, a loss of power takes some
    of them. A vote of such a replica could elect a leader without them, although others still have
    them. So it does not vote until it has all that a leader has committed which was elected without
    it, and leaves its term, as one whose log was damaged does; also one that did not vote before:
    it has acknowledged meanwhile. The only voter of a group just goes on: nobody knows better.
    """
    has_lost_power = bool(journal.boot) and journal.boot != boot and not journal.is_stopped
    for group, state in journal.groups.items() if has_lost_power else ():
        voters = state.marks.voters()[-1][1].voters
        if state.may_lose and set(voters) - {journal.node}:
            distrust(journal, group)
    journal.begin_run(boot)
    if any(state.may_lose for state in journal.groups.values()):
        # Durable before a batch counts that is not synced. Else the next round is soon enough, and
        # that a disk is full keeps nobody from starting.
        journal.write_now()


def _ignore(_: object) -> None:
    """The store is being closed."""


def _check_sound(log: PartitionLog, offset: Offset) -> None:
    """Look through a log from an offset on; raises CorruptLog.

    Recovery looks only at what may not have been synced.
    """
    first = log.index_at(offset - 1) + 1 if offset > log.start.offset else log.start.index
    while first < log.end:  # ends: each turn moves on, or finds a hole up to the end
        entries = log.entries(first, _CHECK_BYTES)
        if not entries:
            return
        first = entries[-1].end
