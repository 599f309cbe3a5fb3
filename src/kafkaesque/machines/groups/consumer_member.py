"""One member of a consumer group, and how it gets from what it reads to its target.

A member has an *assignment*, what it may read now, and a *target*, what it should read. Each of its
heartbeats brings it one step closer:

1. It reads something outside its target: it must stop, and its epoch stays until it reports that
   it has; meanwhile it can commit offsets, and no other member gets those partitions.
2. It reads nothing else any more: it enters the group's epoch, and gets those partitions of its
   target that no other member holds.
3. Others still hold part of its target: it gets that when they release it.

Partitions that stay in its target are never taken from it, and it never stops reading them.
"""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from kafkaesque.machines.groups.consumer_commands import ConsumerHeartbeat, ConsumerMemberView
from kafkaesque.machines.groups.group_commands import TopicPartition, said_bytes
from kafkaesque.machines.groups.group_records import (
    ClassicSaved,
    ConsumerMemberSaved,
    packed,
    unpacked,
)
from kafkaesque.machines.groups.group_room import MEMBER_BYTES, NAME_BYTES, PLACE_BYTES
from kafkaesque.text_size import chars_bytes

Places = frozenset[TopicPartition]
NOTHING: Places = frozenset()


class ConsumerMember(Struct, frozen=True, kw_only=True):
    """The durable state of a member."""

    member_id: str
    instance_id: str | None = None
    rack_id: str = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = 0
    names: frozenset[str] = frozenset()
    pattern: str = ""
    assignor: str = ""
    """The assignor that it prefers; empty for no preference."""
    epoch: int = 0
    previous_epoch: int = -1
    """The epoch before: the answer with the new one may have been lost."""
    assigned: Places = NOTHING
    revoking: Places = NOTHING
    """What it must stop reading, and holds until it reports that it has."""
    target: Places = NOTHING
    classic: ClassicSaved | None = None
    """Set for a member that speaks the classic protocol (`machines/groups/mixed_group.py`)."""

    @classmethod
    def from_saved(cls, member_id: str, saved: ConsumerMemberSaved) -> "ConsumerMember":
        """Return a member from its record."""
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
            assigned=unpacked(saved.assigned),
            revoking=unpacked(saved.revoking),
            target=unpacked(saved.target),
            classic=saved.classic,
        )

    def saved(self) -> ConsumerMemberSaved:
        """Return the value of its record."""
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
            assigned=packed(self.assigned),
            revoking=packed(self.revoking),
            target=packed(self.target),
            classic=self.classic,
        )

    def told(self, said: ConsumerHeartbeat) -> "ConsumerMember":
        """Return the member updated with what its heartbeat says."""

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
        """The parts that the target depends on."""
        return self.names, self.pattern, self.assignor

    @property
    def size(self) -> int:
        """How many bytes chosen by the member are kept."""
        texts = (self.member_id, self.instance_id or "", self.rack_id, self.client_id, self.pattern)
        classic = () if self.classic is None else self.classic.protocols
        said = sum(map(chars_bytes, texts)) + sum(map(chars_bytes, self.names))
        return said + said_bytes(classic)

    @property
    def bytes(self) -> int:
        """Its approximate memory. Room for its target is reserved before it holds it."""
        places = max(len(self.target), len(self.assigned) + len(self.revoking))
        return self.size + MEMBER_BYTES + NAME_BYTES * len(self.names) + PLACE_BYTES * places

    def holds(self, place: TopicPartition) -> bool:
        """Return whether it keeps other members from a partition."""
        return place in self.assigned or place in self.revoking

    def is_settled(self, epoch: int) -> bool:
        """Return whether it reads its whole target in this epoch."""
        # In the group's epoch an assignment is part of the target, so counting is enough.
        return self.epoch == epoch and not self.revoking and len(self.assigned) == len(self.target)

    def view(self) -> ConsumerMemberView:
        """Return the member as an administrator sees it."""
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
    """Return a member one step closer to its target.

    `owned` is what it reports to read, None if it reports nothing; `is_free` says whether no
    other member holds a partition.
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
