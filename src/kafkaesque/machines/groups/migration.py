"""How a group changes its kind while its members go on (KIP-848).

A classic group is *upgraded* when the first member joins that cannot assign: its generation becomes
the epoch, and its members keep what they read (`machines/groups/mixed_group.py` serves them after
that). It is *downgraded* when only classic members are left: its epoch becomes the generation,
without a leader, so that all join again. Numbers only rise, and offsets are independent of both.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from kafkaesque.machines.groups.assignors import DEFAULT
from kafkaesque.machines.groups.consumer_commands import Place, TopicsKnown
from kafkaesque.machines.groups.consumer_member import ConsumerMember
from kafkaesque.machines.groups.group_errors import GroupChangesKind, UnknownGroup
from kafkaesque.machines.groups.group_life import GroupLife
from kafkaesque.machines.groups.group_member import Member
from kafkaesque.machines.groups.group_records import (
    ClassicSaved,
    ConsumerGroupSaved,
    Generation,
    GroupKey,
    MemberKey,
    MemberSaved,
    to_record,
)
from kafkaesque.machines.groups.subscription import (
    CONSUMER,
    NamedPlaces,
    assigned_of,
    encode_assignment,
    subscription_of,
)
from kafkaesque.machines.machine import MachineRecord


def upgraded(
    group: GroupLife, topics: TopicsKnown
) -> tuple[ConsumerGroupSaved, list[ConsumerMember]]:
    """Return a classic group as one whose coordinator assigns.

    Raises UnknownGroup if its members' data cannot be decoded, and GroupChangesKind while their
    assignments are not known yet.
    """
    if group.protocol_type != CONSUMER:
        raise UnknownGroup("the members of this group are not consumers")
    generation = group.generation
    if not generation.is_assigned:
        raise GroupChangesKind("the members of this group are agreeing on what they read")
    members: list[ConsumerMember] = []
    taken: set[Place] = set()
    # Members missing from the group have left, or their sessions have expired.
    there = [saved for saved in generation.members if saved.member_id in group.members]
    for saved in there:
        places = _places(saved.assignment, topics) - taken
        taken |= places
        members.append(_upgraded(group.members[saved.member_id], places, generation.number))
    for index, saved in enumerate(there):
        # A cooperative member keeps reading what it had until it learns that it may not.
        said = subscription_of(group.members[saved.member_id].protocols[0].metadata)
        assert said is not None, "it was decoded a moment ago"
        kept = known_places(said.owned, topics) - taken
        taken |= kept
        members[index] = replace(members[index], revoking=kept)
    epoch = ConsumerGroupSaved(
        epoch=generation.number, assignor=DEFAULT, changed_ms=generation.changed_ms, topics=()
    )
    return epoch, members


def _upgraded(member: Member, places: frozenset[Place], epoch: int) -> ConsumerMember:
    said = subscription_of(member.protocols[0].metadata)
    if said is None:
        raise UnknownGroup("a member's subscription cannot be decoded")
    return ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        names=said.topics,
        epoch=epoch,
        assigned=places,
        target=places,
        classic=ClassicSaved(
            session_timeout_ms=member.session_timeout_ms,
            protocols=tuple((one.name, one.metadata) for one in member.protocols),
        ),
    )


def _places(assignment: bytes, topics: TopicsKnown) -> frozenset[Place]:
    named = assigned_of(assignment)
    if named is None:
        raise UnknownGroup("a member's assignment cannot be decoded")
    return known_places(named, topics)


def known_places(named: NamedPlaces, topics: TopicsKnown) -> frozenset[Place]:
    """Return partitions by their topic ids, without those of topics that are gone."""
    found = ((topics.saved(name), index) for name, index in named)
    return frozenset((topic.topic_id, index) for topic, index in found if topic is not None)


def named_assignment(places: Iterable[Place], saved: ConsumerGroupSaved) -> bytes:
    """Return an assignment as sent to classic members."""
    names = {topic.topic_id: topic.name for topic in saved.topics}
    by_name: defaultdict[str, list[int]] = defaultdict(list)
    for topic_id, index in sorted(places):
        if topic_id in names:
            by_name[names[topic_id]].append(index)
    return encode_assignment(by_name)


def downgraded(
    name: str,
    saved: ConsumerGroupSaved,
    before: Iterable[str],
    members: Mapping[str, ConsumerMember],
    now_ms: int,
) -> list[MachineRecord]:
    """Return the records that make a group classic; `before` are all members it had.

    Members are deleted before their group changes: if a crash cuts this short, none comes back.
    """
    protocol = common_protocols(members.values())[0]
    generation = Generation(
        number=saved.epoch,
        protocol_type=CONSUMER,
        protocol=protocol,
        leader="",
        is_assigned=True,
        changed_ms=now_ms,
        members=tuple(_downgraded(one, protocol, saved) for one in members.values()),
    )
    gone = [to_record(MemberKey(name, member_id), None) for member_id in before]
    return [*gone, to_record(GroupKey(name), generation)]


def _downgraded(member: ConsumerMember, protocol: str, saved: ConsumerGroupSaved) -> MemberSaved:
    assert member.classic is not None
    return MemberSaved(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        metadata=dict(member.classic.protocols)[protocol],
        assignment=named_assignment(member.assigned | member.revoking, saved),
    )


def common_protocols(members: Iterable[ConsumerMember]) -> list[str]:
    """Return the protocols that all classic members know, in the first member's order."""
    known = [
        [name for name, _ in one.classic.protocols] for one in members if one.classic is not None
    ]
    return [name for name in known[0] if all(name in names for names in known)] if known else []
