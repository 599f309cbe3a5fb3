"""A consumer group whose coordinator assigns (KIP-848): members come, go, and are told their part.

All but the time-outs is durable: the group has a record, every member has one. The group's *epoch*
rises whenever who is to read what is computed anew: a member comes, goes or wants something else,
or a topic has changed. Every member has the epoch that it has reached, and nothing that it asks in
another one is done (`machines/consumer_member.py` says how it gets from one to the next). Deciding
works on a draft, which becomes records; `apply` and `apply_member` change the group and nothing
else does.

    Empty        has no members
    Reconciling  somebody does not read yet what he is to read
    Stable       everybody does
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import (
    FencedInstance,
    GroupError,
    GroupFull,
    IllegalGeneration,
    UnknownMember,
)
from kafkaesque.machines.assignors import DEFAULT, check_assignor
from kafkaesque.machines.consumer_commands import (
    AWAY,
    JOINING,
    ConsumerHeartbeat,
    ConsumerTold,
    ConsumerView,
    TopicsKnown,
)
from kafkaesque.machines.consumer_draft import Draft, topics_bytes
from kafkaesque.machines.consumer_errors import (
    FencedMember,
    StaleMember,
    UnreleasedInstance,
)
from kafkaesque.machines.consumer_member import NOTHING, ConsumerMember, Places, reconciled
from kafkaesque.machines.consumer_topics import TopicFinder
from kafkaesque.machines.group_commands import (
    Commit,
    Decision,
    GroupView,
    Identity,
    Leave,
    Left,
    Now,
    ReplyTo,
    TopicPartition,
)
from kafkaesque.machines.group_records import (
    ConsumerGroupSaved,
    ConsumerMemberSaved,
    GroupKey,
    MemberKey,
    to_record,
)
from kafkaesque.machines.group_room import GroupRoom
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.migration import downgraded
from kafkaesque.machines.subscription import CONSUMER


class ConsumerGroupState(StrEnum):
    """The states by the names that Kafka's tools know."""

    EMPTY = "Empty"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Step(NamedTuple):
    """A member that is to come nearer to its target."""

    before: ConsumerMember
    member: ConsumerMember
    """As it is by what it says now."""
    is_new: bool
    owned: Places | None
    topics: TopicsKnown


class ConsumerGroup:
    """One group. What it decides on goes into a `Decision`; what it refuses is raised."""

    protocol_type = CONSUMER

    def __init__(
        self, name: str, config: GroupConfig, room: GroupRoom, first_epoch: int = 0
    ) -> None:
        self.name = name
        self.bytes = 0
        """About what it takes; follows from the group's record and the members."""
        self.members: dict[str, ConsumerMember] = {}
        self.saved: ConsumerGroupSaved | None = None
        self._first_epoch = first_epoch
        self._config = config
        self._room = room
        self._owners: dict[TopicPartition, str] = {}
        """Who holds a partition, reading it or about to let it go; follows from the members."""
        self._instances: dict[str, str] = {}
        """The members with instance ids, by these; follows from the members."""
        self._finder = TopicFinder()
        self._sessions: dict[str, int] = {}
        """Until when members must be heard from; who is missing is timed from the next tick on."""
        self._revocations: dict[str, int] = {}
        """Until when members must have let go of what they are to let go of, or joined again."""

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    def configure(self, config: GroupConfig) -> None:
        """Let other settings hold for what is decided from now on."""
        self._config = config

    @property
    def epoch(self) -> int:
        """The epoch of the newest target."""
        return self._first_epoch if self.saved is None else self.saved.epoch

    @property
    def state(self) -> ConsumerGroupState:
        """Where the group is in its life."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if all(one.is_settled(self.epoch) for one in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_void(self) -> bool:
        """Whether nothing is known of it at all."""
        return self.saved is None and not self.members

    @property
    def is_idle(self) -> bool:
        """Whether nobody is a member or about to be one."""
        return not self.members

    @property
    def is_saved(self) -> bool:
        """Whether there is a record of it."""
        return self.saved is not None

    @property
    def changed_ms(self) -> int:
        """When it was last rebalanced, by the wall clock."""
        return 0 if self.saved is None else self.saved.changed_ms

    def view(self) -> GroupView:
        """Return the group as an administrator sees it."""
        assignor = DEFAULT if self.saved is None else self.saved.assignor
        return GroupView(
            group=self.name,
            state=self.state,
            protocol_type=CONSUMER,
            protocol=assignor,
            consumers=ConsumerView(
                epoch=self.epoch,
                assignor=assignor,
                members=tuple(one.view() for one in self.members.values()),
            ),
        )

    def reads(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic."""
        return any(self._finder.wants(one, topic) for one in self.members.values())

    # ── members ──────────────────────────────────────────────────────────────────────────────

    def heartbeat(self, command: ConsumerHeartbeat, to: ReplyTo, now: Now, out: Decision) -> None:
        """Hear from a member, let it in, or let it go."""
        draft = Draft(self.name, self.members, self.saved, self._first_epoch)
        if command.epoch < JOINING:
            self._let_go(command, draft, now, out)
            gone = ConsumerTold(member_id=command.member_id, epoch=command.epoch)
            out.reply(to, gone)
            return
        check_assignor(command.assignor or "")
        self._finder.check(command.pattern or "")
        if command.epoch == JOINING:
            known = self._place_of(command)
            before = entering(command.member_id, known)
            if known is not None:
                draft.remove(known.member_id)
        else:
            known = before = self._checked(command)
        step = Step(before, before.told(command), known is None, command.owned, command.topics)
        after = self._advance(step, draft, now)
        out.records += draft.records()
        out.reply(to, self._answer(command, before, after, draft))

    def _advance(self, step: Step, draft: Draft, now: Now) -> ConsumerMember:
        """Bring a member nearer to its target, which is computed anew if need be."""
        before, member, is_new, owned, topics = step
        self._check_room(before, member, is_new=is_new)
        draft.put(member)
        wants_more = is_new or member.wishes != before.wishes
        if wants_more or self._is_outdated(topics):
            self._retarget(draft, topics, now, must_fit=wants_more)
        self._finder.seen(topics)
        member = draft.members[member.member_id]
        after = reconciled(
            member, owned, draft.epoch, lambda place: self._is_free(place, member, draft.members)
        )
        draft.put(after)
        self._time(after, now)
        return after

    def _retarget(self, draft: Draft, topics: TopicsKnown, now: Now, *, must_fit: bool) -> None:
        """Compute the target anew; raises GroupFull if it must fit and has no room.

        Where only the topics have grown the members go on with what they have: to refuse them
        would stop what works.
        """
        before = draft.copy()
        draft.retarget(self._finder, topics.saved, topics.topics, now.wall_ms)
        if must_fit:
            self._room.check(self.name, draft.bytes)
        elif not self._room.has_room(self.name, draft.bytes):
            draft.become(before)

    def _answer(
        self,
        command: ConsumerHeartbeat,
        before: ConsumerMember,
        after: ConsumerMember,
        draft: Draft,
    ) -> ConsumerTold:
        must_tell = (
            command.is_full
            or after.assigned != before.assigned
            or (command.owned is not None and command.owned != after.assigned)
        )
        config = self._config
        is_settled = all(one.is_settled(draft.epoch) for one in draft.members.values())
        return ConsumerTold(
            member_id=after.member_id,
            epoch=after.epoch,
            heartbeat_ms=config.consumer_heartbeat_ms
            if is_settled
            else config.consumer_hasty_heartbeat_ms,
            assigned=after.assigned if must_tell else None,
        )

    def _place_of(self, command: ConsumerHeartbeat) -> ConsumerMember | None:
        """Return the member whose place one takes who joins: its own, or its instance's."""
        if command.instance_id is not None:
            holder = self.members.get(self._instances.get(command.instance_id, ""))
            if holder is not None and holder.member_id != command.member_id:
                # One that speaks the classic protocol never says that it will be back.
                if holder.epoch != AWAY and holder.classic is None:
                    raise UnreleasedInstance("another member with this instance id has not left")
                return holder
        return self.members.get(command.member_id)

    def _check_room(self, before: ConsumerMember, member: ConsumerMember, *, is_new: bool) -> None:
        config = self._config
        size = member.size
        if size > config.member_bytes_max:
            raise GroupFull(f"a member may say {config.member_bytes_max} bytes of itself")
        if is_new and len(self.members) >= config.members_max:
            raise GroupFull(f"a group has at most {config.members_max} members")
        if is_new or member.bytes > before.bytes:
            others = sum(m.size for m in self.members.values() if m.member_id != before.member_id)
            if others + size > config.group_bytes_max:
                raise GroupFull(f"all members together may say {config.group_bytes_max} bytes")
            self._room.check(self.name, self.bytes + member.bytes - (0 if is_new else before.bytes))

    def _checked(self, command: ConsumerHeartbeat) -> ConsumerMember:
        member = self._found(Identity(member_id=command.member_id, instance_id=command.instance_id))
        if member.classic is not None:
            raise UnknownMember("this member speaks the classic protocol")
        if command.epoch == member.epoch:
            return member
        # It may not have got the answer that told it of its new epoch: then it reads nothing that
        # it may not read, and says so.
        is_lost = command.epoch == member.previous_epoch and member.epoch > JOINING
        if is_lost and command.owned is not None and command.owned <= member.assigned:
            return member
        raise FencedMember(f"the member is in epoch {member.epoch}, not in {command.epoch}")

    def _found(self, identity: Identity) -> ConsumerMember:
        if identity.instance_id is not None:
            holder = self._instances.get(identity.instance_id)
            if holder is not None and holder != identity.member_id:
                raise FencedInstance("another member has taken this instance id")
            if holder is None:
                raise UnknownMember("the group has no member with this instance id")
        member = self.members.get(identity.member_id)
        if member is None:
            raise UnknownMember("no such member in the group")
        return member

    def _is_free(
        self, place: TopicPartition, member: ConsumerMember, members: Mapping[str, ConsumerMember]
    ) -> bool:
        owner = members.get(self._owners.get(place, ""))
        return owner is None or owner.member_id == member.member_id or not owner.holds(place)

    def _is_outdated(self, topics: TopicsKnown) -> bool:
        if self.saved is None:
            return True
        return not self._finder.is_seen(topics) and self._finder.is_outdated(
            self.saved, self.members.values(), topics
        )

    # ── leaving ──────────────────────────────────────────────────────────────────────────────

    def _let_go(self, command: ConsumerHeartbeat, draft: Draft, now: Now, out: Decision) -> None:
        identity = Identity(member_id=command.member_id, instance_id=command.instance_id)
        member = self._found(identity)
        if command.epoch == AWAY and member.instance_id is not None:
            # Its place, and what it read, is kept for it until its session ends.
            draft.put(replace(member, epoch=AWAY, revoking=NOTHING))
            self._sessions[member.member_id] = self._session_end(member, now)
            self._revocations.pop(member.member_id, None)
            out.records += draft.records()
        else:
            self._remove([member.member_id], draft, now, out)

    def leave(self, command: Leave, to: ReplyTo, now: Now, out: Decision) -> None:
        """Let members go because an administrator says so."""
        failures: list[GroupError | None] = []
        gone: list[str] = []
        for identity in command.members[: self._config.members_max]:
            named = identity
            if not identity.member_id and identity.instance_id is not None:
                holder = self._instances.get(identity.instance_id, "")
                named = Identity(member_id=holder, instance_id=identity.instance_id)
            try:
                gone.append(self._found(named).member_id)
                failures.append(None)
            except GroupError as error:
                failures.append(error)
        if gone:
            draft = Draft(self.name, self.members, self.saved, self._first_epoch)
            self._remove(gone, draft, now, out)
        out.reply(to, Left(failures=tuple(failures)))

    def _remove(self, gone: list[str], draft: Draft, now: Now, out: Decision) -> None:
        for member_id in gone:
            draft.remove(member_id)
        if self._is_classic_now(draft.members):
            assert self.saved is not None, "a group with members has a record"
            out.records += downgraded(
                self.name, self.saved, self.members, draft.members, now.wall_ms
            )
            return
        # What is known of topics is as old as the last target; whoever is heard from next brings
        # newer news.
        known = {} if self.saved is None else {one.name: one for one in self.saved.topics}
        draft.retarget(self._finder, known.get, known, now.wall_ms)
        out.records += draft.records()

    def _is_classic_now(self, members: Mapping[str, ConsumerMember]) -> bool:
        """Whether nobody is left who needs the coordinator to assign."""
        has_some = bool(members) and self._config.consumer_migration_policy.may_downgrade
        return has_some and all(one.classic is not None for one in members.values())

    # ── offsets ──────────────────────────────────────────────────────────────────────────────

    def check_commit(self, command: Commit, now: Now) -> None:
        """Raise unless this one may commit offsets for the group now."""
        if command.generation < 0 and not self.members:
            return
        self.check_epoch(command.member, command.generation)

    def check_transactional_commit(self, command: Commit, now: Now) -> None:
        """Raise if this one may not commit offsets in a transaction.

        Producers know of generations only, so that a wrong epoch is told to them as one.
        """
        member, epoch = command.member, command.generation
        if not member.member_id and member.instance_id is None and epoch < 0:
            return
        try:
            self.check_commit(command, now)
        except StaleMember as error:
            raise IllegalGeneration(str(error)) from error

    def check_epoch(self, identity: Identity, epoch: int) -> None:
        """Raise unless this is a member, and in this epoch."""
        member = self._found(identity)
        if epoch != member.epoch:
            message = f"the member is in epoch {member.epoch}, not in {epoch}"
            raise StaleMember(message) if member.classic is None else IllegalGeneration(message)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def due_ms(self) -> int | None:
        """Return when `tick` may have something to do; 0 if some time-out has yet to start."""
        if len(self._sessions) < len(self.members) or self._is_classic_now(self.members):
            return 0
        return min((*self._sessions.values(), *self._revocations.values()), default=None)

    def tick(self, now: Now, out: Decision) -> None:
        """Drop those who were not heard from, or did not let go, in time."""
        for member in self.members.values():
            if member.member_id not in self._sessions:
                self._time(member, now)
        ends = (*self._sessions.items(), *self._revocations.items())
        late = {name for name, end_ms in ends if now.monotonic_ms >= end_ms}
        gone = [name for name in self.members if name in late]
        if gone or self._is_classic_now(self.members):
            draft = Draft(self.name, self.members, self.saved, self._first_epoch)
            self._remove(gone, draft, now, out)

    def _session_end(self, member: ConsumerMember, now: Now) -> int:
        classic = member.classic
        timeout_ms = self._config.consumer_session_timeout_ms
        return now.monotonic_ms + (timeout_ms if classic is None else classic.session_timeout_ms)

    def _time(self, member: ConsumerMember, now: Now) -> None:
        self._sessions[member.member_id] = self._session_end(member, now)
        if not member.revoking:
            self._revocations.pop(member.member_id, None)
        elif member.member_id not in self._revocations:
            self._revocations[member.member_id] = now.monotonic_ms + member.rebalance_timeout_ms

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply(self, saved: ConsumerGroupSaved | None) -> None:
        """Become what the record of the group says."""
        self.bytes += topics_bytes(saved) - topics_bytes(self.saved)
        self.saved = saved

    def apply_member(self, member_id: str, saved: ConsumerMemberSaved | None) -> None:
        """Take in what the record of a member says."""
        old = self.members.get(member_id)
        if old is not None:
            self.bytes -= old.bytes
            for place in (*old.assigned, *old.revoking):
                if self._owners.get(place) == member_id:
                    del self._owners[place]
            if old.instance_id is not None and self._instances.get(old.instance_id) == member_id:
                del self._instances[old.instance_id]
        if saved is None:
            self.members.pop(member_id, None)
            self._sessions.pop(member_id, None)
            self._revocations.pop(member_id, None)
            return
        member = self.members[member_id] = ConsumerMember.from_saved(member_id, saved)
        self.bytes += member.bytes
        for place in (*member.assigned, *member.revoking):
            self._owners[place] = member_id
        if member.instance_id is not None:
            self._instances[member.instance_id] = member_id

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild what is durable."""
        if self.saved is not None:
            yield to_record(GroupKey(self.name), self.saved)
        for member in self.members.values():
            yield to_record(MemberKey(self.name, member.member_id), member.saved())


def entering(member_id: str, known: ConsumerMember | None) -> ConsumerMember:
    """Return one who joins, as a newcomer or in the place of one who is known."""
    if known is None:
        return ConsumerMember(member_id=member_id)
    # It says itself that it reads nothing, so that what it held is free; as its target stays, it
    # is given that again by this same decision, before anybody else could be.
    return replace(
        known,
        member_id=member_id,
        epoch=JOINING,
        previous_epoch=-1,
        assigned=NOTHING,
        revoking=NOTHING,
    )
