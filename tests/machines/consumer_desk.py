"""A desk for groups whose coordinator assigns, and readers that behave like real ones."""

from dataclasses import dataclass, field

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import GroupError
from kafkaesque.machines.catalog.catalog_values import Topic
from kafkaesque.machines.groups.consumer_commands import (
    AWAY,
    JOINING,
    LEAVING,
    ConsumerHeartbeat,
    ConsumerTold,
    TopicsKnown,
)
from kafkaesque.machines.groups.consumer_group import ConsumerGroup
from kafkaesque.machines.groups.group_commands import Answer, Identity, TopicPartition
from kafkaesque.machines.groups.group_errors import FencedMember, UnknownMember
from tests.machines.group_desk import GROUP, Desk

CONFIG = GroupConfig(initial_rebalance_delay_ms=0, consumer_session_timeout_ms=10_000)
REBALANCE_MS = 6_000


@dataclass
class Reader:
    """A consumer: what it believes, and what it reads."""

    member_id: str
    instance: str | None = None
    names: frozenset[str] = frozenset({"orders"})
    pattern: str = ""
    assignor: str = ""
    epoch: int = JOINING
    told: frozenset[TopicPartition] = frozenset()
    """What it may read."""
    owned: frozenset[TopicPartition] = frozenset()
    """What it does read."""
    said: frozenset[TopicPartition] = frozenset()
    """What it last reported to read."""
    must_say_all: bool = True
    refused: GroupError | None = field(default=None)

    def obey(self) -> None:
        """Stop reading revoked partitions, and start with assigned ones."""
        self.owned = self.told

    def forget(self) -> None:
        """Drop all state, and start over."""
        self.epoch, self.told, self.owned = JOINING, frozenset(), frozenset()
        self.must_say_all = True


class ConsumerDesk(Desk):
    """One machine and the topics of a cluster."""

    def __init__(self, config: GroupConfig = CONFIG, **partitions: int) -> None:
        super().__init__(config)
        self.topics: dict[str, Topic] = {}
        self._ids = 0
        for name, count in (partitions or {"orders": 4}).items():
            self.make_topic(name, count)

    @property
    def consumers(self) -> ConsumerGroup:
        group = self.machine.group(GROUP)
        assert isinstance(group, ConsumerGroup)
        return group

    def topics_known(self) -> TopicsKnown:
        return TopicsKnown(mark=self.topics, topics=self.topics)

    def make_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or give it more partitions."""
        old = self.topics.get(name)
        self._ids += old is None
        topic_id = self._ids.to_bytes(16, "big") if old is None else old.topic_id
        made = Topic(name=name, topic_id=topic_id, replicas=((1,),) * partitions)
        self.topics = {**self.topics, name: made}

    def delete_topic(self, name: str) -> None:
        self.topics = {other: topic for other, topic in self.topics.items() if other != name}

    def places(self, *names: str) -> frozenset[TopicPartition]:
        topics = [topic for name, topic in self.topics.items() if not names or name in names]
        return frozenset((topic.topic_id, i) for topic in topics for i in range(topic.partitions))

    def send(self, reader: Reader, epoch: int | None = None, *, is_lost: bool = False) -> Answer:
        """Let a reader send a heartbeat; if `is_lost`, it does not get the answer."""
        says_all = reader.must_say_all
        beat = ConsumerHeartbeat(
            group=GROUP,
            member_id=reader.member_id,
            epoch=reader.epoch if epoch is None else epoch,
            topics=self.topics_known(),
            instance_id=reader.instance,
            rebalance_timeout_ms=REBALANCE_MS if says_all else None,
            names=reader.names if says_all else None,
            pattern=reader.pattern if says_all else None,
            assignor=reader.assignor if says_all else None,
            owned=reader.owned if says_all or reader.owned != reader.said else None,
        )
        reader.said = reader.owned
        answer = self.ask(lambda g, to, now: g.consumer_heartbeat(beat, to, now)).answer
        assert answer is not None
        if not is_lost:
            _hear(reader, answer)
        reader.must_say_all = is_lost or reader.epoch == JOINING
        return answer

    def leave_group(self, reader: Reader, *, will_be_back: bool = False) -> None:
        self.send(reader, AWAY if will_be_back else LEAVING)
        reader.forget()

    def settle(self, *readers: Reader, rounds: int = 6) -> None:
        """Let readers run until nothing is left to do."""
        for _ in range(rounds):
            for reader in readers:
                self.send(reader)
                reader.obey()

    def commit_as(self, reader: Reader, epoch: int) -> Answer:
        return self.commit(1, reader.member_id, epoch, instance=reader.instance)

    def identity(self, reader: Reader) -> Identity:
        return Identity(member_id=reader.member_id, instance_id=reader.instance)


def _hear(reader: Reader, answer: Answer) -> None:
    match answer:
        case ConsumerTold():
            reader.refused = None
            reader.epoch = answer.epoch
            if answer.assigned is not None:
                reader.told = frozenset(answer.assigned)
        case FencedMember() | UnknownMember():
            reader.forget()
            reader.refused = answer
        case GroupError():
            reader.refused = answer
