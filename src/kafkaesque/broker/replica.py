"""One replica of one group: carries out what the Raft core decides on the log and the network.

Synchronous and single-threaded: an input goes to the core, its `Ready` is carried out at once,
what takes time (syncs, messages) comes back later as another input. After any error of its log a
replica is stopped for good; whoever owns it opens it again from disk, as after a crash.
"""

import random
from collections import deque
from collections.abc import Callable

from kafkaesque.broker.damage_notes import DamageNotes
from kafkaesque.broker.in_sync import InSync
from kafkaesque.broker.installing import Giving, StateSource, Taking
from kafkaesque.broker.watermark import Copies, Done, Outcome, Watermark
from kafkaesque.config import RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import BatchError, CorruptLog, DiskFull, LogError, NotLeader
from kafkaesque.log.flusher import Flusher
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import RecoverySet, StateSaved
from kafkaesque.log.partition_log import PartitionLog
from kafkaesque.raft.leadership import Leadership
from kafkaesque.raft.messages import (
    AppendRequest,
    CoreMessage,
    Heartbeat,
    InstallRequest,
    Message,
    StatePiece,
    StateRequest,
)
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
        self.damage = DamageNotes(group, log)
        self.raft.may_lead = not self.damage.found
        self.error: LogError | None = None
        self.on_serving: Callable[[], None] = _ignore
        """Called when this replica begins or ceases to serve clients."""
        self.on_in_sync: Callable[[], None] = _ignore
        """Called when other replicas than before are in sync with this one, which leads."""
        self.on_commit: Callable[[], None] = _ignore
        """Called when more is committed."""
        self.on_installed: Callable[[], None] = _ignore
        """Called when the log has begun anew at a later start, before anything is committed."""
        self.on_stopped: Callable[[], None] = _ignore
        """Called when this replica takes part no more, because its log failed."""
        self.in_sync: InSync | None = None
        """Which replicas are in sync, while this one leads."""
        self.is_reachable: Callable[[NodeId], bool] = _always
        """Says whether a node can be reached, to whoever knows more than this group does."""
        self._was_serving = False
        self._has_gathered = False
        """Whether the core has proposals that are not carried out yet."""
        self._shown_commit: Index = -1
        self._shown_offset: Offset = 0
        self.refused_batches = 0
        self._journal = journal
        self._flusher = flusher
        self._send = send
        self._watermark = Watermark()
        self._copies = Copies()
        self._leadership: Leadership | None = None
        self._unsaved_states = 0
        self._held: deque[Message] = deque(maxlen=HELD_MESSAGES_MAX)
        self._giving = Giving(self._post, config.piece_bytes_max)
        self._taking = Taking(log, journal.node, self._post, self._step_core)
        log.on_stable = self._on_stable
        log.on_failed = self._log_failed
        log.on_trimmed = self._on_trimmed
        if log.stable >= log.start.index:
            self._on_stable(log.stable)

    def keep_state(self, source: StateSource) -> None:
        """Have the state that entries before the log's start made go with an install."""
        self._giving.source = source
        self._taking.kind = source.kind

    @property
    def high_watermark(self) -> Offset:
        """The first offset that consumers may not see yet."""
        commit = self.raft.commit
        if commit != self._shown_commit:  # what precedes a committed index never changes
            self._shown_commit = commit
            self._shown_offset = self.log.offset_at(commit)
        return self._shown_offset

    @property
    def is_full(self) -> bool:
        """Whether something waits for room on the disk."""
        return self.log.is_full or self._flusher.is_full

    @property
    def goes_on_from_copy(self) -> bool:
        """Whether it holds records from before and after a gap that an old copy left."""
        copied_at = self._journal.groups[self.group].copied_at
        return copied_at is not None and self.log.start.first_offset <= copied_at

    @property
    def is_serving(self) -> bool:
        """Whether clients may be answered: it leads, and its term has a commit."""
        leadership = self.raft.leadership
        return self.error is None and leadership is not None and leadership.may_serve

    @property
    def may_propose(self) -> bool:
        """Whether `propose` takes a batch, if there is room: it serves, and does not hand over."""
        leadership = self.raft.leadership
        return self.is_serving and leadership is not None and leadership.transferee is None

    def campaign(self) -> None:
        """Ask for votes at once; the only voter of a group wins them at once."""
        self.raft.campaign()
        self._carry_out()

    def tick(self) -> None:
        """Let one tick of time pass."""
        if self.error is None:
            self._carry_out_gathered()
            self.raft.tick()
            self._carry_out()

    def step(self, message: Message) -> None:
        """Take a message from another replica; one that carries a damaged batch is dropped."""
        if self.error is not None:
            return
        match message:
            case AppendRequest() if not _is_sound(message):
                self.refused_batches += 1
            case StateRequest() | StatePiece():
                self._step_state(message)
            case InstallRequest(state=state) if state is not None and self._lacks(message):
                self._step_state(message)
            case _:
                self._step_core(message)

    def _step_core(self, message: CoreMessage) -> None:
        self._carry_out_gathered()
        if self.error is not None:
            return
        self.raft.step(message)
        self._carry_out()
        if isinstance(message, Heartbeat) and message.source == self.raft.leader:
            self._follow_low(message.low)

    def _step_state(self, message: StateRequest | StatePiece | InstallRequest) -> None:
        try:
            match message:
                case StateRequest():
                    self._giving.give(message)
                case StatePiece():
                    self._taking.take_piece(message)
                case InstallRequest():
                    self._taking.take_offer(message)
        except LogError as error:
            self.stop(error)

    def _lacks(self, request: InstallRequest) -> bool:
        return request.term >= self.raft.term and self.raft.lacks(request.start)

    def _follow_low(self, low: Offset) -> None:
        """Forget what the leader has forgotten, as soon as all of that is committed here.

        Not earlier: what is not committed may yet be cut, and a log cannot be cut before its start.
        """
        log = self.log
        if low <= log.start.first_offset or not log.is_settled:
            return
        settled = min(self.raft.commit, log.stable)
        if settled >= log.start.index and low <= log.offset_at(settled):
            try:
                log.trim(low)
            except LogError as error:  # the batch at the new start is lost: it stays for now
                self.unreadable(error, low)

    def _on_trimmed(self) -> None:
        """Let the followers of a group at rest hear of it, too."""
        if self.error is None and self.raft.leadership is not None:
            self.raft.wake()

    def propose(
        self,
        batch: bytearray | memoryview,
        done: Done,
        count: int | None = None,
        copies: int = 1,
    ) -> Offset:
        """Append a checked batch as the leader; return its base offset, tell `done` its fate.

        The batch is stamped in place and belongs to the log from here on. How many offsets it
        takes is read from it unless the caller already has. Whoever wants several copies is told
        when it is committed and so many voters hold it durably. Raises DiskFull as long as an
        earlier one waits for room.
        """
        if count is None:
            count = BatchView(batch).last_offset_delta + 1
        offset = self._take(batch, done, count, copies)
        self._carry_out()
        return offset

    def gather(
        self, batch: bytearray | memoryview, done: Done, count: int, copies: int = 1
    ) -> Offset:
        """Append as `propose` does, but together with what else comes before the flusher's kick.

        Many small requests often come with one read: they cost one write and one message to each
        follower then (`bench/requests.py`).
        """
        offset = self._take(batch, done, count, copies)
        if not self._has_gathered:
            self._has_gathered = True
            self._flusher.before_next_round(self._carry_out_gathered)
        return offset

    def _take(self, batch: bytearray | memoryview, done: Done, count: int, copies: int) -> Offset:
        if self.error is not None:
            raise NotLeader(None)
        if self.log.is_full or self._flusher.is_full:
            self.check_room()
        raft = self.raft
        index = raft.propose(batch, count)
        offset = self.log.offset_at(index)
        stamp(batch, offset, raft.term)
        if copies > 1:
            self._copies.wait(index + count, copies, done)
        else:
            self._watermark.wait(index + count, done)
        return offset

    def check_room(self) -> None:
        """Raise DiskFull while something waits for room on the disk: nothing more is taken."""
        if self.is_full:
            raise DiskFull(f"there is no room on the disk for {self.group}")

    def when_committed(self, done: Done) -> None:
        """Tell `done` once everything that was proposed so far is committed."""
        if self.raft.commit >= self.raft.end:
            done(Outcome.COMMITTED)
        else:
            self._watermark.wait(self.raft.end, done)

    def when_held(self, offset: Offset, copies: int, done: Done) -> None:
        """Tell `done` once the batch at `offset` is committed and so many voters hold it."""
        leadership = self.raft.leadership
        assert leadership is not None
        held = self.raft.commit
        if copies > 1:
            held = min(held, leadership.held_by(copies))
        if held >= 0 and offset < self.log.offset_at(held):
            done(Outcome.COMMITTED)
        elif copies > 1:
            self._copies.wait(self.raft.end, copies, done)
        else:
            self._watermark.wait(self.raft.end, done)

    def look_in_sync(self) -> None:
        """Look who is in sync now, if this replica leads; to be called with every heartbeat."""
        if self.in_sync is not None and self.in_sync.look():
            self._copies.too_few(len(self.in_sync.nodes))
            self.on_in_sync()

    def change_voters(self, voters: Voters, done: Done) -> Index:
        """Change who belongs to the group; raises what `Raft.change_voters` raises."""
        if self.error is not None:
            raise NotLeader(None)
        index = self.raft.change_voters(voters)
        self._watermark.wait(index + 1, done)
        self._carry_out()
        self.look_in_sync()  # there is no progress any more of one who was removed
        return index

    def transfer(self, target: NodeId) -> None:
        """Hand leadership to another voter."""
        if self.error is not None:
            raise NotLeader(None)
        self.raft.transfer(target)
        self._carry_out()

    def _log_failed(self, error: LogError) -> None:
        """Learn that the log can take no more: a disk that fails, or damage where it is to be cut.

        What is to be cut is known, and where it lies in the file is not. Nothing was changed.
        """
        if isinstance(error, CorruptLog):
            self.damage.add(self.damage.place_of(error, None), error)
        self.stop(error)

    def stop(self, error: LogError) -> None:
        """Take part no more; nobody is told of success or failure after this."""
        self.error = error
        self._taking.stop()
        self._watermark.lost()
        self._copies.lost()
        self.on_stopped()

    def damaged(self, error: CorruptLog, offset: Offset | None = None) -> None:
        """Learn that the disk does not give back what was written to it, at `offset` if known.

        The replica keeps its log and its vote, so that the group loses none, and does not lead any
        more, also after a restart. The only voter goes on: nobody else has what is good of it.
        """
        self.damage.add(self.damage.place_of(error, offset), error)
        self.raft.may_lead = False
        if self.error is None and self.raft.leadership is not None:
            self.raft.resign()
            self._carry_out()

    def unreadable(self, error: LogError, offset: Offset | None = None) -> None:
        """Learn that the log could not be read: damage is noted, anything else ends its part."""
        if isinstance(error, CorruptLog):
            self.damaged(error, offset)
        else:
            self.stop(error)

    def mended(self) -> None:
        """Learn that damage is gone: once none is left, this replica may lead again."""
        self.raft.may_lead = not self.damage.found

    @property
    def settled_offset(self) -> Offset:
        """Up to here the log is committed and survives a loss of power."""
        settled = min(self.raft.commit, self.log.durable)
        return self.log.offset_at(max(settled, self.log.start.index))

    @property
    def is_alone(self) -> bool:
        """Whether the group has no other voter."""
        return len(self.raft.voters.voters) == 1

    @property
    def has_holes(self) -> bool:
        """Whether offsets may be missing from the log; if not, a missing one is damage."""
        return self._journal.groups[self.group].has_holes

    def abandon(self) -> None:
        """Take part no more, and tell nobody: the process has ended."""
        self.error = LogError("the process has ended")
        self._taking.stop()

    def retire(self, outcome: Outcome) -> None:
        """Take part no more, because the group is no more, or not here; those who wait are told."""
        self.error = LogError(f"{self.group} is not here any more")
        self._taking.stop()
        self._watermark.lost(outcome)
        self._copies.lost(outcome)

    def _on_stable(self, index: Index) -> None:
        if self.error is None:
            self.raft.stable_at(index)
            self._carry_out()

    def _carry_out_gathered(self) -> None:
        """Let the log have what was gathered; before anything else happens to the core."""
        if self._has_gathered and self.error is None:
            self._carry_out()

    def _carry_out(self) -> None:
        """Do what the core wants, in the order that `Ready` prescribes."""
        self._has_gathered = False
        ready = self.raft.ready()
        state, has_lost, install, truncate, append, messages, commit, is_recovered, unread = ready
        if has_lost:
            self._journal.add(RecoverySet(group=self.group, is_recovering=True))
            self.damage.lose_tail(self.log.end_offset)
        if state is not None:
            self._journal.add(StateSaved(group=self.group, term=state.term, vote=state.vote))
            self._unsaved_states += 1
            self._flusher.after_next_round(self._on_saved)
        if install is not None:
            self.log.install(install)
            self._shown_commit = -1
            self.on_installed()
        if truncate is not None:
            self.log.truncate(truncate)
        if append and self.error is None:  # else the cut before it has failed
            self.log.append(append)
        if is_recovered:
            self._journal.add(RecoverySet(group=self.group, is_recovering=False))
        for message in messages:
            self._dispatch(message)
        if self.raft.leadership is not self._leadership:
            self._leadership_changed()
        elif commit is not None:
            self._watermark.reached(commit)
        if self._copies.waiting and self._leadership is not None:
            self._copies.reached(self.raft.commit, self._leadership.held_by)
        is_serving = self.is_serving
        if is_serving != self._was_serving:
            self._was_serving = is_serving
            self.on_serving()
        if commit is not None:
            self.on_commit()
        if unread is not None:
            self.unreadable(unread)

    def _leadership_changed(self) -> None:
        self._leadership = leadership = self.raft.leadership
        self.in_sync = None
        if leadership is not None:
            self.in_sync = InSync(self.raft, leadership, self.is_reachable)
        self._watermark.lost()
        self._copies.lost()

    def _dispatch(self, core_message: CoreMessage) -> None:
        message: CoreMessage | None = core_message
        if isinstance(core_message, InstallRequest):
            message = self._giving.complete(core_message)
        if message is None:
            return
        if self._unsaved_states:
            self._held.append(message)
        else:
            self._send(self.group, message)

    def _post(self, message: Message) -> None:
        """Send what is no promise, and so waits for nothing."""
        if self.error is None:
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


def _always(_: NodeId) -> bool:
    """Nobody knows better."""
    return True
