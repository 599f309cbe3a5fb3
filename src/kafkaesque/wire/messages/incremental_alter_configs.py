"""IncrementalAlterConfigs: settings changed one by one."""

from kafkaesque.wire.kinds import Int8, Int16, Int32
from kafkaesque.wire.message import Api, message, struct

API = Api(key=44, name="IncrementalAlterConfigs", first=0, last=1, flexible_since=1)


@struct
class AlterableConfig:
    """One of `configs` of AlterConfigsResource."""

    name: str
    config_operation: Int8
    value: str | None


@struct
class AlterConfigsResource:
    """One of `resources` of IncrementalAlterConfigsRequest."""

    resource_type: Int8
    resource_name: str
    configs: tuple[AlterableConfig, ...]


@message(API)
class IncrementalAlterConfigsRequest:
    """A client changes single settings."""

    resources: tuple[AlterConfigsResource, ...]
    validate_only: bool


@struct
class AlterConfigsResourceResponse:
    """One of `responses` of IncrementalAlterConfigsResponse."""

    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str


@message(API)
class IncrementalAlterConfigsResponse:
    """The broker says which resources were changed."""

    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...]
