"""The requests of members to their classic group: join, sync, heartbeat, leave, commit.

The states are those of `machines/groups/group_life.py`. Each state refuses what Kafka refuses,
because clients steer by the errors they get.
"""

import msgspec

from kafkaesque.errors import GroupError
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.group_commands import (
    Alive,
    Commit,
    GroupView,
    Heartbeat,
    Identity,
    Join,
    Leave,
    Left,
    MemberView,
    Sync,
    Synced,
)
from kafkaesque.machines.groups.group_errors import (
    FencedInstance,
    GroupFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from kafkaesque.machines.groups.group_life import GroupLife, GroupState, joined
from kafkaesque.machines.groups.group_member import Member, chosen_protocol, supported_by_all
from kafkaesque.machines.groups.group_records import Generation
from kafkaesque.machines.groups.group_room import MEMBER_BYTES, pending_bytes
from kafkaesque.machines.groups.subscription import CONSUMER, is_same_subscription, topics_of


class ClassicGroup(GroupLife):
    """One group. Its decisions go into a `Decision`; refusals are raised."""

    # ── joining ──────────────────────────────────────────────────────────────────────────────

    def join(self, command: Join, to: ReplyTo, now: Now, out: Decision) -> None:
        """Add a member, at once or when the others have joined."""
        self._check_room(command)
        if not self._is_compatible(command):
            raise InconsistentProtocol("no protocol in common with the members of the group")
        if command.member_id:
            self._join_again(command, to, now, out)
        elif command.instance_id is not None:
            self._join_as_instance(command, to, now, out)
        elif command.knows_member_ids:
            wait_ms = min(command.session_timeout_ms, self._config.new_member_wait_ms_max)
            self.pending[command.fresh_id] = now.monotonic_ms + wait_ms
            raise MemberIdRequired(command.fresh_id)
        else:
            self._add(Member.from_join(command, command.fresh_id), to, now, out)

    def _check_room(self, command: Join) -> None:
        config = self._config
        if command.size > config.member_bytes_max:
            raise GroupFull(f"a member's metadata is limited to {config.member_bytes_max} bytes")
        if len(command.protocols) > config.protocols_max:
            raise GroupFull(f"a member may list at most {config.protocols_max} protocols")
        mine = self.members.get(command.member_id)
        if mine is None and command.instance_id is not None:
            mine = self._of_instance(command.instance_id)
        others_bytes = sum(m.size for m in self.members.values() if m is not mine)
        if others_bytes + command.size > config.group_bytes_max:
            raise GroupFull(f"a group's metadata is limited to {config.group_bytes_max} bytes")
        is_pending = command.member_id in self.pending
        is_known = mine is not None or is_pending
        if not is_known and len(self.members) + len(self.pending) >= config.members_max:
            raise GroupFull(f"a group has at most {config.members_max} members")
        only_wants_id = not is_known and command.instance_id is None and command.knows_member_ids
        if only_wants_id:
            more_bytes = pending_bytes(command.fresh_id)
        else:
            before = pending_bytes(command.member_id) if is_pending else 0
            before = before if mine is None else 2 * mine.size + MEMBER_BYTES
            more_bytes = 2 * command.size + MEMBER_BYTES - before
        self._room.check(self.name, self.bytes + more_bytes)

    def _is_compatible(self, command: Join) -> bool:
        if not command.protocol_type or not command.protocols:
            return False
        if not self.members:
            return True
        if command.protocol_type != self.protocol_type:
            return False
        common = supported_by_all(self.members.values())
        return any(protocol.name in common for protocol in command.protocols)

    def _join_again(self, command: Join, to: ReplyTo, now: Now, out: Decision) -> None:
        if command.instance_id is None and self.pending.pop(command.member_id, None) is not None:
            self._add(Member.from_join(command, command.member_id), to, now, out)
            return
        member = self._checked(
            Identity(member_id=command.member_id, instance_id=command.instance_id)
        )
        match self.state:
            # The answer to its join was lost, and nothing has changed since.
            case GroupState.COMPLETING_REBALANCE if member.protocols == command.protocols:
                is_current = True
            # A leader rejoins to have everything reassigned; a follower has no reason to.
            case GroupState.STABLE if member.protocols == command.protocols:
                is_current = not self._is_leader(member)
            case _:
                is_current = False
        if is_current:
            self._heard(member, now)
            out.reply(to, joined(self.generation, member.member_id))
        else:
            member.update(command)
            self._await_join(member, to, now, out)

    def _join_as_instance(self, command: Join, to: ReplyTo, now: Now, out: Decision) -> None:
        assert command.instance_id is not None
        old = self._of_instance(command.instance_id)
        member = Member.from_join(command, command.fresh_id)
        if old is None:
            self._add(member, to, now, out)
            return
        self._dismiss(old, FencedInstance("another member has taken this instance id"), out)
        # The new member also takes the old one's place in the order.
        places = [member if one is old else one for one in self.members.values()]
        self.members = {one.member_id: one for one in places}
        self._unsynced.discard(old.member_id)
        protocol = self.generation.protocol
        may_stay = (
            self.state is GroupState.STABLE
            and chosen_protocol(self.members.values()) == protocol
            and is_same_subscription(
                member.protocol_type, old.metadata(protocol), member.metadata(protocol)
            )
        )
        if may_stay:
            self._take_place(old, member, command, to, now, out)
        else:
            self._await_join(member, to, now, out)

    def _take_place(
        self, old: Member, member: Member, command: Join, to: ReplyTo, now: Now, out: Decision
    ) -> None:
        """Give a returning instance its old assignment under a new id, without a rebalance."""
        was_leader = self._is_leader(old)
        part = self.generation.member(old.member_id)
        assert part is not None, "every member of a stable group is in its generation"
        saved = member.saved(self.generation.protocol, part.assignment)
        generation = msgspec.structs.replace(
            self.generation,
            leader=member.member_id if was_leader else self.generation.leader,
            members=tuple(saved if m is part else m for m in self.generation.members),
        )
        self._write(generation, out)
        self._heard(member, now)
        answer = joined(generation, member.member_id)
        if was_leader and command.can_skip_assignment:
            answer = msgspec.structs.replace(answer, skip_assignment=True)
        elif was_leader:
            # It cannot be told to skip the assignment, and the one it would make would be ignored.
            # So the answer names a leader that it is not (KIP-814).
            answer = msgspec.structs.replace(answer, leader=old.member_id, members=())
        out.reply(to, answer)

    def _add(self, member: Member, to: ReplyTo, now: Now, out: Decision) -> None:
        if self._rebalance is not None:
            self._rebalance.has_newcomer = True
        was_empty = self.state is GroupState.EMPTY
        member.is_new = True
        member.deadline_ms = now.monotonic_ms + self._config.new_member_wait_ms_max
        self.members[member.member_id] = member
        if was_empty:
            self._gather(member, now)
        self._await_join(member, to, now, out)

    def _await_join(self, member: Member, to: ReplyTo, now: Now, out: Decision) -> None:
        self._dismiss(member, RebalanceInProgress("the member has asked again"), out)
        member.join = to
        if member.deadline_ms is None:
            self._heard(member, now)
        self._prepare(now, out)
        self._complete_if_all_joined(now, out)

    # ── the other requests of members ────────────────────────────────────────────────────────

    def sync(self, command: Sync, to: ReplyTo, now: Now, out: Decision) -> None:
        """Give a member its assignment, at once or when the leader has sent it."""
        member = self._checked(command.member)
        self._check_generation(command.generation)
        if command.protocol_type not in (None, self.protocol_type):
            raise InconsistentProtocol(f"the group's protocol type is {self.protocol_type}")
        if command.protocol not in (None, self.generation.protocol):
            raise InconsistentProtocol(f"the group's protocol is {self.generation.protocol}")
        self._heard(member, now)
        match self.state:
            case GroupState.STABLE:
                self._unsynced.discard(member.member_id)
                out.reply(to, _synced(self.generation, member.member_id))
            case GroupState.COMPLETING_REBALANCE:
                is_leader = self._is_leader(member)
                if is_leader:
                    self._check_assignments(command)
                self._dismiss(member, RebalanceInProgress("the member has asked again"), out)
                self._unsynced.discard(member.member_id)
                member.sync = to
                if is_leader:
                    self._assign(dict(command.assignments), now, out)
            case _:
                raise RebalanceInProgress("the group is being rebalanced: join again")

    def _check_assignments(self, command: Sync) -> None:
        limit = self._config.group_bytes_max
        size = sum(len(part) for _, part in command.assignments)
        if size > limit:
            raise GroupFull(f"all assignments together are limited to {limit} bytes")
        self._room.check(self.name, self.bytes - self._assigned_bytes + size)

    def _assign(self, parts: dict[str, bytes], now: Now, out: Decision) -> None:
        generation = msgspec.structs.replace(
            self.generation,
            is_assigned=True,
            changed_ms=now.wall_ms,
            members=tuple(
                msgspec.structs.replace(m, assignment=parts.get(m.member_id, b""))
                for m in self.generation.members
            ),
        )
        self._write(generation, out)
        for member in self.members.values():
            if member.sync is not None:
                out.reply(member.sync, _synced(generation, member.member_id))
                member.sync = None
                self._heard(member, now)

    def heartbeat(self, command: Heartbeat, to: ReplyTo, now: Now, out: Decision) -> None:
        """Take a heartbeat; an error makes the member join again."""
        member = self._checked(command.member)
        self._check_generation(command.generation)
        self._heard(member, now)
        if self.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress("the group is being rebalanced: join again")
        out.reply(to, Alive())

    def leave(self, command: Leave, to: ReplyTo, now: Now, out: Decision) -> None:
        """Remove members; the rest rebalance."""
        if len(command.members) > self._config.members_max:
            raise GroupFull(f"a group has at most {self._config.members_max} members")
        failures: list[GroupError | None] = []
        for identity in command.members:
            try:
                self._let_go(identity, now, out)
                failures.append(None)
            except GroupError as error:
                failures.append(error)
        self._complete_if_all_joined(now, out)
        out.reply(to, Left(failures=tuple(failures)))

    def _let_go(self, identity: Identity, now: Now, out: Decision) -> None:
        if identity.instance_id is None and self.pending.pop(identity.member_id, None) is not None:
            return
        if not identity.member_id and identity.instance_id is not None:
            # An administrator removes an instance without knowing its current id.
            member = self._of_instance(identity.instance_id)
            if member is None:
                raise UnknownMember("the group has no member with this instance id")
        else:
            member = self._checked(identity)
        self._remove(member, out)
        self._prepare(now, out)

    def check_commit(self, command: Commit, now: Now) -> None:
        """Raise unless this client may commit offsets for the group now."""
        if command.generation < 0 and self.state is GroupState.EMPTY:
            return
        is_anonymous = not command.member.member_id and command.member.instance_id is None
        if command.generation < 0 and is_anonymous:
            raise UnknownMember("while a group has members, only they may commit")
        member = self._checked(command.member)
        self._check_generation(command.generation)
        if self.state is GroupState.COMPLETING_REBALANCE:
            raise RebalanceInProgress("the member does not know its assignment yet")
        self._heard(member, now)

    def check_transactional_commit(self, command: Commit, now: Now) -> None:
        """Raise if this client may not commit offsets in a transaction (KIP-447).

        Producers that name no member, as old ones do, are fenced by their id alone.
        """
        member, generation = command.member, command.generation
        is_anonymous = not member.member_id and member.instance_id is None and generation < 0
        if is_anonymous or (generation < 0 and self.state is GroupState.EMPTY):
            return
        found = self._checked(member)
        self._check_generation(generation)
        self._heard(found, now)

    # ── views ────────────────────────────────────────────────────────────────────────────────

    def view(self) -> GroupView:
        """Return the group as an administrator sees it, without what is still in flux."""
        is_stable = self.state is GroupState.STABLE
        protocol = self.generation.protocol if is_stable else ""
        parts = {m.member_id: m.assignment for m in self.generation.members} if is_stable else {}
        return GroupView(
            group=self.name,
            state=self.state,
            protocol_type=self.protocol_type,
            protocol=protocol,
            members=tuple(
                MemberView(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    metadata=member.metadata(protocol) if is_stable else b"",
                    assignment=parts.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )

    def reads(self, topic: str) -> bool:
        """Return whether a member subscribes to a topic, or might."""
        if self.protocol_type != CONSUMER:
            return False
        wanted = [topics_of(p.metadata) for m in self.members.values() for p in m.protocols]
        return any(topics is None or topic in topics for topics in wanted)

    # ── checks ───────────────────────────────────────────────────────────────────────────────

    def _checked(self, identity: Identity) -> Member:
        if identity.instance_id is not None:
            member = self._of_instance(identity.instance_id)
            if member is not None and member.member_id != identity.member_id:
                raise FencedInstance("another member has taken this instance id")
        else:
            member = self.members.get(identity.member_id)
        if member is None:
            raise UnknownMember("no such member in the group")
        return member

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation.number:
            raise IllegalGeneration(
                f"generation {generation} is not the current one, {self.generation.number}"
            )

    def _of_instance(self, instance_id: str) -> Member | None:
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def _is_leader(self, member: Member) -> bool:
        return member.member_id == self.generation.leader


def _synced(generation: Generation, member_id: str) -> Synced:
    saved = generation.member(member_id)
    assert saved is not None, "every member of an assigned generation is in it"
    return Synced(
        protocol_type=generation.protocol_type,
        protocol=generation.protocol,
        assignment=saved.assignment,
    )
