"""One member of a share group: what it reads, and what it is to read from its next heartbeat on."""

from msgspec import Struct
from msgspec.structs import replace

from kafkaesque.machines.groups.consumer_member import NOTHING, Places
from kafkaesque.machines.groups.group_records import ShareMemberSaved, packed, unpacked
from kafkaesque.machines.groups.group_room import MEMBER_BYTES, NAME_BYTES, PLACE_BYTES
from kafkaesque.machines.groups.share_commands import ShareHeartbeat, ShareMemberView
from kafkaesque.text_size import chars_bytes


class ShareMember(Struct, frozen=True, kw_only=True):
    """The durable state of a member."""

    member_id: str
    rack_id: str = ""
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    epoch: int = 0
    previous_epoch: int = -1
    """The epoch before: the answer with the new one may have been lost."""
    assigned: Places = NOTHING
    """What it was told to read; its target in its own epoch."""
    target: Places = NOTHING

    @classmethod
    def from_saved(cls, member_id: str, saved: ShareMemberSaved) -> "ShareMember":
        """Return a member from its record."""
        return cls(
            member_id=member_id,
            rack_id=saved.rack_id,
            client_id=saved.client_id,
            client_host=saved.client_host,
            names=frozenset(saved.names),
            epoch=saved.epoch,
            previous_epoch=saved.previous_epoch,
            assigned=unpacked(saved.assigned),
            target=unpacked(saved.target),
        )

    def saved(self) -> ShareMemberSaved:
        """Return the value of its record."""
        return ShareMemberSaved(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            names=tuple(sorted(self.names)),
            epoch=self.epoch,
            previous_epoch=self.previous_epoch,
            assigned=packed(self.assigned),
            target=packed(self.target),
        )

    def told(self, said: ShareHeartbeat) -> "ShareMember":
        """Return the member updated with what its heartbeat says."""
        return replace(
            self,
            rack_id=self.rack_id if said.rack_id is None else said.rack_id,
            client_id=said.client_id,
            client_host=said.client_host,
            names=self.names if said.names is None else said.names,
        )

    def entered(self, epoch: int) -> "ShareMember":
        """Return the member in the group's epoch, where it reads its target.

        It need not stop reading anything first: others may read the same partitions.
        """
        if self.epoch == epoch:
            return self
        return replace(self, epoch=epoch, previous_epoch=self.epoch, assigned=self.target)

    @property
    def size(self) -> int:
        """How many bytes chosen by the member are kept."""
        texts = (self.member_id, self.rack_id, self.client_id)
        return sum(map(chars_bytes, texts)) + sum(map(chars_bytes, self.names))

    @property
    def bytes(self) -> int:
        """Its approximate memory."""
        places = max(len(self.target), len(self.assigned))
        return self.size + MEMBER_BYTES + NAME_BYTES * len(self.names) + PLACE_BYTES * places

    def view(self) -> ShareMemberView:
        """Return the member as an administrator sees it."""
        return ShareMemberView(
            member_id=self.member_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            epoch=self.epoch,
            names=tuple(sorted(self.names)),
            assigned=self.assigned,
            target=self.target,
        )
