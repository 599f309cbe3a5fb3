"""A desk for share groups, and readers that do what real ones do."""

from dataclasses import dataclass

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.errors import GroupError
from kafkaesque.machines.groups.consumer_commands import JOINING, LEAVING
from kafkaesque.machines.groups.group_commands import Answer, TopicPartition
from kafkaesque.machines.groups.group_errors import FencedMember, UnknownMember
from kafkaesque.machines.groups.share_commands import ShareHeartbeat, ShareTold
from kafkaesque.machines.groups.share_group import ShareGroup
from tests.machines.consumer_desk import ConsumerDesk
from tests.machines.group_desk import GROUP

CONFIG = GroupConfig(initial_rebalance_delay_ms=0, share_session_timeout_ms=10_000)


@dataclass
class Sharer:
    """A member of a share group: what it believes, and what it reads."""

    member_id: str
    names: frozenset[str] = frozenset({"orders"})
    epoch: int = JOINING
    reads: frozenset[TopicPartition] = frozenset()
    must_say_all: bool = True
    refused: GroupError | None = None

    def forget(self) -> None:
        """Give up everything, and begin again."""
        self.epoch, self.reads, self.must_say_all = JOINING, frozenset(), True


class ShareDesk(ConsumerDesk):
    """One machine and the topics of a cluster."""

    def __init__(self, config: GroupConfig = CONFIG, **partitions: int) -> None:
        super().__init__(config, **partitions)

    @property
    def shares(self) -> ShareGroup:
        group = self.machine.group(GROUP)
        assert isinstance(group, ShareGroup)
        return group

    def beat(
        self, sharer: Sharer, epoch: int | None = None, *, is_lost: bool = False, group: str = GROUP
    ) -> Answer:
        """Let a member be heard from; if it is lost, it does not get the answer."""
        command = ShareHeartbeat(
            group=group,
            member_id=sharer.member_id,
            epoch=sharer.epoch if epoch is None else epoch,
            topics=self.topics_known(),
            rack_id="a" if sharer.must_say_all else None,
            client_id="test",
            client_host="127.0.0.1",
            names=sharer.names if sharer.must_say_all else None,
        )
        answer = self.ask(lambda g, to, now: g.share_heartbeat(command, to, now)).answer
        assert answer is not None
        if not is_lost:
            _hear(sharer, answer)
        return answer

    def told(self, sharer: Sharer, epoch: int | None = None) -> ShareTold:
        """Let a member be heard from that is not refused."""
        answer = self.beat(sharer, epoch)
        assert isinstance(answer, ShareTold), answer
        return answer

    def depart(self, sharer: Sharer) -> Answer:
        answer = self.beat(sharer, LEAVING)
        sharer.forget()
        return answer

    def rounds(self, *sharers: Sharer, count: int = 2) -> None:
        for _ in range(count):
            for sharer in sharers:
                self.beat(sharer)


def _hear(sharer: Sharer, answer: Answer) -> None:
    match answer:
        case ShareTold():
            sharer.refused, sharer.must_say_all = None, False
            sharer.epoch = answer.epoch
            if answer.assigned is not None:
                sharer.reads = frozenset(answer.assigned)
        case FencedMember() | UnknownMember():
            sharer.forget()
            sharer.refused = answer
        case GroupError():
            sharer.refused = answer
