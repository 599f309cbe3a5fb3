"""JoinGroup: how members enter a classic group."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, NullableSince, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=11, name="JoinGroup", first=0, last=9, flexible_since=6)


@struct
class JoinGroupRequestProtocol:
    """One of `protocols` of JoinGroupRequest."""

    name: str
    metadata: bytes


@message(API)
class JoinGroupRequest:
    """A client asks to become a member of a classic group."""

    group_id: str
    session_timeout_ms: Int32
    rebalance_timeout_ms: Annotated[Int32, Since(1)] = -1
    member_id: str
    group_instance_id: Annotated[str | None, Since(5)] = None
    protocol_type: str
    protocols: tuple[JoinGroupRequestProtocol, ...]
    reason: Annotated[str | None, Since(8)] = None


@struct
class JoinGroupResponseMember:
    """One of `members` of JoinGroupResponse."""

    member_id: str
    group_instance_id: Annotated[str | None, Since(5)] = None
    metadata: bytes


@message(API)
class JoinGroupResponse:
    """The broker admits a member to a generation of the group."""

    throttle_time_ms: Annotated[Int32, Since(2)] = 0
    error_code: Int16
    generation_id: Int32 = -1
    protocol_type: Annotated[str | None, Since(7)] = None
    protocol_name: Annotated[str | None, NullableSince(7)]
    leader: str
    skip_assignment: Annotated[bool, Since(9)] = False
    member_id: str
    members: tuple[JoinGroupResponseMember, ...]
