"""DeleteAcls: deletes access rules."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=31, name="DeleteAcls", first=1, last=3, flexible_since=2)


@struct
class DeleteAclsFilter:
    """One of `filters` of DeleteAclsRequest."""

    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8 = 3
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


@message(API)
class DeleteAclsRequest:
    """A client deletes the access rules that match patterns."""

    filters: tuple[DeleteAclsFilter, ...]


@struct
class DeleteAclsMatchingAcl:
    """One of `matching_acls` of DeleteAclsFilterResult."""

    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str
    pattern_type: Int8 = 3
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@struct
class DeleteAclsFilterResult:
    """One of `filter_results` of DeleteAclsResponse."""

    error_code: Int16
    error_message: str | None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...]


@message(API)
class DeleteAclsResponse:
    """The broker lists the access rules that were deleted."""

    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...]
