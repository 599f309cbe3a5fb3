"""ApiVersions: which APIs this broker serves, and at which levels its cluster works.

Newer clients look for `group.version` and `transaction.version` before they use what came with
them. No lowest level is 0: Java clients before 3.9 break off at that.
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
    """List what is served; also the answer to a version of this request that we do not know."""
    finalized = broker.catalog.finalized
    return ApiVersionsResponse(
        error_code=error,
        api_keys=tuple(
            ApiVersion(
                api_key=api.key,
                min_version=api.first if api.advertised_first is None else api.advertised_first,
                max_version=api.last,
            )
            for api in sorted(served, key=lambda api: api.key)
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
