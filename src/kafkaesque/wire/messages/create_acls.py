"""CreateAcls: creates access rules."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=30, name="CreateAcls", first=1, last=3, flexible_since=2)


@struct
class AclCreation:
    """One of `creations` of CreateAclsRequest."""

    resource_type: Int8
    resource_name: str
    resource_pattern_type: Int8 = 3
    principal: str
    host: str
    operation: Int8
    permission_type: Int8


@message(API)
class CreateAclsRequest:
    """A client creates access rules."""

    creations: tuple[AclCreation, ...]


@struct
class AclCreationResult:
    """One of `results` of CreateAclsResponse."""

    error_code: Int16
    error_message: str | None


@message(API)
class CreateAclsResponse:
    """The broker says which access rules were created."""

    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...]
