"""SyncGroup: how assignments reach the members of a classic group."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=14, name="SyncGroup", first=0, last=5, flexible_since=4)


@struct
class SyncGroupRequestAssignment:
    """One of `assignments` of SyncGroupRequest."""

    member_id: str
    assignment: bytes


@message(API)
class SyncGroupRequest:
    """A member sends the leader's assignments, or asks for its own."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, Since(3)] = None
    protocol_type: Annotated[str | None, Since(5)] = None
    protocol_name: Annotated[str | None, Since(5)] = None
    assignments: tuple[SyncGroupRequestAssignment, ...]


@message(API)
class SyncGroupResponse:
    """The broker returns a member's assignment."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    protocol_type: Annotated[str | None, Since(5)] = None
    protocol_name: Annotated[str | None, Since(5)] = None
    assignment: bytes
