"""Heartbeat: how members of a classic group stay in it."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since
from kafkaesque.wire.message import Api, message

API = Api(key=12, name="Heartbeat", first=0, last=4, flexible_since=4)


@message(API)
class HeartbeatRequest:
    """A member reports that it is alive."""

    group_id: str
    generation_id: Int32
    member_id: str
    group_instance_id: Annotated[str | None, Since(3)] = None


@message(API)
class HeartbeatResponse:
    """The broker says whether the member's generation still holds."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
