"""A share group (KIP-932): its members read partitions together, and the coordinator assigns.

The group's *epoch* rises whenever the assignment is recomputed: a member joins, leaves or wants
other topics, or a topic changes. With its next heartbeat a member enters the group's epoch and
learns what it is to read; nobody must stop reading first. All but the sessions is durable.

    Empty    has no members
    Stable   has members
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.assigned_group import (
    AssignedGroup,
    member_records,
    topics_bytes,
)
from kafkaesque.machines.groups.assignors import Candidate
from kafkaesque.machines.groups.consumer_commands import JOINING, LEAVING, TopicsKnown
from kafkaesque.machines.groups.group_commands import GroupView
from kafkaesque.machines.groups.group_errors import FencedMember, UnknownMember
from kafkaesque.machines.groups.group_records import (
    GroupKey,
    MemberKey,
    ShareGroupSaved,
    ShareMemberSaved,
    TopicSaved,
    to_record,
)
from kafkaesque.machines.groups.group_room import GroupRoom
from kafkaesque.machines.groups.share_assignor import SIMPLE, assign_shared
from kafkaesque.machines.groups.share_commands import ShareHeartbeat, ShareTold, ShareView
from kafkaesque.machines.groups.share_member import ShareMember

SHARE = "share"
"""The protocol type."""


class ShareGroupState(StrEnum):
    """The states, named as Kafka's tools know them."""

    EMPTY = "Empty"
    STABLE = "Stable"


class _Plan(NamedTuple):
    """What a group is to become."""

    saved: ShareGroupSaved | None
    members: Mapping[str, ShareMember]
    """All members that may have changed."""


class ShareGroup(AssignedGroup[ShareMember, ShareGroupSaved]):
    """One group. Its decisions go into a `Decision`; refusals are raised."""

    def __init__(self, name: str, config: GroupConfig, room: GroupRoom) -> None:
        super().__init__(name, config, room)
        self._seen: object = None
        """The mark of the topics that the target was computed from, or would be the same."""
        self._sessions: dict[str, int] = {}
        """When members expire without a heartbeat; the next tick adds the missing ones."""

    @property
    def state(self) -> ShareGroupState:
        """The state of the group."""
        return ShareGroupState.STABLE if self.members else ShareGroupState.EMPTY

    def view(self) -> GroupView:
        """Return the group as an administrator sees it."""
        return GroupView(
            group=self.name,
            state=self.state,
            protocol_type=SHARE,
            protocol=SIMPLE,
            shares=ShareView(
                epoch=self.epoch,
                assignor=SIMPLE,
                members=tuple(one.view() for one in self.members.values()),
            ),
        )

    # ── members ──────────────────────────────────────────────────────────────────────────────

    def heartbeat(self, command: ShareHeartbeat, to: ReplyTo, now: Now, out: Decision) -> None:
        """Take a member's heartbeat, which may also join or leave."""
        known = self.members.get(command.member_id)
        if known is None and command.epoch != JOINING:
            raise UnknownMember("no such member in the group")
        if command.epoch == LEAVING:
            self._remove([command.member_id], now, out)
            out.reply(to, ShareTold(member_id=command.member_id, epoch=LEAVING))
            return
        before = ShareMember(member_id=command.member_id) if known is None else known
        _check_epoch(command, before)
        member = before.told(command)
        self._check_room(before, member, is_new=known is None)
        wants_more = known is None or member.names != before.names
        plan = _Plan(self.saved, {member.member_id: member})
        if wants_more or self._seen is not command.topics.mark:
            plan = self._planned(member, command.topics, now, wants_more=wants_more)
            self._seen = command.topics.mark
        epoch = 0 if plan.saved is None else plan.saved.epoch
        after = plan.members[member.member_id].entered(epoch)
        self._sessions[member.member_id] = self._session_end(now)
        if plan.saved is not None and plan.saved is not self.saved:
            out.records.append(to_record(GroupKey(self.name), plan.saved))
        out.records += member_records(
            self.name, self.members, {**plan.members, after.member_id: after}.values()
        )
        # If the member does not know its epoch, it has missed an answer.
        must_tell = command.epoch in (JOINING, before.previous_epoch)
        told = ShareTold(
            member_id=after.member_id,
            epoch=after.epoch,
            heartbeat_ms=self._config.share_heartbeat_ms,
            assigned=after.assigned if must_tell or after.assigned != before.assigned else None,
        )
        out.reply(to, told)

    def _planned(
        self, member: ShareMember, topics: TopicsKnown, now: Now, *, wants_more: bool
    ) -> _Plan:
        """Recompute the target; raises GroupFull if a member wants more and there is no room.

        If only the topics have grown, members keep what they have: refusing them would stop what
        works. A target that is recomputed without need stays the same, and with it the epoch; a
        crash may have cut its records short.
        """
        members = {**self.members, member.member_id: member}
        plan = self._next(members, topics.saved, now)
        saved = plan.saved
        assert saved is not None
        is_same = self.saved is not None and saved.topics == self.saved.topics
        if not wants_more and is_same and plan.members == members:
            return _Plan(self.saved, members)
        size = topics_bytes(saved) + sum(one.bytes for one in plan.members.values())
        if wants_more:
            self._room.check(self.name, size)
        elif not self._room.has_room(self.name, size):
            return _Plan(self.saved, members)
        return plan

    def _next(
        self,
        members: Mapping[str, ShareMember],
        topic: Callable[[str], TopicSaved | None],
        now: Now,
    ) -> _Plan:
        """Return the next epoch: which member is to read what."""
        names = sorted(frozenset[str]().union(*(one.names for one in members.values())))
        known = {name: found for name in names if (found := topic(name)) is not None}
        shares = assign_shared(
            [
                Candidate(
                    member_id=one.member_id,
                    rank=one.member_id,
                    topics={known[name].topic_id for name in one.names if name in known},
                    before=one.target,
                )
                for one in members.values()
            ],
            {one.topic_id: one.partitions for one in known.values()},
        )
        saved = ShareGroupSaved(
            epoch=self.epoch + 1, changed_ms=now.wall_ms, topics=tuple(known.values())
        )
        return _Plan(
            saved,
            {name: replace(one, target=frozenset(shares[name])) for name, one in members.items()},
        )

    def _remove(self, gone: Collection[str], now: Now, out: Decision) -> None:
        members = {name: one for name, one in self.members.items() if name not in gone}
        # The topics known here are as old as the last target; the next heartbeat brings newer ones.
        known = {} if self.saved is None else {one.name: one for one in self.saved.topics}
        plan = self._next(members, known.get, now)
        out.records.append(to_record(GroupKey(self.name), plan.saved))
        out.records += [to_record(MemberKey(self.name, name), None) for name in gone]
        out.records += member_records(self.name, self.members, plan.members.values())

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def due_ms(self) -> int | None:
        """Return when `tick` may have work; 0 if some session has yet to start."""
        if len(self._sessions) < len(self.members):
            return 0
        return min(self._sessions.values(), default=None)

    def tick(self, now: Now, out: Decision) -> None:
        """Drop members that missed their heartbeat."""
        for name in self.members:
            self._sessions.setdefault(name, self._session_end(now))
        gone = [name for name in self.members if now.monotonic_ms >= self._sessions[name]]
        if gone:
            self._remove(gone, now, out)

    def _session_end(self, now: Now) -> int:
        return now.monotonic_ms + self._config.share_session_timeout_ms

    # ── applying ─────────────────────────────────────────────────────────────────────────────

    def apply_member(self, member_id: str, saved: ShareMemberSaved | None) -> None:
        """Apply a member's record."""
        old = self.members.get(member_id)
        self.bytes -= 0 if old is None else old.bytes
        if saved is None:
            self.members.pop(member_id, None)
            self._sessions.pop(member_id, None)
            return
        member = self.members[member_id] = ShareMember.from_saved(member_id, saved)
        self.bytes += member.bytes


def _check_epoch(command: ShareHeartbeat, member: ShareMember) -> None:
    if command.epoch not in (JOINING, member.epoch, member.previous_epoch):
        raise FencedMember(f"the member is in epoch {member.epoch}, not {command.epoch}")
