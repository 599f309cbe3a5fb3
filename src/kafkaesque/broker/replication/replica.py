"""One replica of one group: applies the Raft core's decisions to the log and the network.

Synchronous and single-threaded: an input goes to the core, its `Ready` is carried out at once, and
slow work (syncs, messages) comes back later as another input. After any error of its log a replica
is stopped for good; its owner reopens it from disk, as after a crash.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from kafkaesque.broker.replication.damage_notes import DamageNotes
from kafkaesque.broker.replication.in_sync import InSync
from kafkaesque.broker.replication.state_transfer import Giving, StateSource, Taking
from kafkaesque.broker.replication.watermark import Copies, Done, Outcome, Watermark
from kafkaesque.callbacks import ignore
from kafkaesque.config import RaftConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import DiskFull, LogError, NotLeader
from kafkaesque.events import (
    Events,
    LeaderElected,
    LeadershipLost,
    LogTruncated,
    ReplicaRecovered,
    VotersChanged,
)
from kafkaesque.log.errors import CorruptLog
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
from kafkaesque.record.errors import BatchError
from kafkaesque.record.view import BatchView, stamp
from kafkaesque.types import GroupId, Index, NodeId, Offset

Send = Callable[[GroupId, Message], None]

HELD_MESSAGES_MAX = 1024
"""Messages that wait for the hard state; beyond it the oldest are dropped, as a network may."""


class Replica:
    """The replica of `group` on this node."""

    def __init__(  # noqa: PLR0913 - all that a replica stands on
        self,
        group: GroupId,
        config: RaftConfig,
        log: PartitionLog,
        journal: Journal,
        flusher: Flusher,
        chance: random.Random,
        send: Send,
        events: Events,
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
        self.damage = DamageNotes(group, log, events)
        self.raft.may_lead = not self.damage.found
        self.error: LogError | None = None
        self.on_serving: list[Callable[[], None]] = []
        """Called when this replica starts or stops serving clients, in no particular order."""
        self.on_announced: list[Callable[[], None]] = []
        """Called after all of `on_serving`, when everything is ready."""
        self.on_in_sync: Callable[[], None] = ignore
        """Called when the set of replicas in sync with this leader changes."""
        self.on_commit: list[Callable[[], None]] = []
        """Called when more is committed."""
        self.on_installed: list[Callable[[], None]] = []
        """Called when the log restarts at a later start, before anything is committed."""
        self.on_stopped: Callable[[], None] = ignore
        """Called when this replica stops because its log failed."""
        self.in_sync: InSync | None = None
        """The in-sync replicas, while this one leads."""
        self.is_reachable: Callable[[NodeId], bool] = _always
        """Returns whether a node is reachable; set by an owner that knows more than this group."""
        self._was_serving = False
        self._has_gathered = False
        """Whether the core has proposals that are not carried out yet."""
        self._shown_commit: Index = -1
        self._shown_offset: Offset = 0
        self._journal = journal
        self._flusher = flusher
        self._send = send
        self._events = events
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
        """Set the source of the state that an install carries for entries before the start."""
        self._giving.source = source
        self._taking.kind = source.kind

    @property
    def high_watermark(self) -> Offset:
        """The first offset that consumers may not see yet."""
        commit = self.raft.commit
        if commit != self._shown_commit:  # entries before a committed index never change
            self._shown_commit = commit
            self._shown_offset = self.log.offset_at(commit)
        return self._shown_offset

    @property
    def is_full(self) -> bool:
        """Whether a write waits for room on the disk."""
        return self.log.is_full or self._flusher.is_full

    @property
    def goes_on_from_copy(self) -> bool:
        """Whether it holds records from before and after a gap left by an old copy."""
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
        """Ask for votes at once; a group's only voter wins them at once."""
        self.raft.campaign()
        self._carry_out()

    def tick(self) -> None:
        """Advance one tick."""
        if self.error is None:
            self._carry_out_gathered()
            self.raft.tick()
            self._carry_out()

    def step(self, message: Message) -> None:
        """Take a message from another replica; one with a damaged batch is dropped."""
        if self.error is not None:
            return
        match message:
            case AppendRequest() if not _is_sound(message):
                pass
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
        """Trim what the leader has trimmed, once all of that is committed here.

        Not earlier: uncommitted entries may still be cut, and a log cannot be cut before its start.
        """
        log = self.log
        if low <= log.start.first_offset or not log.is_settled:
            return
        settled = min(self.raft.commit, log.stable)
        if settled >= log.start.index and low <= log.offset_at(settled):
            try:
                log.trim(low)
            except LogError as error:  # the batch at the new start is lost: do not trim yet
                self.unreadable(error, low)

    def _on_trimmed(self) -> None:
        """Wake a resting group, so that its followers learn of it."""
        if self.error is None and self.raft.leadership is not None:
            self.raft.wake()

    def propose(
        self,
        batch: bytearray | memoryview,
        done: Done,
        count: int | None = None,
        copies: int = 1,
    ) -> Offset:
        """Append a checked batch as the leader; return its base offset. `done` gets the outcome.

        The batch is stamped in place and belongs to the log from then on. Its number of offsets is
        read from it unless the caller passes `count`. With several `copies`, `done` is called when
        the batch is committed and durable on that many voters. Raises DiskFull while an earlier
        batch waits for room.
        """
        if count is None:
            count = BatchView(batch).last_offset_delta + 1
        offset = self._take(batch, done, count, copies)
        self._carry_out()
        return offset

    def gather(
        self, batch: bytearray | memoryview, done: Done, count: int, copies: int = 1
    ) -> Offset:
        """Append like `propose`, but together with all that comes before the flusher's kick.

        Many small requests often arrive in one read: they then cost one write and one message to
        each follower (`bench/requests.py`).
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
        """Raise DiskFull while a write waits for room on the disk."""
        if self.is_full:
            raise DiskFull(f"there is no room on the disk for {self.group}")

    def when_committed(self, done: Done) -> None:
        """Call `done` once everything proposed so far is committed."""
        if self.raft.commit >= self.raft.end:
            done(Outcome.COMMITTED)
        else:
            self._watermark.wait(self.raft.end, done)

    def when_held(self, offset: Offset, copies: int, done: Done) -> None:
        """Call `done` once the batch at `offset` is committed and on this many voters."""
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
        """Update the in-sync replicas, if this replica leads; call with every heartbeat."""
        if self.in_sync is not None and self.in_sync.look():
            self._copies.too_few(len(self.in_sync.nodes))
            self.on_in_sync()

    def change_voters(self, voters: Voters, done: Done) -> Index:
        """Change the group's members; raises as `Raft.change_voters` does."""
        if self.error is not None:
            raise NotLeader(None)
        index = self.raft.change_voters(voters)
        self._watermark.wait(index + 1, partial(self._voters_decided, voters, done))
        self._carry_out()
        self.look_in_sync()  # a removed member no longer has a progress
        return index

    def _voters_decided(self, voters: Voters, done: Done, outcome: Outcome) -> None:
        if outcome is Outcome.COMMITTED:
            changed = VotersChanged(
                partition=self.group, voters=voters.voters, learners=voters.learners
            )
            self._events.tell(changed)
        done(outcome)

    def transfer(self, target: NodeId) -> None:
        """Hand leadership to another voter."""
        if self.error is not None:
            raise NotLeader(None)
        self.raft.transfer(target)
        self._carry_out()

    def _log_failed(self, error: LogError) -> None:
        """Handle a failure of the log: a failing disk, or damage where it must be cut.

        The index to cut at is known, but not its position in the file. Nothing was changed.
        """
        if isinstance(error, CorruptLog):
            self.damage.add(self.damage.place_of(error, None), error)
        self.stop(error)

    def stop(self, error: LogError) -> None:
        """Stop for good; waiting callers get an unknown outcome."""
        self.error = error
        self._taking.stop()
        self._watermark.lost()
        self._copies.lost()
        self.on_stopped()

    def damaged(self, error: CorruptLog, offset: Offset | None = None) -> None:
        """Note that the disk does not return what was written, at `offset` if known.

        The replica keeps its log and its vote, so that the group loses none, but no longer leads,
        not even after a restart. The only voter goes on: no other replica has the intact part.
        """
        self.damage.add(self.damage.place_of(error, offset), error)
        self.raft.may_lead = False
        if self.error is None and self.raft.leadership is not None:
            self.raft.resign()
            self._carry_out()

    def unreadable(self, error: LogError, offset: Offset | None = None) -> None:
        """Note that the log could not be read: for damage, note it; for other errors, stop."""
        if isinstance(error, CorruptLog):
            self.damaged(error, offset)
        else:
            self.stop(error)

    def mended(self) -> None:
        """Note that damage was mended: once none is left, this replica may lead again."""
        self.raft.may_lead = not self.damage.found

    @property
    def settled_offset(self) -> Offset:
        """Up to here the log is committed and survives a power loss."""
        settled = min(self.raft.commit, self.log.durable)
        return self.log.offset_at(max(settled, self.log.start.index))

    @property
    def is_alone(self) -> bool:
        """Whether the group has no other voter."""
        return len(self.raft.voters.voters) == 1

    @property
    def has_holes(self) -> bool:
        """Whether offsets may be missing from the log; otherwise a missing one is damage."""
        return self._journal.groups[self.group].has_holes

    def abandon(self) -> None:
        """Stop without calling any callback: the process has ended."""
        self.error = LogError("the process has ended")
        self._taking.stop()

    def retire(self, outcome: Outcome) -> None:
        """Stop because the group is gone, or no longer here; waiting callers are notified."""
        self.error = LogError(f"{self.group} is no longer here")
        self._taking.stop()
        self._watermark.lost(outcome)
        self._copies.lost(outcome)

    def _on_stable(self, index: Index) -> None:
        if self.error is None:
            self.raft.stable_at(index)
            self._carry_out()

    def _carry_out_gathered(self) -> None:
        """Hand gathered batches to the log before the core gets another input."""
        if self._has_gathered and self.error is None:
            self._carry_out()

    def _carry_out(self) -> None:
        """Carry out the core's work, in the order that `Ready` prescribes."""
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
            _call(self.on_installed)
        if truncate is not None:
            self._truncate(truncate)
        if append and self.error is None:  # otherwise the cut before it failed
            self.log.append(append)
        if is_recovered:
            self._journal.add(RecoverySet(group=self.group, is_recovering=False))
            self._events.tell(ReplicaRecovered(partition=self.group))
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
            _call([*self.on_serving, *self.on_announced])
        if commit is not None:
            _call(self.on_commit)
        if unread is not None:
            self.unreadable(unread)

    def _truncate(self, index: Index) -> None:
        end = self.log.end_offset
        self.log.truncate(index)
        offset = self.log.end_offset
        if offset < end:  # otherwise only marks were cut
            told = LogTruncated(partition=self.group, offset=offset, records=end - offset)
            self._events.tell(told)

    def _leadership_changed(self) -> None:
        raft, group = self.raft, self.group
        if self._leadership is not None:
            self._events.tell(LeadershipLost(partition=group, term=raft.term, leader=raft.leader))
        self._leadership = leadership = raft.leadership
        self.in_sync = None
        if leadership is not None:
            if len(raft.voters.members) > 1:
                self._events.tell(LeaderElected(partition=group, term=raft.term))
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
        """Send a message that promises nothing, and so need not wait."""
        if self.error is None:
            self._send(self.group, message)

    def _on_saved(self) -> None:
        self._unsaved_states -= 1
        if self._unsaved_states == 0 and self.error is None:
            held, self._held = self._held, deque(maxlen=HELD_MESSAGES_MAX)
            for message in held:
                self._send(self.group, message)


def _is_sound(request: AppendRequest) -> bool:
    """Return whether every batch is as its leader wrote it: one bad bit must not spread."""
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


def _call(listeners: Iterable[Callable[[], None]]) -> None:
    for listener in listeners:
        listener()


def _always(_: NodeId) -> bool:
    """The default: every node is reachable."""
    return True
