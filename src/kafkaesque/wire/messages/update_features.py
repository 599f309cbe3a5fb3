"""UpdateFeatures: changes the cluster's feature levels."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since, Until
from kafkaesque.wire.message import Api, message, struct

API = Api(key=57, name="UpdateFeatures", first=0, last=2, flexible_since=0)


@struct
class FeatureUpdateKey:
    """One of `feature_updates` of UpdateFeaturesRequest."""

    feature: str
    max_version_level: Int16
    allow_downgrade: Annotated[bool, Until(0)] = False
    upgrade_type: Annotated[Int8, Since(1)] = 1


@message(API)
class UpdateFeaturesRequest:
    """A client changes feature levels."""

    timeout_ms: Int32 = 60_000
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: Annotated[bool, Since(1)] = False


@struct
class UpdatableFeatureResult:
    """One of `results` of UpdateFeaturesResponse."""

    feature: str
    error_code: Int16
    error_message: str | None


@message(API)
class UpdateFeaturesResponse:
    """The broker says whether the levels are in force; since version 2 all of them or none."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None
    results: Annotated[tuple[UpdatableFeatureResult, ...], Until(1)] = ()
