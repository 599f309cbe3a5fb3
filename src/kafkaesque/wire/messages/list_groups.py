"""ListGroups: the groups of a coordinator."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=16, name="ListGroups", first=0, last=5, flexible_since=3)


@message(API)
class ListGroupsRequest:
    """A client asks for the groups that a broker coordinates."""

    states_filter: Annotated[tuple[str, ...], Since(4)] = ()
    types_filter: Annotated[tuple[str, ...], Since(5)] = ()


@struct
class ListedGroup:
    """One of `groups` of ListGroupsResponse."""

    group_id: str
    protocol_type: str
    group_state: Annotated[str, Since(4)] = ""
    group_type: Annotated[str, Since(5)] = ""


@message(API)
class ListGroupsResponse:
    """The broker lists the groups that it coordinates."""

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Int16
    groups: tuple[ListedGroup, ...]
