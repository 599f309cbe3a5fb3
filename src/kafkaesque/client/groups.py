"""Groups, as an administrator sees and changes them, and offsets of consumer groups."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafkaesque.client.assignment import decode_assignment
from kafkaesque.client.errors import Refused, RefusedForNow
from kafkaesque.client.everyone import Everyone
from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import NOBODY, Router
from kafkaesque.client.topics import Place
from kafkaesque.types import NodeId, Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkaesque.wire.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkaesque.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkaesque.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafkaesque.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kafkaesque.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from kafkaesque.wire.messages.share_group_describe import (
    ShareGroupDescribeMember,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

_VERSION_MAX_BY_NAME = 9
"""OffsetCommit and OffsetFetch: later versions name topics by ids, which deleted topics lack."""

_OFFSETS_TOPIC = "__consumer_offsets"
_NO_OFFSET = -1
_NO_GENERATION = -1
_NO_MEMBER = ""
_DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One listed group; old brokers leave the state and the type empty."""

    group: str
    protocol_type: str
    state: str
    type: str = ""
    """`classic` if its members assign, `consumer` if its coordinator does; or `share`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberInfo:
    """One member of a group, and the partitions it reads."""

    member: str
    client: str
    host: str
    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupInfo:
    """One group and its members."""

    group: str
    state: str
    protocol: str
    members: tuple[MemberInfo, ...]
    is_share: bool = False
    """Whether its members read partitions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A group's position in a partition, and its metadata."""

    offset: Offset
    metadata: str


class Groups:
    """Queries and changes of groups; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def list(self, missing: set[NodeId] | None = None) -> Sequence[GroupListing]:
        """Return the groups of all available brokers, by name.

        Brokers that are away or do not answer are added to `missing`.
        """
        everyone = self._everyone()
        found = self._router.question(everyone.ask)
        if missing is not None:
            missing |= everyone.missing
        return _listings(found)

    def list_all(self) -> Sequence[GroupListing]:
        """Return all groups by name, even if brokers are away.

        Raises RefusedForNow if some could be missing: groups are unknown while their partition of
        `__consumer_offsets` has no leader.
        """
        everyone = self._everyone()
        before: dict[int, tuple[NodeId, int]] = {}

        def ask() -> Sequence[GroupListing]:
            nonlocal before
            known, before = before, self._leaders()
            if before != known:
                everyone.forget()  # earlier answers may be older than the change
            found = everyone.ask()
            leaders = self._leaders()
            silent = {NOBODY, *everyone.missing}
            # A broker that has become a leader meanwhile may have answered before it was.
            unheard = [p for p, led in leaders.items() if led[0] in silent or led != before.get(p)]
            if unheard:
                everyone.forget()  # their next leader knows more groups
                raise RefusedForNow(
                    f"partition {unheard[0]} of topic {_OFFSETS_TOPIC} has no leader that answers: "
                    "the positions of some groups are unknown",
                    ErrorCode.LEADER_NOT_AVAILABLE.name,
                )
            return _listings(found)

        return self._router.question(ask)

    def _everyone(self) -> Everyone[ListGroupsResponse]:
        def accept(said: ListGroupsResponse) -> None:
            check(said.error_code, "the groups")

        return Everyone(self._router, ListGroupsRequest(), ListGroupsResponse, accept)

    def _leaders(self) -> dict[int, tuple[NodeId, int]]:
        """Return the leaders and terms of the partitions that hold groups."""
        topic = first(self._router.metadata([_OFFSETS_TOPIC]).topics, f"topic {_OFFSETS_TOPIC}")
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return {}  # there has never been a group
        check(topic.error_code, f"topic {_OFFSETS_TOPIC}")
        found = sorted(topic.partitions, key=lambda one: one.partition_index)
        return {one.partition_index: (one.leader_id, one.leader_epoch) for one in found}

    def describe(self, group: str) -> GroupInfo:
        """Return one group; raises Refused if it does not exist."""
        request = DescribeGroupsRequest(groups=(group,))

        def ask() -> GroupInfo:
            said = self._router.ask_coordinator(group, request, DescribeGroupsResponse)
            one = first(said.groups, f"group {group}")
            if _is_missing(one.error_code, one.group_state):
                return self._describe_share(group)
            check(one.error_code, f"group {group}", one.error_message)
            return GroupInfo(
                group=group,
                state=one.group_state,
                protocol=one.protocol_data,
                members=tuple(_member(member) for member in one.members),
            )

        return self._router.question(ask)

    def _describe_share(self, group: str) -> GroupInfo:
        missing = ErrorCode.GROUP_ID_NOT_FOUND
        if not self._router.serves(ShareGroupDescribeRequest):
            raise Refused(f"group {group}: there is no such group", missing.name)
        request = ShareGroupDescribeRequest(group_ids=(group,))
        said = self._router.ask_coordinator(group, request, ShareGroupDescribeResponse)
        one = first(said.groups, f"group {group}")
        if _is_missing(one.error_code, one.group_state):
            raise Refused(f"group {group}: there is no such group", missing.name)
        check(one.error_code, f"group {group}", one.error_message)
        return GroupInfo(
            group=group,
            state=one.group_state,
            protocol=one.assignor_name,
            members=tuple(_share_member(member) for member in one.members),
            is_share=True,
        )

    def offsets(self, group: str) -> dict[Place, Offset]:
        """Return a group's committed offsets, of all its partitions."""
        return {place: one.offset for place, one in self.committed(group).items()}

    def committed(self, group: str) -> dict[Place, Committed]:
        """Return a group's committed offsets and metadata, of all its partitions."""
        asked = OffsetFetchRequestGroup(group_id=group, topics=None)
        request = OffsetFetchRequest(groups=(asked,), group_id=group, topics=None)

        def ask() -> dict[Place, Committed]:
            said = self._router.ask_coordinator(
                group, request, OffsetFetchResponse, version_max=_VERSION_MAX_BY_NAME
            )
            found = said.groups[0] if said.groups else said
            check(found.error_code, f"group {group}")
            committed = {}
            for topic in found.topics:
                for one in topic.partitions:
                    where = f"partition {one.partition_index} of topic {topic.name}"
                    check(one.error_code, f"group {group}, {where}")
                    if one.committed_offset != _NO_OFFSET:
                        committed[topic.name, one.partition_index] = Committed(
                            offset=one.committed_offset, metadata=one.metadata or ""
                        )
            return committed

        return self._router.question(ask)

    def commit(
        self,
        group: str,
        offsets: Mapping[Place, Offset],
        metadata: Mapping[Place, str] | None = None,
    ) -> None:
        """Set offsets of a group without members; the broker refuses if it has some.

        Committing the same offsets twice is harmless, so this is retried after a loss.
        """
        by_topic: defaultdict[str, list[OffsetCommitRequestPartition]] = defaultdict(list)
        noted = metadata or {}
        for (topic, partition), offset in offsets.items():
            by_topic[topic].append(
                OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_metadata=noted.get((topic, partition), ""),
                )
            )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=_NO_GENERATION,
            member_id=_NO_MEMBER,
            topics=tuple(
                OffsetCommitRequestTopic(name=topic, partitions=tuple(rows))
                for topic, rows in by_topic.items()
            ),
        )

        def ask() -> None:
            said = self._router.ask_coordinator(
                group, request, OffsetCommitResponse, version_max=_VERSION_MAX_BY_NAME
            )
            for topic in said.topics:
                for one in topic.partitions:
                    where = f"partition {one.partition_index} of topic {topic.name}"
                    check(one.error_code, f"group {group}, {where}")

        self._router.question(ask)

    def delete_offsets(self, group: str, places: Iterable[Place]) -> None:
        """Delete a group's offsets of these partitions."""
        by_topic: defaultdict[str, list[OffsetDeleteRequestPartition]] = defaultdict(list)
        for topic, partition in places:
            by_topic[topic].append(OffsetDeleteRequestPartition(partition_index=partition))
        request = OffsetDeleteRequest(
            group_id=group,
            topics=tuple(
                OffsetDeleteRequestTopic(name=topic, partitions=tuple(rows))
                for topic, rows in by_topic.items()
            ),
        )

        def ask() -> None:
            said = self._router.ask_coordinator(group, request, OffsetDeleteResponse)
            check(said.error_code, f"group {group}")
            for topic in said.topics:
                for one in topic.partitions:
                    where = f"partition {one.partition_index} of topic {topic.name}"
                    check(one.error_code, f"group {group}, {where}")

        self._router.question(ask)

    def delete(self, group: str) -> None:
        """Delete a group without members, and its offsets."""
        request = DeleteGroupsRequest(groups_names=(group,))

        def ask() -> None:
            said = self._router.ask_coordinator(group, request, DeleteGroupsResponse)
            one = first(said.results, f"group {group}")
            check(one.error_code, f"group {group}", is_change=True)

        self._router.change(ask)


def _listings(found: Iterable[ListGroupsResponse]) -> Sequence[GroupListing]:
    listings = [
        GroupListing(
            group=one.group_id,
            protocol_type=one.protocol_type,
            state=one.group_state,
            type=one.group_type,
        )
        for said in found
        for one in said.groups
    ]
    return sorted(listings, key=lambda one: one.group)


def _is_missing(code: int, state: str) -> bool:
    """Return whether there is no such group: older versions only say that it is dead."""
    return code == ErrorCode.GROUP_ID_NOT_FOUND or (code == ErrorCode.NONE and state == _DEAD)


def _share_member(member: ShareGroupDescribeMember) -> MemberInfo:
    return MemberInfo(
        member=member.member_id,
        client=member.client_id,
        host=member.client_host.lstrip("/"),
        places=tuple(
            (topic.topic_name, index)
            for topic in member.assignment.topic_partitions
            for index in topic.partitions
        ),
    )


def _member(member: DescribedGroupMember) -> MemberInfo:
    return MemberInfo(
        member=member.member_id,
        client=member.client_id,
        host=member.client_host.lstrip("/"),
        places=decode_assignment(member.member_assignment),
    )
