"""ApiVersions: the first request of almost every connection."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since, Tag
from kafkaesque.wire.message import Api, message, struct

API = Api(key=18, name="ApiVersions", first=0, last=4, flexible_since=3)


@message(API)
class ApiVersionsRequest:
    """A client asks which APIs and versions the broker serves."""

    client_software_name: Annotated[str, Since(3)] = ""
    client_software_version: Annotated[str, Since(3)] = ""


@struct
class ApiVersion:
    """One of `api_keys` of ApiVersionsResponse."""

    api_key: Int16
    min_version: Int16
    max_version: Int16


@struct
class SupportedFeatureKey:
    """One of `supported_features` of ApiVersionsResponse."""

    name: str
    min_version: Int16
    max_version: Int16


@struct
class FinalizedFeatureKey:
    """One of `finalized_features` of ApiVersionsResponse."""

    name: str
    max_version_level: Int16
    min_version_level: Int16


@message(API)
class ApiVersionsResponse:
    """The broker lists the APIs and versions that it serves."""

    error_code: Int16
    api_keys: tuple[ApiVersion, ...]
    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    supported_features: Annotated[tuple[SupportedFeatureKey, ...], Tag(0), Since(3)] = ()
    finalized_features_epoch: Annotated[Int64, Tag(1), Since(3)] = -1
    finalized_features: Annotated[tuple[FinalizedFeatureKey, ...], Tag(2), Since(3)] = ()
    zk_migration_ready: Annotated[bool, Tag(3), Since(3)] = False
