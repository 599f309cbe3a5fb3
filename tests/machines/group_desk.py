"""A coordinator's desk for tests: asks the machine, applies at once, collects the answers."""

import struct
from collections.abc import Callable

from kafkaesque.ages import Ages
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import GroupError
from kafkaesque.machines.decision import Decision, Now, ReplyTo
from kafkaesque.machines.groups.consumer_commands import TopicsKnown
from kafkaesque.machines.groups.group import ClassicGroup
from kafkaesque.machines.groups.group_commands import (
    Alive,
    Answer,
    Commit,
    Committed,
    Deleted,
    Fetched,
    GroupView,
    Heartbeat,
    Identity,
    Join,
    Joined,
    Leave,
    Left,
    Protocol,
    Sync,
    Synced,
    TopicPartition,
)
from kafkaesque.machines.groups.group_records import CommittedOffset
from kafkaesque.machines.groups.groups import Groups
from kafkaesque.machines.machine import MachineRecord

GROUP = "readers"
TOPIC_ID = bytes(range(16))
PLACE: TopicPartition = (TOPIC_ID, 0)
START_MS = 1_000
WALL_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 30_000
EAGER = GroupConfig(initial_rebalance_delay_ms=0)


def subscription(*topics: str, rest: bytes = b"\0\0\0\0") -> bytes:
    """A consumer's subscription as it sends it."""
    out = struct.pack(">hi", 1, len(topics))
    for topic in topics:
        out += struct.pack(">h", len(topic)) + topic.encode()
    return out + rest


RANGE = Protocol("range", subscription("orders"))
STICKY = Protocol("sticky", subscription("orders"))


class Waiting:
    """One request; `answer` is None while nothing was decided."""

    def __init__(self) -> None:
        self.answer: Answer | None = None

    def __call__(self, answer: Answer) -> None:
        assert self.answer is None, "a request is answered once"
        self.answer = answer

    @property
    def joined(self) -> Joined:
        assert isinstance(self.answer, Joined), self.answer
        return self.answer

    @property
    def synced(self) -> Synced:
        assert isinstance(self.answer, Synced), self.answer
        return self.answer

    @property
    def error(self) -> GroupError:
        assert isinstance(self.answer, GroupError), self.answer
        return self.answer


class Desk:
    """One machine, its time, and everything that it wrote."""

    def __init__(self, config: GroupConfig = EAGER) -> None:
        self.config = config
        self.machine = Groups(config)
        self.now_ms = START_MS
        self.written: list[MachineRecord] = []
        self._names = 0

    @property
    def now(self) -> Now:
        return Now(self.now_ms, WALL_MS + self.now_ms, Ages(now_ms=WALL_MS + self.now_ms))

    @property
    def group(self) -> ClassicGroup:
        group = self.machine.group(GROUP)
        assert isinstance(group, ClassicGroup)
        return group

    @property
    def state(self) -> str:
        return self.group.state

    def restart(self) -> None:
        """Forget all state that is not in records, and replay the records."""
        self.machine = Groups(self.config)
        for record in self.written:
            self.machine.apply(record)

    def pass_ms(self, ms: int) -> None:
        """Let time pass in small steps."""
        end = self.now_ms + ms
        while self.now_ms < end:
            self.now_ms = min(self.now_ms + 50, end)
            self.carry_out(self.machine.tick(self.now))

    def carry_out(self, decision: Decision) -> None:
        self.written += decision.records
        for record in decision.records:
            self.machine.apply(record)
        for to, answer in decision.replies:
            to(answer)

    def ask(self, question: Callable[[Groups, ReplyTo, Now], Decision]) -> Waiting:
        waiting = Waiting()
        try:
            self.carry_out(question(self.machine, waiting, self.now))
        except GroupError as error:
            waiting(error)
        return waiting

    def topics_known(self) -> TopicsKnown:
        """What the broker knows about topics: classic groups do not use it."""
        return TopicsKnown(mark=None, topics={})

    # ── requests of members ──────────────────────────────────────────────────────────────────

    def join(
        self,
        member_id: str = "",
        *protocols: Protocol,
        instance: str | None = None,
        group: str = GROUP,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        protocol_type: str = "consumer",
        knows_member_ids: bool = True,
        can_skip_assignment: bool = True,
    ) -> Waiting:
        self._names += 1
        command = Join(
            group=group,
            member_id=member_id,
            fresh_id=f"m{self._names}",
            instance_id=instance,
            client_id="test",
            client_host="127.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=protocols or (RANGE,),
            topics=self.topics_known(),
            knows_member_ids=knows_member_ids,
            can_skip_assignment=can_skip_assignment,
        )
        return self.ask(lambda g, to, now: g.join(command, to, now))

    def enter(self, *protocols: Protocol, instance: str | None = None) -> Waiting:
        """Join for the first time without first asking for an id."""
        return self.join("", *protocols, instance=instance, knows_member_ids=False)

    def sync(
        self,
        member_id: str,
        generation: int,
        *parts: tuple[str, bytes],
        instance: str | None = None,
        protocol: str | None = None,
        protocol_type: str | None = None,
    ) -> Waiting:
        command = Sync(
            group=GROUP,
            generation=generation,
            member=Identity(member_id=member_id, instance_id=instance),
            protocol=protocol,
            protocol_type=protocol_type,
            assignments=parts,
        )
        return self.ask(lambda g, to, now: g.sync(command, to, now))

    def heartbeat(
        self, member_id: str, generation: int, instance: str | None = None
    ) -> GroupError | None:
        command = Heartbeat(
            group=GROUP,
            generation=generation,
            member=Identity(member_id=member_id, instance_id=instance),
        )
        answer = self.ask(lambda g, to, now: g.heartbeat(command, to, now)).answer
        return None if isinstance(answer, Alive) else _error(answer)

    def leave(self, *members: Identity) -> tuple[GroupError | None, ...]:
        command = Leave(group=GROUP, members=members)
        answer = self.ask(lambda g, to, now: g.leave(command, to, now)).answer
        assert isinstance(answer, Left), answer
        return answer.failures

    def commit(
        self,
        offset: int,
        member_id: str = "",
        generation: int = -1,
        *,
        place: TopicPartition = PLACE,
        metadata: str = "",
        instance: str | None = None,
    ) -> Answer:
        command = Commit(
            group=GROUP,
            generation=generation,
            member=Identity(member_id=member_id, instance_id=instance),
            offsets=((place, offset, 3, metadata),),
        )
        answer = self.ask(lambda g, to, now: g.commit(command, to, now)).answer
        assert answer is not None
        return answer

    def committed(self, place: TopicPartition = PLACE) -> CommittedOffset | None:
        answer = self.ask(lambda g, to, _: g.fetch(GROUP, to)).answer
        assert isinstance(answer, Fetched)
        return answer.offsets.get(place)

    def delete(self) -> GroupError | None:
        answer = self.ask(lambda g, to, _: g.delete(GROUP, to)).answer
        return None if isinstance(answer, Deleted) else _error(answer)

    def view(self) -> GroupView:
        return self.group.view()

    # ── shorthands ───────────────────────────────────────────────────────────────────────────

    def stable(self, count: int = 1, *, instances: bool = False) -> list[str]:
        """Make a stable group of this many members; return their ids, the leader first."""
        names = [f"i{number}" if instances else None for number in range(count)]
        waits = [self.enter(instance=name) for name in names]
        if count > 1:
            # All but the last came one by one, each into a separate rebalance.
            first = waits[0].joined.member_id
            again = self.join(first, instance=names[0])
            self.pass_ms(0)
            waits = [again, *waits[1:]]
        members = [wait.joined.member_id for wait in waits]
        generation = waits[0].joined.generation
        parts = tuple((member, b"part of " + member.encode()) for member in members)
        leader = waits[0].joined.leader
        ordered = [leader, *(m for m in members if m != leader)]
        by_member = dict(zip(members, names, strict=True))
        for member in ordered:
            given = parts if member == leader else ()
            assert (
                self.sync(member, generation, *given, instance=by_member[member]).synced.assignment
                == b"part of " + member.encode()
            )
        assert self.state == "Stable"
        return ordered

    @property
    def generation(self) -> int:
        return self.group.generation.number


def _error(answer: Answer | None) -> GroupError:
    assert isinstance(answer, GroupError), answer
    return answer


def refused(answer: Answer) -> frozenset[TopicPartition]:
    assert isinstance(answer, Committed), answer
    return answer.refused
