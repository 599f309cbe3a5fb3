"""A group whose coordinator assigns, and its members that speak the classic protocol.

Such a member learns of its target and releases partitions in the classic way (KIP-848): a heartbeat
is answered with RebalanceInProgress when there is news, the member joins again and says what it
still reads, and its sync returns what it may read. It never leads and never waits. Its *generation*
is its epoch, so its commits are checked like any other's.
"""

from msgspec.structs import replace

from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.consumer_draft import Draft
from kafkaesque.machines.groups.consumer_group import ConsumerGroup, Step, entering
from kafkaesque.machines.groups.consumer_member import ConsumerMember
from kafkaesque.machines.groups.group_commands import (
    Alive,
    Heartbeat,
    Identity,
    Join,
    Joined,
    Sync,
    Synced,
)
from kafkaesque.machines.groups.group_errors import (
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from kafkaesque.machines.groups.group_records import ClassicSaved
from kafkaesque.machines.groups.migration import common_protocols, known_places, named_assignment
from kafkaesque.machines.groups.subscription import CONSUMER, Subscription, subscription_of


class MixedGroup(ConsumerGroup):
    """One group, with members of both kinds."""

    def join(self, command: Join, to: ReplyTo, now: Now, out: Decision) -> None:
        """Add a classic member, or move it closer to its target."""
        said = self._said(command)
        if not command.member_id and command.instance_id is None and command.knows_member_ids:
            raise MemberIdRequired(command.fresh_id)
        draft = Draft(self.name, self.members, self.saved, self._first_epoch)
        known = self._known(command)
        if known is not None and known.member_id == command.member_id:
            before = known
        else:
            before = entering(command.member_id or command.fresh_id, known)
            if known is not None:
                draft.remove(known.member_id)
        protocols = tuple((one.name, one.metadata) for one in command.protocols)
        member = replace(
            before,
            instance_id=command.instance_id,
            client_id=command.client_id,
            client_host=command.client_host,
            rebalance_timeout_ms=command.rebalance_timeout_ms,
            names=said.topics,
            pattern="",
            assignor="",
            classic=ClassicSaved(
                session_timeout_ms=command.session_timeout_ms, protocols=protocols
            ),
        )
        owned = known_places(said.owned, command.topics)
        after = self._advance(
            Step(before, member, known is None, owned, command.topics), draft, now
        )
        self._expect(after, now, starts_over=True)
        out.records += draft.records()
        answer = Joined(
            generation=after.epoch,
            protocol_type=CONSUMER,
            protocol=protocols[0][0],
            leader="",
            member_id=after.member_id,
        )
        out.reply(to, answer)

    def _said(self, command: Join) -> Subscription:
        """Return its subscription; raises unless its protocols suit the other classic members."""
        if command.protocol_type != CONSUMER or not command.protocols:
            raise InconsistentProtocol("the members of this group are consumers")
        others = [
            one
            for one in self.members.values()
            if one.classic is not None and one.member_id != command.member_id
        ]
        common = common_protocols(others)
        if others and not any(one.name in common for one in command.protocols):
            raise InconsistentProtocol("no protocol in common with the members of the group")
        said = subscription_of(command.protocols[0].metadata)
        if said is None:
            raise InconsistentProtocol("the member's subscription cannot be decoded")
        return said

    def _known(self, command: Join) -> ConsumerMember | None:
        """Return the member that rejoins, or that the joining client replaces."""
        if command.instance_id is None:
            found = self.members.get(command.member_id)
            if found is not None and found.classic is None:
                raise UnknownMember("this member does not speak the classic protocol")
            return found
        if command.member_id:
            return self._classic(
                Identity(member_id=command.member_id, instance_id=command.instance_id)
            )
        return self.members.get(self._instances.get(command.instance_id, ""))

    def sync(self, command: Sync, to: ReplyTo, now: Now, out: Decision) -> None:
        """Give a classic member its assignment."""
        member = self._classic(command.member)
        assert member.classic is not None
        assert self.saved is not None, "a group with members has a record"
        self._check_generation(member, command.generation)
        names = [name for name, _ in member.classic.protocols]
        if command.protocol_type not in (None, CONSUMER):
            raise InconsistentProtocol(f"the group's protocol type is {CONSUMER}")
        if command.protocol not in (None, *names):
            raise InconsistentProtocol(f"the member did not list the protocol {command.protocol}")
        # A member that has yet to release partitions joins again on its own once it has.
        if member.epoch < self.epoch and not member.revoking:
            self._expect(member, now)
            raise RebalanceInProgress("the assignment has changed: join again")
        self._time(member, now)
        synced = Synced(
            protocol_type=CONSUMER,
            protocol=names[0],
            assignment=named_assignment(member.assigned, self.saved),
        )
        out.reply(to, synced)

    def beat(self, command: Heartbeat, to: ReplyTo, now: Now, out: Decision) -> None:
        """Take a classic member's heartbeat; an error makes it join again."""
        member = self._classic(command.member)
        self._check_generation(member, command.generation)
        self._sessions[member.member_id] = self._session_end(member, now)
        if self._has_news(member):
            self._expect(member, now)
            raise RebalanceInProgress("the assignment has changed: join again")
        out.reply(to, Alive())

    def _has_news(self, member: ConsumerMember) -> bool:
        if member.epoch < self.epoch or member.revoking:
            return True
        # Rejoining stops some clients altogether, so it must be worth it.
        missing = member.target - member.assigned
        return bool(missing) and all(
            self._is_free(place, member, self.members) for place in missing
        )

    def _expect(self, member: ConsumerMember, now: Now, *, starts_over: bool = False) -> None:
        """Give a member time to join again or, if it has just joined, to sync."""
        if starts_over or member.member_id not in self._revocations:
            self._revocations[member.member_id] = now.monotonic_ms + member.rebalance_timeout_ms

    def _classic(self, identity: Identity) -> ConsumerMember:
        member = self._found(identity)
        if member.classic is None:
            raise UnknownMember("this member does not speak the classic protocol")
        return member

    @staticmethod
    def _check_generation(member: ConsumerMember, generation: int) -> None:
        if generation != member.epoch:
            raise IllegalGeneration(f"generation {generation} is not the member's, {member.epoch}")
