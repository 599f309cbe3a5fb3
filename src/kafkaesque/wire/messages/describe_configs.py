"""DescribeConfigs: the current settings."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=32, name="DescribeConfigs", first=1, last=4, flexible_since=4)


@struct
class DescribeConfigsResource:
    """One of `resources` of DescribeConfigsRequest."""

    resource_type: Int8
    resource_name: str
    configuration_keys: tuple[str, ...] | None = ()


@message(API)
class DescribeConfigsRequest:
    """A client asks for settings of topics, brokers or groups."""

    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = False
    include_documentation: Annotated[bool, Since(3)] = False


@struct
class DescribeConfigsSynonym:
    """One of `synonyms` of DescribeConfigsResourceResult."""

    name: str
    value: str | None
    source: Int8


@struct
class DescribeConfigsResourceResult:
    """One of `configs` of DescribeConfigsResult."""

    name: str
    value: str | None
    read_only: bool
    config_source: Int8 = -1
    is_sensitive: bool
    synonyms: tuple[DescribeConfigsSynonym, ...]
    config_type: Annotated[Int8, Since(3)] = 0
    documentation: Annotated[str | None, Since(3)] = None


@struct
class DescribeConfigsResult:
    """One of `results` of DescribeConfigsResponse."""

    error_code: Int16
    error_message: str | None
    resource_type: Int8
    resource_name: str
    configs: tuple[DescribeConfigsResourceResult, ...]


@message(API)
class DescribeConfigsResponse:
    """The broker lists settings, their values and their sources."""

    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...]
