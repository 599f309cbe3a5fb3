"""ApiVersions: which APIs this broker serves, in which versions."""

from collections.abc import Iterable

from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.message import Api
from kafkaesque.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FEATURES = {"group.version": 1, "transaction.version": 2}
"""What newer clients look for before they use it; each has been there from the first version on."""


def answer(served: Iterable[Api], error: ErrorCode = ErrorCode.NONE) -> ApiVersionsResponse:
    """List what is served; also the answer to a version of this request that we do not know."""
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
            SupportedFeatureKey(name=name, min_version=0, max_version=level)
            for name, level in FEATURES.items()
        ),
        finalized_features_epoch=0,
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in FEATURES.items()
        ),
    )
