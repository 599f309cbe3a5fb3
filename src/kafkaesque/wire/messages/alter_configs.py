"""AlterConfigs: settings replaced as a whole."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=33, name="AlterConfigs", first=0, last=2, flexible_since=2)


@struct
class AlterableConfig:
    """One of `configs` of AlterConfigsResource."""

    name: str
    value: str | None


@struct
class AlterConfigsResource:
    """One of `resources` of AlterConfigsRequest."""

    resource_type: Int8
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@message(API)
class AlterConfigsRequest:
    """A client replaces all settings of resources."""

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool


@struct
class AlterConfigsResourceResponse:
    """One of `responses` of AlterConfigsResponse."""

    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str


@message(API)
class AlterConfigsResponse:
    """The broker says which resources were changed."""

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
