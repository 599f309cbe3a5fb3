"""Consumers at a desk that use the classic protocol and behave like real ones."""

import struct
from dataclasses import dataclass

from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.group_commands import Answer, Identity, Joined, Protocol, Synced
from kafkaesque.machines.groups.group_errors import (
    GroupChangesKind,
    MemberIdRequired,
    RebalanceInProgress,
)
from kafkaesque.machines.groups.subscription import (
    assigned_of,
    encode_assignment,
    subscription_of,
)
from tests.machines.consumer_desk import ConsumerDesk
from tests.machines.group_desk import Waiting

Named = frozenset[tuple[str, int]]


@dataclass
class OldReader:
    """A classic consumer: what it believes, what it reads, and what it waits for."""

    name: str
    is_cooperative: bool = True
    topics: tuple[str, ...] = ("orders",)
    instance: str | None = None
    member_id: str = ""
    generation: int = -1
    owned: Named = frozenset()
    waits: Waiting | None = None
    is_member: bool = False
    """Whether it has nothing to do but to send heartbeats."""

    @property
    def protocol(self) -> Protocol:
        name = "cooperative-sticky" if self.is_cooperative else "range"
        return Protocol(name, metadata(self.topics, self.owned))

    def forget(self) -> None:
        """Drop all state, and start over."""
        self.member_id, self.generation, self.owned = "", -1, frozenset()
        self.waits, self.is_member = None, False


def metadata(topics: tuple[str, ...], owned: Named) -> bytes:
    """A consumer's subscription, in version 1."""
    parts = [struct.pack(">hi", 1, len(topics))]
    parts += [struct.pack(">h", len(topic)) + topic.encode() for topic in topics]
    of_topics = {topic: [i for t, i in sorted(owned) if t == topic] for topic in topics}
    listed = encode_assignment(of_topics)
    return b"".join(parts) + struct.pack(">i", -1) + listed[2:-4]


class MixedDesk(ConsumerDesk):
    """One machine with readers of both kinds."""

    def go_on(self, reader: OldReader) -> None:
        """Let a classic reader take its next step."""
        if reader.waits is not None:
            answer, reader.waits = reader.waits.answer, reader.waits
            if answer is not None:
                reader.waits = None
                self._hear(reader, answer)
        elif not reader.is_member:
            self._join(reader)
        else:
            error = self.heartbeat(reader.member_id, reader.generation, reader.instance)
            if error is not None:
                self._refused(reader, error)

    def _join(self, reader: OldReader) -> None:
        if not reader.is_cooperative:
            reader.owned = frozenset()  # an eager one stops for it
        reader.waits = self.join(reader.member_id, reader.protocol, instance=reader.instance)

    def _hear(self, reader: OldReader, answer: Answer) -> None:
        match answer:
            case Joined():
                reader.member_id, reader.generation = answer.member_id, answer.generation
                is_leader = answer.leader == answer.member_id
                parts = self._assigned(answer, reader.is_cooperative) if is_leader else ()
                reader.waits = self.sync(
                    reader.member_id, reader.generation, *parts, instance=reader.instance
                )
            case Synced():
                may_read = assigned_of(answer.assignment)
                assert may_read is not None
                has_lost = bool(reader.owned - may_read)
                reader.owned = may_read
                reader.is_member = not has_lost  # a reader that has revoked partitions joins again
            case GroupError():
                self._refused(reader, answer)

    def _refused(self, reader: OldReader, error: GroupError) -> None:
        reader.is_member = False
        match error:
            case MemberIdRequired():
                reader.member_id = error.member_id
            case RebalanceInProgress() | GroupChangesKind():
                pass
            case _:
                reader.forget()

    def _assigned(self, answer: Joined, is_cooperative: bool) -> tuple[tuple[str, bytes], ...]:
        """Share the partitions like a leader; a cooperative one waits until they are revoked."""
        said = {name: subscription_of(data) for name, _, data in answer.members}
        places = [
            (name, index)
            for name, topic in sorted(self.topics.items())
            for index in range(topic.partitions)
        ]
        given: dict[str, dict[str, list[int]]] = {name: {} for name in said}
        for number, (topic, index) in enumerate(places):
            able = [name for name, one in sorted(said.items()) if one and topic in one.topics]
            if not able:
                continue
            who = able[number % len(able)]
            owners = [name for name, one in said.items() if one and (topic, index) in one.owned]
            if not is_cooperative or owners in ([], [who]):
                given[who].setdefault(topic, []).append(index)
        return tuple((name, encode_assignment(parts)) for name, parts in given.items())

    def depart(self, reader: OldReader) -> None:
        """Leave the group like a closing consumer."""
        if reader.member_id:
            self.leave(Identity(member_id=reader.member_id, instance_id=reader.instance))
        reader.forget()

    def run(self, *old: OldReader, seconds: int = 8) -> None:
        """Let classic readers run for a while."""
        for _ in range(seconds * 2):
            for reader in old:
                for _ in range(3):  # answers follow at once
                    self.go_on(reader)
            self.pass_ms(500)

    def named(self, places: frozenset[tuple[bytes, int]]) -> Named:
        names = {topic.topic_id: name for name, topic in self.topics.items()}
        return frozenset((names[topic_id], index) for topic_id, index in places)
