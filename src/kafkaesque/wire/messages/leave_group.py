"""LeaveGroup: how members leave a classic group."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since, Until
from kafkaesque.wire.message import Api, message, struct

API = Api(key=13, name="LeaveGroup", first=0, last=5, flexible_since=4)


@struct
class MemberIdentity:
    """One of `members` of LeaveGroupRequest."""

    member_id: str
    group_instance_id: str | None = None
    reason: Annotated[str | None, Since(5)] = None


@message(API)
class LeaveGroupRequest:
    """A client removes members from a classic group."""

    group_id: str
    members: Annotated[tuple[MemberIdentity, ...], Since(3)] = ()
    member_id: Annotated[str, Until(2)] = ""


@struct
class MemberResponse:
    """One of `members` of LeaveGroupResponse."""

    member_id: str
    group_instance_id: str | None
    error_code: Int16


@message(API)
class LeaveGroupResponse:
    """The broker says which members left."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    members: Annotated[tuple[MemberResponse, ...], Since(3)] = ()
