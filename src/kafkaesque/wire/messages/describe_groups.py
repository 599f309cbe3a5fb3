"""DescribeGroups: the state of classic groups."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=15, name="DescribeGroups", first=0, last=6, flexible_since=5)


@message(API)
class DescribeGroupsRequest:
    """A client asks for the state of classic groups."""

    groups: tuple[str, ...] = ()
    include_authorized_operations: Annotated[bool, Since(3)] = False


@struct
class DescribedGroupMember:
    """One of `members` of DescribedGroup."""

    member_id: str
    group_instance_id: Annotated[str | None, Since(4)] = None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


@struct
class DescribedGroup:
    """One of `groups` of DescribeGroupsResponse."""

    error_code: Int16
    error_message: Annotated[str | None, Since(6)] = None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: tuple[DescribedGroupMember, ...]
    authorized_operations: Annotated[Int32, Since(3)] = -(2**31)


@message(API)
class DescribeGroupsResponse:
    """The broker returns the state and members of groups."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    groups: tuple[DescribedGroup, ...]
