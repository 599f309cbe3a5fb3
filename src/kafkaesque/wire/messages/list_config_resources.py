"""ListConfigResources: resources with settings. Version 0 was ListClientMetricsResources."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=74, name="ListConfigResources", first=0, last=1, flexible_since=0)


@message(API)
class ListConfigResourcesRequest:
    """A client asks which resources of some kinds have settings."""

    resource_types: Annotated[tuple[Int8, ...], Since(1)] = ()
    """All kinds if none is named."""


@struct
class ConfigResource:
    """One of `config_resources` of ListConfigResourcesResponse."""

    resource_name: str
    resource_type: Annotated[Int8, Since(1)] = 16


@message(API)
class ListConfigResourcesResponse:
    """The broker lists these resources."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    config_resources: tuple[ConfigResource, ...]
