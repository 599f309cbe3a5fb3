"""The life cycle of one classic group, apart from its members' requests.

    Empty --join--> PreparingRebalance                     gathers members for a short while
    PreparingRebalance --all joined, or time over--> CompletingRebalance, or Empty if none is left
    CompletingRebalance --the leader sends assignments--> Stable
    CompletingRebalance, Stable --a member joins, leaves, expires--> PreparingRebalance
    any state --a tombstone for its record--> Dead: it is gone

Only the *generation* is durable: its number, its members, and each one's assignment. It is written
twice, once the members are known and once the assignments are, so that no two generations get the
same number; only `apply` changes it. All else is soft: pending answers, heartbeat deadlines, and
whether a rebalance is under way. So PreparingRebalance is the one state that a restart forgets: the
group is back in its newest generation, and members that were joining join again.
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import GroupError
from kafkaesque.machines.decision import Decision, Now
from kafkaesque.machines.groups.group_commands import Joined
from kafkaesque.machines.groups.group_errors import RebalanceInProgress, UnknownMember
from kafkaesque.machines.groups.group_member import Member, chosen_protocol
from kafkaesque.machines.groups.group_records import NO_GENERATION, Generation, GroupKey, to_record
from kafkaesque.machines.groups.group_room import MEMBER_BYTES, GroupRoom, pending_bytes
from kafkaesque.machines.machine import MachineRecord


class GroupState(StrEnum):
    """The states, named as Kafka's tools know them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


class _Rebalance(msgspec.Struct, kw_only=True):
    """A rebalance that gathers members."""

    deadline_ms: int
    """Members that have not joined by then are dropped."""
    is_initial: bool = False
    """The group was empty: it does not know which members to wait for, so it waits for a while."""
    extendable_ms: int = 0
    """How much that wait may still grow while new members keep coming."""
    has_newcomer: bool = False


class GroupLife:
    """State, timeouts and rebalances of a group; deciding adds to a `Decision`."""

    def __init__(self, name: str, config: GroupConfig, room: GroupRoom) -> None:
        self.name = name
        self.generation: Generation = NO_GENERATION
        self.members: dict[str, Member] = {}
        self.pending: dict[str, int] = {}
        """Ids given to clients that have not joined with them yet, and when they expire."""
        self._config = config
        self._room = room
        self._rebalance: _Rebalance | None = None
        self._unsynced: set[str] = set()
        """Members of this generation that have not asked for their assignment."""
        self._sync_deadline_ms: int | None = None

    def configure(self, config: GroupConfig) -> None:
        """Apply new settings to later decisions."""
        self._config = config

    @property
    def state(self) -> GroupState:
        """The state of the group."""
        if self._rebalance is not None:
            return GroupState.PREPARING_REBALANCE
        if not self.members:
            return GroupState.EMPTY
        if self.generation.is_assigned:
            return GroupState.STABLE
        return GroupState.COMPLETING_REBALANCE

    @property
    def bytes(self) -> int:
        """Its approximate memory. Members' data counts twice: as received, and as written."""
        said = sum(2 * m.size + MEMBER_BYTES for m in self.members.values())
        return said + self._assigned_bytes + sum(map(pending_bytes, self.pending))

    @property
    def _assigned_bytes(self) -> int:
        return sum(len(saved.assignment) for saved in self.generation.members)

    @property
    def protocol_type(self) -> str:
        """The kind of work the members share; empty for a group that never had members."""
        first = next(iter(self.members.values()), None)
        return self.generation.protocol_type if first is None else first.protocol_type

    @property
    def is_void(self) -> bool:
        """Whether nothing at all is known of it."""
        return self.generation is NO_GENERATION and not self.members and not self.pending

    @property
    def is_idle(self) -> bool:
        """Whether it has no members, not even joining ones."""
        return not self.members and not self.pending

    @property
    def is_saved(self) -> bool:
        """Whether there is a record of it."""
        return self.generation is not NO_GENERATION

    @property
    def changed_ms(self) -> int:
        """When its generation last changed, by the wall clock."""
        return self.generation.changed_ms

    def records(self) -> Iterator[MachineRecord]:
        """Return records that rebuild the durable state."""
        if self.is_saved:
            yield to_record(GroupKey(self.name), self.generation)

    def apply(self, generation: Generation) -> None:
        """Apply a record. Known members keep their pending answers and deadlines."""
        members = {}
        for saved in generation.members:
            known = self.members.get(saved.member_id)
            if known is None or not known.is_saved_as(saved, generation.protocol):
                known = Member.from_saved(saved, generation)
            members[saved.member_id] = known
        self.generation = generation
        self.members = members
        self._rebalance = None

    # ── time ─────────────────────────────────────────────────────────────────────────────────

    def due_ms(self) -> int | None:
        """Return when `tick` may have work; 0 if some timeout has yet to start."""
        moments = [m.deadline_ms or 0 for m in self.members.values() if m.is_timed]
        moments += self.pending.values()
        if self._rebalance is not None:
            moments.append(self._rebalance.deadline_ms)
        if self._sync_deadline_ms is not None:
            moments.append(self._sync_deadline_ms)
        elif self.state is GroupState.COMPLETING_REBALANCE:
            moments.append(0)
        return min(moments, default=None)

    def tick(self, now: Now, out: Decision) -> None:
        """Drop members without a timely heartbeat, and end rebalances whose time is over."""
        self._start_timeouts(now)
        now_ms = now.monotonic_ms
        self.pending = {name: until for name, until in self.pending.items() if until > now_ms}
        overdue = [m for m in self.members.values() if m.is_overdue(now_ms)]
        if self._sync_deadline_ms is not None and now_ms >= self._sync_deadline_ms:
            overdue += [m for m in self.members.values() if m.member_id in self._unsynced]
            self._unsynced, self._sync_deadline_ms = set(), None
        for member in overdue:
            self._remove(member, out)
        is_led = self.generation.leader or not self.members
        if overdue or not is_led:  # a group that has just changed its kind has no leader
            self._prepare(now, out)
        rebalance = self._rebalance
        if rebalance is None:
            return
        if now_ms < rebalance.deadline_ms:
            self._complete_if_all_joined(now, out)
        elif rebalance.has_newcomer and rebalance.extendable_ms > 0:
            more_ms = min(self._config.initial_rebalance_delay_ms, rebalance.extendable_ms)
            rebalance.has_newcomer = False
            rebalance.deadline_ms += more_ms
            rebalance.extendable_ms -= more_ms
        else:
            self._complete(now, out)

    def _start_timeouts(self, now: Now) -> None:
        """After a restart no member is late: every timeout starts again."""
        for member in self.members.values():
            if member.deadline_ms is None:
                self._heard(member, now)
        if self.state is GroupState.COMPLETING_REBALANCE and self._sync_deadline_ms is None:
            self._unsynced = set(self.members)
            self._sync_deadline_ms = now.monotonic_ms + self._longest_rebalance_ms()

    def _heard(self, member: Member, now: Now) -> None:
        member.deadline_ms = now.monotonic_ms + member.session_timeout_ms

    def _longest_rebalance_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    # ── rebalancing ──────────────────────────────────────────────────────────────────────────

    def _gather(self, first: Member, now: Now) -> None:
        """Wait for more members of a group that was empty, to avoid a rebalance for each."""
        delay_ms = self._config.initial_rebalance_delay_ms
        if delay_ms > 0:
            self._rebalance = _Rebalance(
                deadline_ms=now.monotonic_ms + delay_ms,
                is_initial=True,
                extendable_ms=max(first.rebalance_timeout_ms - delay_ms, 0),
            )

    def _prepare(self, now: Now, out: Decision) -> None:
        """Make every member join again, unless that has started already."""
        if self._rebalance is not None:
            return
        for member in self.members.values():
            if member.sync is not None:
                self._dismiss(member, RebalanceInProgress("a member joined or left"), out)
                self._heard(member, now)
        deadline_ms = now.monotonic_ms + self._longest_rebalance_ms()
        self._rebalance = _Rebalance(deadline_ms=deadline_ms)
        self._unsynced, self._sync_deadline_ms = set(), None

    def _complete_if_all_joined(self, now: Now, out: Decision) -> None:
        rebalance = self._rebalance
        if rebalance is None or (rebalance.is_initial and self.members):
            return
        if not self.pending and all(m.join is not None for m in self.members.values()):
            self._complete(now, out)

    def _complete(self, now: Now, out: Decision) -> None:
        """Start the next generation with the members that have joined."""
        assert self._rebalance is not None
        for member in list(self.members.values()):
            # Members with an instance id keep their place until their session ends.
            if member.join is None and member.instance_id is None:
                self._remove(member, out)
        if not self.members:
            self._become_empty(now, out)
            return
        leader = self._elected()
        if leader is None:
            self._rebalance.deadline_ms = now.monotonic_ms + self._longest_rebalance_ms()
            return
        protocol = chosen_protocol(self.members.values())
        generation = Generation(
            number=self.generation.number + 1,
            protocol_type=self.protocol_type,
            protocol=protocol,
            leader=leader,
            is_assigned=False,
            changed_ms=now.wall_ms,
            members=tuple(m.saved(protocol, b"") for m in self.members.values()),
        )
        self._write(generation, out)
        for member in self.members.values():
            if member.join is not None:
                out.reply(member.join, joined(generation, member.member_id))
                member.join, member.is_new = None, False
                self._heard(member, now)
        self._unsynced = set(self.members)
        self._sync_deadline_ms = now.monotonic_ms + self._longest_rebalance_ms()

    def _become_empty(self, now: Now, out: Decision) -> None:
        self._rebalance = None
        if self.generation is not NO_GENERATION:
            empty = msgspec.structs.replace(
                self.generation,
                number=self.generation.number + 1,
                protocol="",
                leader="",
                is_assigned=False,
                changed_ms=now.wall_ms,
                members=(),
            )
            self._write(empty, out)

    def _elected(self) -> str | None:
        """Return the assigning member: the old leader if it has joined, else the first to join."""
        old = self.members.get(self.generation.leader)
        if old is not None and old.join is not None:
            return old.member_id
        return next((m.member_id for m in self.members.values() if m.join is not None), None)

    def _write(self, generation: Generation, out: Decision) -> None:
        out.records.append(to_record(GroupKey(self.name), generation))

    def _remove(self, member: Member, out: Decision) -> None:
        self._dismiss(member, UnknownMember("no longer a member of the group"), out)
        self._unsynced.discard(member.member_id)
        self.members.pop(member.member_id, None)

    def dismiss_all(self, reason: GroupError, out: Decision) -> None:
        """Fail all pending requests, because the group changes its kind."""
        for member in self.members.values():
            self._dismiss(member, reason, out)

    def _dismiss(self, member: Member, reason: GroupError, out: Decision) -> None:
        """Fail this member's pending requests."""
        for waiting in (member.join, member.sync):
            if waiting is not None:
                out.reply(waiting, reason)
        member.join = member.sync = None


def joined(generation: Generation, member_id: str) -> Joined:
    """Return a member's answer to its join; only the leader's lists all members."""
    members = generation.members if member_id == generation.leader else ()
    return Joined(
        generation=generation.number,
        protocol_type=generation.protocol_type,
        protocol=generation.protocol,
        leader=generation.leader,
        member_id=member_id,
        members=tuple((m.member_id, m.instance_id, m.metadata) for m in members),
    )
