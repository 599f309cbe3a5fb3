"""One member of a consumer group, and how it comes from what it reads to what it is to read.

A member has an *assignment*, what it may read now, and a *target*, what it is to read. Each of its
heartbeats brings it one step nearer:

1. It reads something that its target lacks: it is told to stop, and its epoch stays until it says
   that it has; its offsets can be committed meanwhile. Until then that is nobody else's.
2. It reads nothing else any more: it enters the group's epoch, and is given what its target has
   and nobody else holds.
3. Others still hold something of its target: that is given to it when they have let go.

What stays in its target all the time is never taken from it, and it never stops reading that.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from kafkaesque.machines.consumer_commands import ConsumerHeartbeat, ConsumerMemberView
from kafkaesque.machines.group_commands import TopicPartition, said_bytes
from kafkaesque.machines.group_records import ClassicSaved, ConsumerMemberSaved, PlacesSaved
from kafkaesque.machines.group_room import MEMBER_BYTES, NAME_BYTES, PLACE_BYTES
from kafkaesque.text_size import chars_bytes

Places = frozenset[TopicPartition]
NOTHING: Places = frozenset()


class ConsumerMember(Struct, frozen=True, kw_only=True):
    """All that is durable of a member."""

    member_id: str
    instance_id: str | None = None
    rack_id: str = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = 0
    names: frozenset[str] = frozenset()
    pattern: str = ""
    assignor: str = ""
    """The assignor that it wishes for; empty if it has no wish."""
    epoch: int = 0
    previous_epoch: int = -1
    """The epoch before: the answer that told of the new one may have been lost."""
    assigned: Places = NOTHING
    revoking: Places = NOTHING
    """What it must stop reading; until it says that it has, it holds that."""
    target: Places = NOTHING
    classic: ClassicSaved | None = None
    """Set for one that speaks the classic protocol (`machines/mixed_group.py`)."""

    @classmethod
    def from_saved(cls, member_id: str, saved: ConsumerMemberSaved) -> "ConsumerMember":
        """Return a member as its record tells of it."""
        return cls(
            member_id=member_id,
            instance_id=saved.instance_id,
            rack_id=saved.rack_id,
            client_id=saved.client_id,
            client_host=saved.client_host,
            rebalance_timeout_ms=saved.rebalance_timeout_ms,
            names=frozenset(saved.names),
            pattern=saved.pattern,
            assignor=saved.assignor,
            epoch=saved.epoch,
            previous_epoch=saved.previous_epoch,
            assigned=_unpacked(saved.assigned),
            revoking=_unpacked(saved.revoking),
            target=_unpacked(saved.target),
            classic=saved.classic,
        )

    def saved(self) -> ConsumerMemberSaved:
        """Return what its record will tell."""
        return ConsumerMemberSaved(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            names=tuple(sorted(self.names)),
            pattern=self.pattern,
            assignor=self.assignor,
            epoch=self.epoch,
            previous_epoch=self.previous_epoch,
            assigned=_packed(self.assigned),
            revoking=_packed(self.revoking),
            target=_packed(self.target),
            classic=self.classic,
        )

    def told(self, said: ConsumerHeartbeat) -> "ConsumerMember":
        """Return it with what it says of itself now."""

        def given(new: str | None, old: str) -> str:
            return old if new is None else new

        timeout_ms = said.rebalance_timeout_ms
        return replace(
            self,
            instance_id=self.instance_id if said.instance_id is None else said.instance_id,
            rack_id=given(said.rack_id, self.rack_id),
            client_id=said.client_id,
            client_host=said.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms if timeout_ms is None else timeout_ms,
            names=self.names if said.names is None else said.names,
            pattern=given(said.pattern, self.pattern),
            assignor=given(said.assignor, self.assignor),
            classic=None,
        )

    @property
    def wishes(self) -> tuple[frozenset[str], str, str]:
        """What of it the target depends on."""
        return self.names, self.pattern, self.assignor

    @property
    def size(self) -> int:
        """How many bytes of its own choice are kept."""
        texts = (self.member_id, self.instance_id or "", self.rack_id, self.client_id, self.pattern)
        classic = () if self.classic is None else self.classic.protocols
        said = sum(map(chars_bytes, texts)) + sum(map(chars_bytes, self.names))
        return said + said_bytes(classic)

    @property
    def bytes(self) -> int:
        """About what it takes. What it is to read has room already when it comes to hold it."""
        places = max(len(self.target), len(self.assigned) + len(self.revoking))
        return self.size + MEMBER_BYTES + NAME_BYTES * len(self.names) + PLACE_BYTES * places

    def holds(self, place: TopicPartition) -> bool:
        """Return whether nobody else may have a partition because of it."""
        return place in self.assigned or place in self.revoking

    def is_settled(self, epoch: int) -> bool:
        """Return whether it reads what it is to read in this epoch."""
        # In the group's epoch an assignment is a part of the target, so that counting is enough.
        return self.epoch == epoch and not self.revoking and len(self.assigned) == len(self.target)

    def view(self) -> ConsumerMemberView:
        """Return it as an administrator sees it."""
        return ConsumerMemberView(
            member_id=self.member_id,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            epoch=self.epoch,
            names=tuple(sorted(self.names)),
            pattern=self.pattern,
            assigned=self.assigned,
            target=self.target,
            is_classic=self.classic is not None,
        )


def reconciled(
    member: ConsumerMember,
    owned: Places | None,
    epoch: int,
    is_free: Callable[[TopicPartition], bool],
) -> ConsumerMember:
    """Return a member one step nearer to its target.

    `owned` is what it says that it reads, None if it says nothing; `is_free` whether no other
    member holds a partition.
    """
    if member.revoking:
        if owned is None or owned & member.revoking:
            return member
    elif member.is_settled(epoch):
        return member
    kept = member.assigned & member.target
    lost = member.assigned - member.target
    if lost and (owned is None or owned & lost):
        return replace(member, assigned=kept, revoking=lost)
    given = frozenset(place for place in member.target - kept if is_free(place))
    is_new = member.epoch != epoch
    return replace(
        member,
        epoch=epoch,
        previous_epoch=member.epoch if is_new else member.previous_epoch,
        assigned=kept | given,
        revoking=NOTHING,
    )


def _packed(places: Iterable[TopicPartition]) -> PlacesSaved:
    by_topic: defaultdict[bytes, list[int]] = defaultdict(list)
    for topic_id, partition in sorted(places):
        by_topic[topic_id].append(partition)
    return tuple((topic_id, tuple(some)) for topic_id, some in by_topic.items())


def _unpacked(saved: PlacesSaved) -> Places:
    return frozenset((topic_id, index) for topic_id, some in saved for index in some)
