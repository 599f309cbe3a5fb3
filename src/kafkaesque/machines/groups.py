"""All consumer groups of one partition of `__consumer_offsets`, with their offsets.

A machine (`machines/machine.py`) with one addition: deciding may also change what is *soft* in a
group, which no record tells of and a restart forgets (`machines/group_life.py` says what that is).
Every command gives a `Decision`. Its records are to be written at once and its answers given when
they are committed; an error that is raised is an answer too.
"""

import heapq
from collections.abc import Collection, Iterator

from kafkaesque.config import GroupConfig
from kafkaesque.errors import (
    GroupFull,
    GroupNotEmpty,
    IllegalGeneration,
    InvalidGroup,
    InvalidSessionTimeout,
    UnknownGroup,
    UnknownMember,
)
from kafkaesque.machines.group import ConsumerGroup
from kafkaesque.machines.group_commands import (
    Commit,
    Committed,
    Decision,
    Deleted,
    Described,
    Fetched,
    Heartbeat,
    Join,
    Leave,
    Left,
    Now,
    ReplyTo,
    Sync,
    TopicPartition,
    TransactionalCommit,
    TransactionEnd,
    TransactionEnded,
)
from kafkaesque.machines.group_offsets import GroupOffsets
from kafkaesque.machines.group_pending import GroupPending
from kafkaesque.machines.group_records import (
    NO_GENERATION,
    CommittedOffset,
    Generation,
    GroupKey,
    OffsetKey,
    PendingKey,
    from_record,
    to_record,
)
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.subscription import CONSUMER


class Groups:
    """The groups that follow from all records so far, and what is soft in them."""

    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self._groups: dict[str, ConsumerGroup] = {}
        self._offsets = GroupOffsets()
        self._pending = GroupPending()
        self._timers: list[tuple[int, str]] = []
        """A heap of when to look at which group; looking too early, or in vain, does no harm."""
        self._scheduled: dict[str, int] = {}

    def group(self, name: str) -> ConsumerGroup | None:
        """Return a group, if it is there."""
        return self._groups.get(name)

    def waiting(self) -> list[ReplyTo]:
        """Return all who wait for an answer that has not been decided on."""
        members = [m for group in self._groups.values() for m in group.members.values()]
        return [to for m in members for to in (m.join, m.sync) if to is not None]

    # ── members ──────────────────────────────────────────────────────────────────────────────

    def join(self, command: Join, to: ReplyTo, now: Now) -> Decision:
        """Let someone into a group, which may come to be by it."""
        if not command.group:
            raise InvalidGroup("a group that can be joined has a name")
        config = self._config
        timeout_ms = command.session_timeout_ms
        if not config.session_timeout_ms_min <= timeout_ms <= config.session_timeout_ms_max:
            raise InvalidSessionTimeout(f"a session time-out of {timeout_ms} ms is not allowed")
        group = self._groups.get(command.group)
        if group is None:
            if command.member_id:
                raise UnknownMember("there is no such group, so it has no such member")
            group = self._made(command.group)
        out = Decision()
        try:
            group.join(command, to, now, out)
        finally:
            self._look_after(group, now)
        return out

    def sync(self, command: Sync, to: ReplyTo, now: Now) -> Decision:
        """Give a member its assignment, at once or later."""
        group = self._joined_group(command.group)
        out = Decision()
        group.sync(command, to, now, out)
        self._look_after(group, now)
        return out

    def heartbeat(self, command: Heartbeat, to: ReplyTo, now: Now) -> Decision:
        """Hear from a member."""
        out = Decision()
        self._joined_group(command.group).heartbeat(command, to, now, out)
        return out  # time-outs only move away by this: no need to look any earlier

    def leave(self, command: Leave, to: ReplyTo, now: Now) -> Decision:
        """Let members go."""
        if not command.group:
            raise InvalidGroup("a group that can be left has a name")
        out = Decision()
        group = self._groups.get(command.group)
        if group is None:
            unknown = UnknownMember("there is no such group, so it has no such member")
            out.reply(to, Left(failures=(unknown,) * len(command.members)))
            return out
        group.leave(command, to, now, out)
        self._look_after(group, now)
        return out

    def tick(self, now: Now) -> Decision:
        """Let time pass: drop those who were not heard from, end rebalances."""
        out = Decision()
        due: set[str] = set()
        while self._timers and self._timers[0][0] <= now.monotonic_ms:
            due.add(heapq.heappop(self._timers)[1])
        for name in sorted(due):
            self._scheduled.pop(name, None)
            group = self._groups.get(name)
            if group is not None:
                group.tick(now, out)
                self._look_after(group, now)
        return out

    # ── offsets ──────────────────────────────────────────────────────────────────────────────

    def commit(self, command: Commit, to: ReplyTo, now: Now) -> Decision:
        """Remember offsets, from a member of the present generation or for a group without any."""
        group = self._groups.get(command.group)
        if group is None:
            if command.generation >= 0:
                raise IllegalGeneration("there is no such group, so it has no such generation")
            group = self._made(command.group)
        group.check_commit(command, now)
        newest, refused = self._newest(command, now)
        out = Decision()
        for place, value in newest.items():
            out.records.append(to_record(OffsetKey(command.group, *place), value))
        if not out.records:
            self._drop_if_void(command.group)
        out.reply(to, Committed(refused=refused))
        return out

    def commit_in_transaction(
        self, command: TransactionalCommit, to: ReplyTo, now: Now
    ) -> Decision:
        """Remember offsets that hold when the producer's transaction is committed."""
        commit, name = command.commit, command.commit.group
        group = self._groups.get(name)
        if group is not None:
            group.check_transactional_commit(commit, now)
        elif commit.generation >= 0:
            raise IllegalGeneration("there is no such group, so it has no such generation")
        elif not name or len(name.encode()) > self._config.group_name_bytes_max:
            raise InvalidGroup("a group cannot have this name")
        newest, refused = self._newest(commit, now)
        out = Decision()
        for place, value in newest.items():
            out.records.append(to_record(PendingKey(name, command.producer_id, *place), value))
        out.reply(to, Committed(refused=refused))
        return out

    def end_transaction(self, command: TransactionEnd, to: ReplyTo) -> Decision:
        """Let what a transaction wanted hold, or drop it."""
        records = self._pending.end(command.producer_id, is_commit=command.is_commit)
        out = Decision(records=records)
        out.reply(to, TransactionEnded())
        return out

    def _newest(
        self, command: Commit, now: Now
    ) -> tuple[dict[TopicPartition, CommittedOffset], frozenset[TopicPartition]]:
        """Return what to keep of a commit, and what is refused of it."""
        refused: set[TopicPartition] = set()
        newest: dict[TopicPartition, CommittedOffset] = {}
        for place, offset, term, metadata in command.offsets:
            if len(metadata.encode()) > self._config.offset_metadata_bytes_max:
                refused.add(place)
                continue
            newest[place] = CommittedOffset(
                offset=offset, term=term, metadata=metadata, committed_ms=now.wall_ms
            )
        return newest, frozenset(refused)

    def fetch(self, group: str, to: ReplyTo) -> Decision:
        """Give all offsets of a group; a group that is not there has none."""
        out = Decision()
        unstable = self._pending.places_of(group)
        out.reply(to, Fetched(offsets=dict(self._offsets.of(group)), unstable=unstable))
        return out

    def delete_offsets(
        self, name: str, places: Collection[tuple[str, TopicPartition]], to: ReplyTo
    ) -> Decision:
        """Forget offsets, each given with its topic's name, unless a member reads that topic."""
        group = self._existing(name)
        if group.members and group.protocol_type != CONSUMER:
            raise GroupNotEmpty("nobody can tell which topics the members of this group read")
        out = Decision()
        refused = {place for topic, place in places if group.reads(topic)}
        known = self._offsets.of(name)
        for _, place in places:
            if place in known and place not in refused:
                out.records.append(to_record(OffsetKey(name, *place), None))
        out.reply(to, Deleted(refused=frozenset(refused)))
        return out

    def forget_topic(self, topic_id: bytes) -> Decision:
        """Forget the offsets of a topic that was deleted."""
        records = self._offsets.forget_topic(topic_id)
        return Decision(records=records + self._pending.forget_topic(topic_id))

    def expire_offsets(self, now: Now) -> Decision:
        """Forget offsets of groups that are long empty, and empty groups that have none left."""
        out = Decision()
        before_ms = now.wall_ms - self._config.offsets_retention_ms
        for name, group in self._groups.items():
            if group.members or group.pending:
                continue
            since_ms = group.generation.changed_ms
            expired = self._offsets.forget_older(name, since_ms, before_ms)
            out.records += expired
            is_left_with_none = len(expired) == len(self._offsets.of(name))
            if is_left_with_none and group.generation is not NO_GENERATION:
                out.records.append(to_record(GroupKey(name), None))
        return out

    # ── administration ───────────────────────────────────────────────────────────────────────

    def describe(self, names: Collection[str] | None, to: ReplyTo) -> Decision:
        """Show these groups, or all of them."""
        wanted = self._groups if names is None else names
        found = [self._groups[name].view() for name in wanted if name in self._groups]
        out = Decision()
        out.reply(to, Described(groups=tuple(found)))
        return out

    def delete(self, name: str, to: ReplyTo) -> Decision:
        """Delete a group that has no members, with its offsets."""
        group = self._existing(name)
        if group.members:
            raise GroupNotEmpty("a group with members cannot be deleted")
        out = Decision(records=self._offsets.forget_group(name))
        out.records += self._pending.forget_group(name)
        if group.generation is not NO_GENERATION:
            out.records.append(to_record(GroupKey(name), None))
        out.reply(to, Deleted())
        return out

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for one that we do not know."""
        key, value = from_record(record)
        match key, value:
            case GroupKey(name), Generation():
                self._found(name).apply(value)
                self._schedule(name, 0)
            case GroupKey(name), None:
                if name in self._groups:
                    self._groups[name].apply(NO_GENERATION)
            case OffsetKey(name), CommittedOffset() | None:
                self._offsets.apply(key, value)
                if value is not None:
                    self._found(name)
            case PendingKey(), CommittedOffset() | None:
                self._pending.apply(key, value)
        self._drop_if_void(key.group)

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild what is durable."""
        for name, group in self._groups.items():
            if group.generation is not NO_GENERATION:
                yield to_record(GroupKey(name), group.generation)
        yield from self._offsets.records()
        yield from self._pending.records()

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _existing(self, name: str) -> ConsumerGroup:
        group = self._groups.get(name)
        if group is None:
            raise UnknownGroup(f"there is no group {name!r}")
        return group

    def _joined_group(self, name: str) -> ConsumerGroup:
        if not name:
            raise InvalidGroup("a group with members has a name")
        group = self._groups.get(name)
        if group is None:
            raise UnknownMember("there is no such group, so it has no such member")
        return group

    def _made(self, name: str) -> ConsumerGroup:
        if len(name.encode()) > self._config.group_name_bytes_max:
            raise InvalidGroup("the name of the group is too long")
        if len(self._groups) >= self._config.groups_max:
            raise GroupFull(f"a coordinator has at most {self._config.groups_max} groups")
        return self._found(name)

    def _found(self, name: str) -> ConsumerGroup:
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = ConsumerGroup(name, self._config)
        return group

    def _look_after(self, group: ConsumerGroup, now: Now) -> None:
        """Have the group looked at when it is due, or let go of one that came to nothing."""
        due_ms = group.due_ms()
        if due_ms is None:
            self._drop_if_void(group.name)
        else:
            self._schedule(group.name, max(due_ms, now.monotonic_ms + 1))

    def _schedule(self, name: str, due_ms: int) -> None:
        if due_ms >= self._scheduled.get(name, due_ms + 1):
            return
        self._scheduled[name] = due_ms
        heapq.heappush(self._timers, (due_ms, name))
        if len(self._timers) > 4 * len(self._groups) + 64:
            # Groups that come and go leave entries behind: no more of them than of groups.
            self._timers = [(due, name) for name, due in self._scheduled.items()]
            heapq.heapify(self._timers)

    def _drop_if_void(self, name: str) -> None:
        group = self._groups.get(name)
        if group is not None and group.is_void and not self._offsets.of(name):
            del self._groups[name]
            self._scheduled.pop(name, None)
