"""ApiVersions: which APIs this broker serves, and the feature levels of its cluster.

Newer clients check `group.version` and `transaction.version` before they use the features behind
them. No lowest level is 0: Java clients before 3.9 fail on that.
"""

from collections.abc import Iterable

from kafkaesque.broker.broker import Broker
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.message import Api
from kafkaesque.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)


def answer(
    served: Iterable[Api], broker: Broker, error: ErrorCode = ErrorCode.NONE
) -> ApiVersionsResponse:
    """List the served APIs; also the response to an unknown version of this request."""
    finalized = broker.catalog.finalized
    return ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            ApiVersion(
                api_key=api.key,
                min_version=api.first if api.advertised_first is None else api.advertised_first,
                max_version=api.last,
            )
            for api in served
        ),
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=first, max_version=last)
            for name, (first, last) in broker.supports.items()
        ),
        finalized_features_epoch=finalized.epoch,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in finalized.levels.items()
        ),
    )
