"""A consumer group as it will be once the current decision is written."""

from collections.abc import Callable, Collection, Mapping
from itertools import chain

from msgspec.structs import replace

from kafkaesque.machines.groups.assigned_group import member_records, topics_bytes
from kafkaesque.machines.groups.assignors import ASSIGNORS, Candidate, chosen_assignor
from kafkaesque.machines.groups.consumer_member import ConsumerMember
from kafkaesque.machines.groups.consumer_topics import TopicFinder
from kafkaesque.machines.groups.group_records import (
    ConsumerGroupSaved,
    GroupKey,
    MemberKey,
    TopicSaved,
    to_record,
)
from kafkaesque.machines.machine import MachineRecord


class Draft:
    """Changes to a group and its members that become records; the group itself stays as it is."""

    def __init__(
        self,
        name: str,
        members: Mapping[str, ConsumerMember],
        saved: ConsumerGroupSaved | None,
        first_epoch: int,
    ) -> None:
        self._name = name
        self._before = members
        self._saved = saved
        self._saved_before = saved
        self._first_epoch = first_epoch
        self.members = dict(members)

    @property
    def epoch(self) -> int:
        """The group's epoch."""
        return self._first_epoch if self._saved is None else self._saved.epoch

    @property
    def bytes(self) -> int:
        """The approximate memory that the group will take."""
        return topics_bytes(self._saved) + sum(one.bytes for one in self.members.values())

    def put(self, member: ConsumerMember) -> None:
        """Set a member."""
        self.members[member.member_id] = member

    def remove(self, member_id: str) -> None:
        """Remove a member."""
        self.members.pop(member_id, None)

    def copy(self) -> "Draft":
        """Return an independent copy of the draft."""
        copied = Draft(self._name, self._before, self._saved_before, self._first_epoch)
        copied.become(self)
        return copied

    def become(self, other: "Draft") -> None:
        """Take over another draft of the same group."""
        self.members, self._saved = dict(other.members), other._saved

    def retarget(
        self,
        finder: TopicFinder,
        topic: Callable[[str], TopicSaved | None],
        existing: Collection[str],
        now_ms: int,
    ) -> None:
        """Start the next epoch: compute from the current topics which member reads what."""
        wanted = finder.all_found(self.members.values(), existing)
        topics = [topic(name) for name in sorted(set(chain(*wanted)))]
        known = {one.name: one for one in topics if one is not None}
        assignor = chosen_assignor([one.assignor for one in self.members.values()])
        shares = ASSIGNORS[assignor](
            [
                Candidate(
                    member_id=member.member_id,
                    rank=member.instance_id or member.member_id,
                    topics={known[name].topic_id for name in names},
                    before=member.target,
                )
                for member, names in zip(self.members.values(), wanted, strict=True)
            ],
            {one.topic_id: one.partitions for one in known.values()},
        )
        for member_id, share in shares.items():
            member = self.members[member_id]
            if share != member.target:
                self.members[member_id] = replace(member, target=frozenset(share))
        self._saved = ConsumerGroupSaved(
            epoch=self.epoch + 1,
            assignor=assignor,
            changed_ms=now_ms,
            topics=tuple(known.values()),
        )

    def records(self) -> list[MachineRecord]:
        """Return the records to write: the group first, then the members that changed."""
        records = []
        if self._saved is not self._saved_before and self._saved is not None:
            records.append(to_record(GroupKey(self._name), self._saved))
        gone = [member_id for member_id in self._before if member_id not in self.members]
        records += [to_record(MemberKey(self._name, member_id), None) for member_id in gone]
        records += member_records(self._name, self._before, self.members.values())
        return records
