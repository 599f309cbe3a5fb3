"""DeleteGroups: deletes groups."""

from kafkaesque.wire.kinds import Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=42, name="DeleteGroups", first=0, last=2, flexible_since=2)


@message(API)
class DeleteGroupsRequest:
    """A client deletes groups."""

    groups_names: tuple[str, ...] = ()


@struct
class DeletableGroupResult:
    """One of `results` of DeleteGroupsResponse."""

    group_id: str
    error_code: Int16


@message(API)
class DeleteGroupsResponse:
    """The broker says which groups were deleted."""

    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...]
