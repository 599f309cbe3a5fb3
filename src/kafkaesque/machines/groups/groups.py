"""All groups of one partition of `__consumer_offsets`, of all three kinds, with their offsets.

A machine (`machines/machine.py`) with one addition: deciding may also change a group's *soft*
state, which is in no record and lost on restart (`machines/groups/group_life.py` lists it). A group
is classic, or its coordinator assigns (`machines/groups/consumer_group.py`), or it is a share group
(`machines/groups/share_group.py`). The first member to join an empty group decides between the
first two kinds, and a group with members may change, too (`machines/groups/migration.py`). A share
group never has offsets, and remains one until it is deleted. Every command gives a `Decision`: its
records are to be written at once, and its answers given when they are committed. A raised error is
an answer, too.
"""

from collections.abc import Collection, Iterator
from typing import TypeAlias

import msgspec

from kafkaesque.coordinator_config import GroupConfig, MigrationPolicy
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.consumer_commands import JOINING, ConsumerHeartbeat
from kafkaesque.machines.groups.group import ClassicGroup
from kafkaesque.machines.groups.group_commands import (
    Commit,
    Deleted,
    DeleteGroup,
    DeleteOffsets,
    Described,
    DescribeGroups,
    Fetched,
    FetchOffsets,
    Heartbeat,
    Identity,
    Join,
    Leave,
    Left,
    Sync,
    TopicPartition,
    TransactionalCommit,
    TransactionEnd,
    TransactionEnded,
)
from kafkaesque.machines.groups.group_errors import (
    GroupChangesKind,
    GroupFull,
    GroupNotEmpty,
    IllegalGeneration,
    InconsistentProtocol,
    InvalidGroup,
    InvalidSessionTimeout,
    RebalanceInProgress,
    UnknownGroup,
    UnknownMember,
)
from kafkaesque.machines.groups.group_offsets import GroupOffsets, newest
from kafkaesque.machines.groups.group_pending import GroupPending, name_bytes
from kafkaesque.machines.groups.group_records import (
    NO_GENERATION,
    CommittedOffset,
    ConsumerGroupSaved,
    ConsumerMemberSaved,
    Generation,
    GroupKey,
    MemberKey,
    OffsetKey,
    PendingKey,
    ShareGroupSaved,
    ShareMemberSaved,
    from_record,
    to_record,
)
from kafkaesque.machines.groups.group_room import GroupRoom
from kafkaesque.machines.groups.group_timers import GroupTimers
from kafkaesque.machines.groups.migration import upgraded
from kafkaesque.machines.groups.mixed_group import MixedGroup
from kafkaesque.machines.groups.share_commands import (
    CreateShareGroup,
    ShareGroupReady,
    ShareHeartbeat,
)
from kafkaesque.machines.groups.share_group import ShareGroup
from kafkaesque.machines.groups.subscription import CONSUMER
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.text_size import utf8_bytes

ReadersGroup: TypeAlias = ClassicGroup | MixedGroup
"""A group in which each partition has one reader, and an offset."""
Group: TypeAlias = ReadersGroup | ShareGroup
AdminCommand: TypeAlias = CreateShareGroup | DescribeGroups | DeleteGroup | DeleteOffsets
GroupCommand: TypeAlias = (
    Join
    | Sync
    | Heartbeat
    | ConsumerHeartbeat
    | ShareHeartbeat
    | Leave
    | Commit
    | TransactionalCommit
    | TransactionEnd
    | FetchOffsets
    | AdminCommand
)


class Groups:
    """The groups that follow from all records so far, and their soft state."""

    def __init__(self, config: GroupConfig) -> None:
        self._config = config
        self._groups: dict[str, Group] = {}
        self._offsets = GroupOffsets()
        self._pending = GroupPending()
        self._timers = GroupTimers()
        self._room = GroupRoom(config.members_bytes_max)

    def configure(self, config: GroupConfig) -> None:
        """Apply new settings to later decisions."""
        self._config = config
        for group in self._groups.values():
            group.configure(config)

    @property
    def _policy(self) -> MigrationPolicy:
        return self._config.consumer_migration_policy

    def group(self, name: str) -> Group | None:
        """Return a group if it exists."""
        return self._groups.get(name)

    @property
    def members_bytes(self) -> int:
        """The approximate memory of all groups' members."""
        return self._room.bytes

    @property
    def offsets_bytes(self) -> int:
        """The approximate memory of all offsets, including those of open transactions."""
        return self._offsets.bytes + self._pending.bytes

    def waiting(self) -> list[ReplyTo]:
        """Return the recipients of all undecided answers."""
        classic = [one for one in self._groups.values() if isinstance(one, ClassicGroup)]
        members = [m for group in classic for m in group.members.values()]
        return [to for m in members for to in (m.join, m.sync) if to is not None]

    # ── commands ─────────────────────────────────────────────────────────────────────────────

    def decide(self, command: GroupCommand, to: ReplyTo, now: Now) -> Decision:
        """Decide on any command; refusals are raised."""
        match command:
            case Heartbeat():
                return self.heartbeat(command, to, now)
            case ConsumerHeartbeat():
                return self.consumer_heartbeat(command, to, now)
            case ShareHeartbeat():
                return self.share_heartbeat(command, to, now)
            case Commit():
                return self.commit(command, to, now)
            case FetchOffsets(group=group, member=member, epoch=epoch):
                return self.fetch(group, to, member, epoch)
            case TransactionalCommit():
                return self.commit_in_transaction(command, to, now)
            case TransactionEnd():
                return self.end_transaction(command, to)
            case Join():
                return self.join(command, to, now)
            case Sync():
                return self.sync(command, to, now)
            case Leave():
                return self.leave(command, to, now)
            case CreateShareGroup() | DescribeGroups() | DeleteGroup() | DeleteOffsets():
                return self._administer(command, to, now)

    # ── members ──────────────────────────────────────────────────────────────────────────────

    def join(self, command: Join, to: ReplyTo, now: Now) -> Decision:
        """Add a member to a group, which is created if needed."""
        if not command.group:
            raise InvalidGroup("the group's name is empty")
        config = self._config
        timeout_ms = command.session_timeout_ms
        if not config.session_timeout_ms_min <= timeout_ms <= config.session_timeout_ms_max:
            raise InvalidSessionTimeout(f"a session timeout of {timeout_ms} ms is not allowed")
        group = self._groups.get(command.group)
        if isinstance(group, ShareGroup):
            raise InconsistentProtocol("this is a share group")
        if group is None:
            if command.member_id:
                raise UnknownMember("the group does not exist, so it has no members")
            group = self._made(command.group)
        out = Decision()
        if isinstance(group, MixedGroup) and not group.members:
            self._become_classic(group, command, to, now, out)
            return out
        if isinstance(group, MixedGroup) and self._policy is MigrationPolicy.DISABLED:
            raise InconsistentProtocol(
                "this group's coordinator assigns: the classic protocol is refused"
            )
        try:
            group.join(command, to, now, out)
        finally:
            self._look_after(group, now)
        return out

    def _become_classic(
        self, group: MixedGroup, command: Join, to: ReplyTo, now: Now, out: Decision
    ) -> None:
        """Turn an empty group into a classic one; the joining member must retry."""
        if command.member_id:
            raise UnknownMember("the group has no members")
        empty = msgspec.structs.replace(
            NO_GENERATION,
            number=group.epoch,
            protocol_type=CONSUMER,
            changed_ms=now.wall_ms,
        )
        out.records.append(to_record(GroupKey(group.name), empty))
        out.reply(to, GroupChangesKind("the group becomes a classic one"))

    def consumer_heartbeat(self, command: ConsumerHeartbeat, to: ReplyTo, now: Now) -> Decision:
        """Take a heartbeat for a group whose coordinator assigns; may create the group."""
        group = self._readers(command.group)
        if isinstance(group, MixedGroup):
            out = Decision()
            group.heartbeat(command, to, now, out)
            self._look_after(group, now)
            return out
        if command.epoch != JOINING:
            raise UnknownMember("the group does not exist, so it has no members")
        if group is not None and group.members:
            return self._upgrade(group, command, to, now)
        self._check_made(command.group)
        first_epoch = 0 if group is None else group.generation.number
        # It is added to the groups when its first record is applied.
        made = MixedGroup(command.group, self._config, self._room, first_epoch)
        out = Decision()
        made.heartbeat(command, to, now, out)
        return out

    def _upgrade(
        self, group: ClassicGroup, command: ConsumerHeartbeat, to: ReplyTo, now: Now
    ) -> Decision:
        """Upgrade a classic group, because a joining member needs the coordinator to assign."""
        if not self._policy.may_upgrade:
            raise UnknownGroup("this is a classic group: its members assign their partitions")
        saved, members = upgraded(group, command.topics)
        made = MixedGroup(command.group, self._config, self._room)
        made.apply(saved)
        for member in members:
            made.apply_member(member.member_id, member.saved())
        out = Decision(records=list(made.records()))
        made.heartbeat(command, to, now, out)
        group.dismiss_all(RebalanceInProgress("the group changes its protocol: join again"), out)
        return out

    def share_heartbeat(self, command: ShareHeartbeat, to: ReplyTo, now: Now) -> Decision:
        """Take a heartbeat for a share group; may create the group."""
        command.check()
        name = command.group
        group = self._groups.get(name)
        out = Decision()
        if isinstance(group, ShareGroup):
            group.heartbeat(command, to, now, out)
            self._look_after(group, now)
            return out
        self._check_no_readers(name)
        if command.epoch != JOINING:
            raise UnknownMember("the group does not exist, so it has no members")
        self._check_made(name)
        # It is added to the groups when its first record is applied.
        ShareGroup(name, self._config, self._room).heartbeat(command, to, now, out)
        return out

    def sync(self, command: Sync, to: ReplyTo, now: Now) -> Decision:
        """Give a member its assignment, at once or later."""
        group = self._joined_group(command.group)
        out = Decision()
        group.sync(command, to, now, out)
        self._look_after(group, now)
        return out

    def heartbeat(self, command: Heartbeat, to: ReplyTo, now: Now) -> Decision:
        """Take a member's heartbeat."""
        group = self._joined_group(command.group)
        out = Decision()
        try:
            if isinstance(group, MixedGroup):
                group.beat(command, to, now, out)
            else:
                group.heartbeat(command, to, now, out)
        except RebalanceInProgress:
            self._look_after(group, now)  # starts its time to join again
            raise
        return out  # other timeouts only move later

    def leave(self, command: Leave, to: ReplyTo, now: Now) -> Decision:
        """Remove members."""
        if not command.group:
            raise InvalidGroup("the group's name is empty")
        out = Decision()
        group = self._groups.get(command.group)
        if group is None or isinstance(group, ShareGroup):
            unknown = UnknownMember("the group has no members that could leave in this way")
            out.reply(to, Left(failures=(unknown,) * len(command.members)))
            return out
        group.leave(command, to, now, out)
        self._look_after(group, now)
        return out

    def tick(self, now: Now) -> Decision:
        """Handle what is due: drop silent members, end rebalances."""
        out = Decision()
        for name in self._timers.due(now.monotonic_ms):
            group = self._groups.get(name)
            if group is not None:
                group.tick(now, out)
                self._look_after(group, now)
        return out

    # ── offsets ──────────────────────────────────────────────────────────────────────────────

    def commit(self, command: Commit, to: ReplyTo, now: Now) -> Decision:
        """Store offsets, from a member of the current generation or for a group without members."""
        group = self._readers(command.group)
        if group is None:
            if command.generation >= 0:
                raise IllegalGeneration("the group does not exist, so it has no generation")
            group = self._made(command.group)
        group.check_commit(command, now)
        known = self._offsets.of(command.group)
        held_bytes = self.offsets_bytes + self._offsets.bytes_to_begin(command.group)
        taken, answer = newest(command, known, held_bytes, self._config, now)
        out = Decision()
        for place, value in taken.items():
            out.records.append(to_record(OffsetKey(command.group, *place), value))
        if not out.records:
            self._drop_if_void(command.group)
        out.reply(to, answer)
        return out

    def commit_in_transaction(
        self, command: TransactionalCommit, to: ReplyTo, now: Now
    ) -> Decision:
        """Store offsets that take effect when the producer's transaction commits."""
        commit, name = command.commit, command.commit.group
        group = self._readers(name)
        if group is not None:
            group.check_transactional_commit(commit, now)
        elif commit.generation >= 0:
            raise IllegalGeneration("the group does not exist, so it has no generation")
        elif not name or utf8_bytes(name) > self._config.group_name_bytes_max:
            raise InvalidGroup("the group's name is empty or too long")
        known = self._pending.of(command.producer_id, name)
        taken, answer = newest(
            commit, known, self.offsets_bytes, self._config, now, name_bytes=name_bytes(name)
        )
        out = Decision()
        for place, value in taken.items():
            out.records.append(to_record(PendingKey(name, command.producer_id, *place), value))
        out.reply(to, answer)
        return out

    def end_transaction(self, command: TransactionEnd, to: ReplyTo) -> Decision:
        """Apply a transaction's offsets, or drop them."""
        records = self._pending.end(command.producer_id, is_commit=command.is_commit)
        out = Decision(records=records)
        out.reply(to, TransactionEnded())
        return out

    def fetch(
        self, name: str, to: ReplyTo, member: Identity | None = None, epoch: int = -1
    ) -> Decision:
        """Return all offsets of a group; an unknown group has none.

        A member of a group whose coordinator assigns may identify itself; then its epoch must be
        current.
        """
        group = self._groups.get(name)
        if isinstance(group, MixedGroup) and member is not None and epoch >= 0:
            group.check_epoch(member, epoch)
        out = Decision()
        unstable = self._pending.places_of(name)
        out.reply(to, Fetched(offsets=dict(self._offsets.of(name)), unstable=unstable))
        return out

    def delete_offsets(
        self, name: str, places: Collection[tuple[str, TopicPartition]], to: ReplyTo
    ) -> Decision:
        """Delete offsets, each given with its topic's name, unless a member reads that topic."""
        group = self._readers(name)
        if group is None:
            raise UnknownGroup(f"there is no group {name!r}")
        if group.members and group.protocol_type != CONSUMER:
            raise GroupNotEmpty("it is unknown which topics the members of this group read")
        out = Decision()
        refused = {place for topic, place in places if group.reads(topic)}
        known = self._offsets.of(name)
        for _, place in places:
            if place in known and place not in refused:
                out.records.append(to_record(OffsetKey(name, *place), None))
        out.reply(to, Deleted(refused=frozenset(refused)))
        return out

    def forget_topic(self, topic_id: bytes) -> Decision:
        """Delete the offsets of a topic that was deleted."""
        records = self._offsets.forget_topic(topic_id)
        return Decision(records=records + self._pending.forget_topic(topic_id))

    def expire(self, now: Now) -> Decision:
        """Expire offsets of groups that have long been empty, and empty groups without offsets.

        Share groups stay until they are deleted: what they have read is not stored here.
        """
        out = Decision()
        if now.ages is None:
            return out
        retention_ms = self._config.offsets_retention_ms
        for name, group in self._groups.items():
            if isinstance(group, ShareGroup) or not group.is_idle:
                continue
            expired = self._offsets.forget_older(name, group.changed_ms, now.ages, retention_ms)
            out.records += expired
            is_left_with_none = len(expired) == len(self._offsets.of(name))
            if is_left_with_none and group.is_saved:
                out.records.append(to_record(GroupKey(name), None))
        return out

    # ── administration ───────────────────────────────────────────────────────────────────────

    def _administer(self, command: AdminCommand, to: ReplyTo, now: Now) -> Decision:
        match command:
            case CreateShareGroup(group=group):
                return self.create_share_group(group, to, now)
            case DescribeGroups(groups=names):
                return self.describe(names, to)
            case DeleteGroup(group=group):
                return self.delete(group, to)
            case DeleteOffsets(group=group, places=places):
                return self.delete_offsets(group, places, to)

    def describe(self, names: Collection[str] | None, to: ReplyTo) -> Decision:
        """Describe these groups, or all of them."""
        wanted = self._groups if names is None else names
        found = [self._groups[name].view() for name in wanted if name in self._groups]
        out = Decision()
        out.reply(to, Described(groups=tuple(found)))
        return out

    def create_share_group(self, name: str, to: ReplyTo, now: Now) -> Decision:
        """Create a share group without members, unless there is one."""
        if not name:
            raise InvalidGroup("the group's name is empty")
        group = self._groups.get(name)
        out = Decision()
        if isinstance(group, ShareGroup):
            if group.members:
                raise GroupNotEmpty("the share group has members")
        else:
            self._check_no_readers(name)
            self._check_made(name)
            saved = ShareGroupSaved(epoch=1, changed_ms=now.wall_ms, topics=())
            out.records.append(to_record(GroupKey(name), saved))
        out.reply(to, ShareGroupReady())
        return out

    def delete(self, name: str, to: ReplyTo) -> Decision:
        """Delete a group without members, and its offsets."""
        group = self._groups.get(name)
        if group is None:
            raise UnknownGroup(f"there is no group {name!r}")
        if group.members:
            raise GroupNotEmpty("a group with members cannot be deleted")
        out = Decision(records=self._offsets.forget_group(name))
        out.records += self._pending.forget_group(name)
        if group.is_saved:
            out.records.append(to_record(GroupKey(name), None))
        out.reply(to, Deleted())
        return out

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, record: MachineRecord) -> None:
        """Take one record from the log; raises NewerFormat for an unknown one."""
        key, value = from_record(record)
        match key, value:
            case GroupKey(name), Generation():
                self._classic(name).apply(value)
                self._timers.set(name, 0)
            case GroupKey(name), ConsumerGroupSaved():
                self._consumer(name).apply(value)
            case MemberKey(name, member_id), ConsumerMemberSaved():
                self._consumer(name).apply_member(member_id, value)
                self._timers.set(name, 0)
            case GroupKey(name), ShareGroupSaved():
                self._share(name).apply(value)
            case MemberKey(name, member_id), ShareMemberSaved():
                self._share(name).apply_member(member_id, value)
                self._timers.set(name, 0)
            case MemberKey(name, member_id), None:
                group = self._groups.get(name)
                if isinstance(group, MixedGroup | ShareGroup):
                    group.apply_member(member_id, None)
            case GroupKey(name), None:
                self._forget(name)
            case OffsetKey(name), CommittedOffset() | None:
                self._offsets.apply(key, value)
                if value is not None and name not in self._groups:
                    self._classic(name)
            case PendingKey(), CommittedOffset() | None:
                self._pending.apply(key, value)
        if isinstance(key, GroupKey | MemberKey):
            self._measure(key.group)
        self._drop_if_void(key.group)

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the durable state."""
        for group in self._groups.values():
            yield from group.records()
        yield from self._offsets.records()
        yield from self._pending.records()

    # ── helpers ──────────────────────────────────────────────────────────────────────────────

    def _readers(self, name: str) -> ReadersGroup | None:
        """Return a group if it exists; raises UnknownGroup for a share group."""
        group = self._groups.get(name)
        if isinstance(group, ShareGroup):
            raise UnknownGroup("this is a share group")
        return group

    def _check_no_readers(self, name: str) -> None:
        """Raise UnknownGroup if a group that is no share group has this name."""
        group = self._groups.get(name)
        if isinstance(group, ClassicGroup | MixedGroup) or self._pending.places_of(name):
            raise UnknownGroup("this is not a share group")

    def _joined_group(self, name: str) -> ReadersGroup:
        if not name:
            raise InvalidGroup("the group's name is empty")
        group = self._groups.get(name)
        if group is None or isinstance(group, ShareGroup):
            raise UnknownMember("the group has no such members")
        return group

    def _made(self, name: str) -> ClassicGroup:
        self._check_made(name)
        return self._classic(name)

    def _check_made(self, name: str) -> None:
        if utf8_bytes(name) > self._config.group_name_bytes_max:
            raise InvalidGroup("the group's name is too long")
        if name not in self._groups and len(self._groups) >= self._config.groups_max:
            raise GroupFull(f"a coordinator has at most {self._config.groups_max} groups")

    def _classic(self, name: str) -> ClassicGroup:
        group = self._groups.get(name)
        if not isinstance(group, ClassicGroup):
            group = self._groups[name] = ClassicGroup(name, self._config, self._room)
        return group

    def _consumer(self, name: str) -> MixedGroup:
        group = self._groups.get(name)
        if not isinstance(group, MixedGroup):
            group = self._groups[name] = MixedGroup(name, self._config, self._room)
        return group

    def _share(self, name: str) -> ShareGroup:
        group = self._groups.get(name)
        if not isinstance(group, ShareGroup):
            group = self._groups[name] = ShareGroup(name, self._config, self._room)
        return group

    def _measure(self, name: str) -> None:
        group = self._groups.get(name)
        self._room.note(name, 0 if group is None else group.bytes)

    def _forget(self, name: str) -> None:
        match self._groups.get(name):
            case ClassicGroup() as group:
                group.apply(NO_GENERATION)
            case MixedGroup() | ShareGroup() as group:
                group.apply(None)

    def _look_after(self, group: Group, now: Now) -> None:
        """Schedule the group's next tick, or drop a group that holds nothing."""
        self._room.note(group.name, group.bytes)
        due_ms = group.due_ms()
        if due_ms is None:
            self._drop_if_void(group.name)
        else:
            self._timers.set(group.name, max(due_ms, now.monotonic_ms + 1))

    def _drop_if_void(self, name: str) -> None:
        group = self._groups.get(name)
        if group is not None and group.is_void and not self._offsets.of(name):
            del self._groups[name]
            self._timers.drop(name)
            self._room.note(name, 0)
