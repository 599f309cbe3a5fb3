"""DescribeAcls: the existing access rules."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=29, name="DescribeAcls", first=1, last=3, flexible_since=2)


@message(API)
class DescribeAclsRequest:
    """A client asks for the access rules that match a pattern."""

    resource_type_filter: Int8
    resource_name_filter: str | None
    pattern_type_filter: Int8 = 3
    principal_filter: str | None
    host_filter: str | None
    operation: Int8
    permission_type: Int8


@struct
class AclDescription:
    """One of `acls` of DescribeAclsResource."""

    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@struct
class DescribeAclsResource:
    """One of `resources` of DescribeAclsResponse."""

    resource_type: Int8
    resource_name: str
    pattern_type: Int8 = 3
    acls: tuple[AclDescription, ...]


@message(API)
class DescribeAclsResponse:
    """The broker lists the access rules that match."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    resources: tuple[DescribeAclsResource, ...]
