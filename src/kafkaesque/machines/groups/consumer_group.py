"""A consumer group whose coordinator assigns (KIP-848): members join, leave, and get their share.

All but the timeouts is durable: the group has a record, and so has every member. The group's
*epoch* rises whenever the assignment is recomputed: a member joins, leaves or wants something else,
or a topic changes. Every member has the epoch it has reached, and its requests in any other are
refused (`machines/groups/consumer_member.py` says how it gets from one to the next). Deciding works
on a draft, which becomes records; only `apply` and `apply_member` change the group.

    Empty        has no members
    Reconciling  some member does not yet read all of its target
    Stable       every member does
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import GroupError
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.assigned_group import AssignedGroup
from kafkaesque.machines.groups.assignors import DEFAULT, check_assignor
from kafkaesque.machines.groups.consumer_commands import (
    AWAY,
    JOINING,
    ConsumerHeartbeat,
    ConsumerTold,
    ConsumerView,
    TopicsKnown,
)
from kafkaesque.machines.groups.consumer_draft import Draft
from kafkaesque.machines.groups.consumer_member import NOTHING, ConsumerMember, Places, reconciled
from kafkaesque.machines.groups.consumer_topics import TopicFinder
from kafkaesque.machines.groups.group_commands import (
    Commit,
    GroupView,
    Identity,
    Leave,
    Left,
    TopicPartition,
)
from kafkaesque.machines.groups.group_errors import (
    FencedInstance,
    FencedMember,
    IllegalGeneration,
    StaleMember,
    UnknownMember,
    UnreleasedInstance,
)
from kafkaesque.machines.groups.group_records import (
    ConsumerGroupSaved,
    ConsumerMemberSaved,
)
from kafkaesque.machines.groups.group_room import GroupRoom
from kafkaesque.machines.groups.migration import downgraded
from kafkaesque.machines.groups.subscription import CONSUMER


class ConsumerGroupState(StrEnum):
    """The states, named as Kafka's tools know them."""

    EMPTY = "Empty"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Step(NamedTuple):
    """A member about to move closer to its target."""

    before: ConsumerMember
    member: ConsumerMember
    """The member as it now describes itself."""
    is_new: bool
    owned: Places | None
    topics: TopicsKnown


class ConsumerGroup(AssignedGroup[ConsumerMember, ConsumerGroupSaved]):
    """One group. Its decisions go into a `Decision`; refusals are raised."""

    protocol_type = CONSUMER

    def __init__(
        self, name: str, config: GroupConfig, room: GroupRoom, first_epoch: int = 0
    ) -> None:
        super().__init__(name, config, room)
        self._first_epoch = first_epoch
        self._owners: dict[TopicPartition, str] = {}
        """The member that reads or is about to release a partition; follows from the members."""
        self._instances: dict[str, str] = {}
        """Members by their instance id; follows from the members."""
        self._finder = TopicFinder()
        self._sessions: dict[str, int] = {}
        """When members expire without a heartbeat; the next tick adds the missing ones."""
        self._revocations: dict[str, int] = {}
        """When members must have released their partitions, or joined again."""

    # ── views ────────────────────────────────────────────────────────────────────────────────

    @property
    def epoch(self) -> int:
        """The epoch of the newest target."""
        return self._first_epoch if self.saved is None else self.saved.epoch

    @property
    def state(self) -> ConsumerGroupState:
        """The state of the group."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if all(one.is_settled(self.epoch) for one in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

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
        """Take a member's heartbeat, which may also join or leave."""
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
        """Move a member closer to its target, which is recomputed if needed."""
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
        """Recompute the target; raises GroupFull if it must fit and has no room.

        If only the topics have grown, members keep what they have: refusing them would stop what
        works.
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
        """Return the member that a joining client replaces: itself, or its instance's."""
        if command.instance_id is not None:
            holder = self.members.get(self._instances.get(command.instance_id, ""))
            if holder is not None and holder.member_id != command.member_id:
                # A member that speaks the classic protocol never announces its return.
                if holder.epoch != AWAY and holder.classic is None:
                    raise UnreleasedInstance("another member with this instance id has not left")
                return holder
        return self.members.get(command.member_id)

    def _checked(self, command: ConsumerHeartbeat) -> ConsumerMember:
        member = self._found(Identity(member_id=command.member_id, instance_id=command.instance_id))
        if member.classic is not None:
            raise UnknownMember("this member speaks the classic protocol")
        if command.epoch == member.epoch:
            return member
        # The answer with its new epoch may have been lost: then it reads nothing that it may not
        # read, and says so.
        is_lost = command.epoch == member.previous_epoch and member.epoch > JOINING
        if is_lost and command.owned is not None and command.owned <= member.assigned:
            return member
        raise FencedMember(f"the member is in epoch {member.epoch}, not {command.epoch}")

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
            # Its place, with what it read, is kept until its session ends.
            draft.put(replace(member, epoch=AWAY, revoking=NOTHING))
            self._sessions[member.member_id] = self._session_end(member, now)
            self._revocations.pop(member.member_id, None)
            out.records += draft.records()
        else:
            self._remove([member.member_id], draft, now, out)

    def leave(self, command: Leave, to: ReplyTo, now: Now, out: Decision) -> None:
        """Remove members at an administrator's request."""
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
        # The topics known here are as old as the last target; the next heartbeat brings newer ones.
        known = {} if self.saved is None else {one.name: one for one in self.saved.topics}
        draft.retarget(self._finder, known.get, known, now.wall_ms)
        out.records += draft.records()

    def _is_classic_now(self, members: Mapping[str, ConsumerMember]) -> bool:
        """Whether no member is left that needs the coordinator to assign."""
        has_some = bool(members) and self._config.consumer_migration_policy.may_downgrade
        return has_some and all(one.classic is not None for one in members.values())

    # ── offsets ──────────────────────────────────────────────────────────────────────────────

    def check_commit(self, command: Commit, now: Now) -> None:
        """Raise unless this client may commit offsets for the group now."""
        if command.generation < 0 and not self.members:
            return
        self.check_epoch(command.member, command.generation)

    def check_transactional_commit(self, command: Commit, now: Now) -> None:
        """Raise if this client may not commit offsets in a transaction.

        Producers only know generations, so a wrong epoch is reported as a wrong generation.
        """
        member, epoch = command.member, command.generation
        if not member.member_id and member.instance_id is None and epoch < 0:
            return
        try:
            self.check_commit(command, now)
        except StaleMember as error:
            raise IllegalGeneration(str(error)) from error

    def check_epoch(self, identity: Identity, epoch: int) -> None:
        """Raise unless this is a member in this epoch."""
        member = self._found(identity)
        if epoch != member.epoch:
            message = f"the member is in epoch {member.epoch}, not {epoch}"
            raise StaleMember(message) if member.classic is None else IllegalGeneration(message)

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def due_ms(self) -> int | None:
        """Return when `tick` may have work; 0 if some timeout has yet to start."""
        if len(self._sessions) < len(self.members) or self._is_classic_now(self.members):
            return 0
        return min((*self._sessions.values(), *self._revocations.values()), default=None)

    def tick(self, now: Now, out: Decision) -> None:
        """Drop members that missed their heartbeat or did not release partitions in time."""
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

    def apply_member(self, member_id: str, saved: ConsumerMemberSaved | None) -> None:
        """Apply a member's record."""
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


def entering(member_id: str, known: ConsumerMember | None) -> ConsumerMember:
    """Return a joining member, new or in the place of a known one."""
    if known is None:
        return ConsumerMember(member_id=member_id)
    # It reports that it reads nothing, so what it held is free. Its target stays, so this same
    # decision gives it back before any other member could take it.
    return replace(
        known,
        member_id=member_id,
        epoch=JOINING,
        previous_epoch=-1,
        assigned=NOTHING,
        revoking=NOTHING,
    )
