"""One replica of one group: carries out what the Raft core decides on the log and the network.

Synchronous and single-threaded: an input goes to the core, its `Ready` is carried out at once,
what takes time (syncs, messages) comes back later as another input. After any error of its log a
replica is stopped for good; whoever owns it opens it again from disk, as after a crash.
"""

import random
from collections import deque
from collections.abc import Callable

from kafkaesque.broker.watermark import Done, Outcome, Watermark
from kafkaesque.config import RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import BatchError, DiskFull, LogError, NotLeader
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import RecoverySet, StateSaved
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.messages import AppendRequest, Message
from kafkaesque.raft.raft import Raft
from kafkaesque.record.view import BatchView, stamp
from kafkaesque.types import GroupId, Index, NodeId, Offset

Send = Callable[[GroupId, Message], None]

HELD_MESSAGES_MAX = 1024
"""Messages that wait for the hard state; the oldest are dropped beyond it, as a network may."""


class Replica:
    """The replica of `group` on this node."""

    def __init__(
        self,
        group: GroupId,
        config: RaftConfig,
        log: PartitionLog,
        journal: Journal,
        flusher: Flusher,
        chance: random.Random,
        send: Send,
    ) -> None:
        state = journal.groups[group]
        self.group = group
        self.log = log
        self.raft = Raft(
            journal.node,
            config,
            log,
            state.hard_state,
            chance,
            is_recovering=state.is_recovering,
        )
        self.error: LogError | None = None
        self.on_serving: Callable[[], None] = _ignore
        """Called when this replica begins or ceases to serve clients."""
        self.on_commit: Callable[[], None] = _ignore
        """Called when more is committed."""
        self.on_stopped: Callable[[], None] = _ignore
        """Called when this replica takes part no more, because its log failed."""
        self._was_serving = False
        self.refused_batches = 0
        self._journal = journal
        self._flusher = flusher
        self._send = send
        self._watermark = Watermark()
        self._leadership: Leadership | None = None
        self._unsaved_states = 0
        self._held: deque[Message] = deque(maxlen=HELD_MESSAGES_MAX)
        log.on_stable = self._on_stable
        log.on_failed = self.stop
        if log.stable >= log.start.index:
            self._on_stable(log.stable)

    @property
    def high_watermark(self) -> Offset:
        """The first offset that consumers may not see yet."""
        return self.log.offset_at(self.raft.commit)

    @property
    def is_serving(self) -> bool:
        """Whether clients may be answered: it leads, and its term has a commit."""
        leadership = self.raft.leadership
        return self.error is None and leadership is not None and leadership.may_serve

    def campaign(self) -> None:
        """Ask for votes at once; the only voter of a group wins them at once."""
        self.raft.campaign()
        self._carry_out()

    def tick(self) -> None:
        """Let one tick of time pass."""
        if self.error is None:
            self.raft.tick()
            self._carry_out()

    def step(self, message: Message) -> None:
        """Take a message from another replica; one that carries a damaged batch is dropped."""
        if self.error is not None:
            return
        if isinstance(message, AppendRequest) and not _is_sound(message):
            self.refused_batches += 1
            return
        try:
            self.raft.step(message)
        except LogError as error:  # the leader read damaged data for a follower
            self.stop(error)
            return
        self._carry_out()

    def propose(
        self, batch: bytearray | memoryview, done: Done, count: int | None = None
    ) -> Offset:
        """Append a checked batch as the leader; return its base offset, tell `done` its fate.

        The batch is stamped in place and belongs to the log from here on. How many offsets it
        takes is read from it unless the caller already has. Raises DiskFull as long as an earlier
        one waits for room.
        """
        if self.error is not None:
            raise NotLeader(None)
        self.check_room()
        if count is None:
            count = BatchView(batch).last_offset_delta + 1
        index = self.raft.propose(batch, count)
        offset = self.log.offset_at(index)
        stamp(batch, offset, self.raft.term)
        self._watermark.wait(index + count, done)
        self._carry_out()
        return offset

    def check_room(self) -> None:
        """Raise DiskFull while something waits for room on the disk: nothing more is taken."""
        if self.log.is_full or self._flusher.is_full:
            raise DiskFull(f"there is no room on the disk for {self.group}")

    def when_committed(self, done: Done) -> None:
        """Tell `done` once everything that is in the log now is committed."""
        if self.raft.commit >= self.log.end:
            done(Outcome.COMMITTED)
        else:
            self._watermark.wait(self.log.end, done)

    def change_voters(self, voters: Voters, done: Done) -> Index:
        """Change who belongs to the group; raises what `Raft.change_voters` raises."""
        if self.error is not None:
            raise NotLeader(None)
        index = self.raft.change_voters(voters)
        self._watermark.wait(index + 1, done)
        self._carry_out()
        return index

    def transfer(self, target: NodeId) -> None:
        """Hand leadership to another voter."""
        if self.error is not None:
            raise NotLeader(None)
        self.raft.transfer(target)
        self._carry_out()

    def stop(self, error: LogError) -> None:
        """Take part no more; nobody is told of success or failure after this."""
        self.error = error
        self._watermark.lost()
        self.on_stopped()

    def abandon(self) -> None:
        """Take part no more, and tell nobody: the process has ended."""
        self.error = LogError("the process has ended")

    def retire(self, outcome: Outcome) -> None:
        """Take part no more, because the group is no more, or not here; those who wait are told."""
        self.error = LogError(f"{self.group} is not here any more")
        self._watermark.lost(outcome)

    def _on_stable(self, index: Index) -> None:
        if self.error is None:
            self.raft.stable_at(index)
            self._carry_out()

    def _carry_out(self) -> None:
        """Do what the core wants, in the order that `Ready` prescribes."""
        state, install, truncate, append, messages, commit, is_recovered = self.raft.ready()
        if state is not None:
            self._journal.add(StateSaved(group=self.group, term=state.term, vote=state.vote))
            self._unsaved_states += 1
            self._flusher.after_next_round(self._on_saved)
        if install is not None:
            self.log.install(install)
        if truncate is not None:
            self.log.truncate(truncate)
        if append:
            self.log.append(append)
        if is_recovered:
            self._journal.add(RecoverySet(group=self.group, is_recovering=False))
        for message in messages:
            self._dispatch(message)
        if self.raft.leadership is not self._leadership:
            self._leadership = self.raft.leadership
            self._watermark.lost()
        elif commit is not None:
            self._watermark.reached(commit)
        is_serving = self.is_serving
        if is_serving != self._was_serving:
            self._was_serving = is_serving
            self.on_serving()
        if commit is not None:
            self.on_commit()

    def _dispatch(self, message: Message) -> None:
        if self._unsaved_states:
            self._held.append(message)
        else:
            self._send(self.group, message)

    def _on_saved(self) -> None:
        self._unsaved_states -= 1
        if self._unsaved_states == 0 and self.error is None:
            held, self._held = self._held, deque(maxlen=HELD_MESSAGES_MAX)
            for message in held:
                self._send(self.group, message)


def _is_sound(request: AppendRequest) -> bool:
    """Return whether every batch is what its leader once wrote: one bad bit must not spread."""
    try:
        for entry in request.entries:
            if isinstance(entry.payload, bytes | bytearray | memoryview):
                view = BatchView(entry.payload)
                view.check_crc()
                if view.size != len(entry.payload) or view.term != entry.term:
                    return False
                if view.last_offset_delta + 1 != entry.end - entry.first:
                    return False
    except BatchError:
        return False
    return True


def _ignore() -> None:
    """Nobody listens yet."""
