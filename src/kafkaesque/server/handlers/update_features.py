"""UpdateFeatures: the cluster works at other levels from now on; all change, or none."""

from functools import partial

from kafkaesque.errors import InvalidRequest, KafkaesqueError
from kafkaesque.machines.features import finalize
from kafkaesque.server.errors import code_of, message_of
from kafkaesque.server.session import Session
from kafkaesque.server.waiting import carried_out
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE = 1, 2
"""Kafka's third kind loses what was written at the higher level; there is none here."""

FEATURES_MAX = 100


async def handle(
    request: UpdateFeaturesRequest, version: int, session: Session
) -> UpdateFeaturesResponse:
    """Finalise the levels, or say why not; to validate only is to decide and not to write."""
    code, message = ErrorCode.NONE, None
    try:
        await _update(request, session)
    except KafkaesqueError as error:
        code, message = code_of(error), message_of(error)
    return UpdateFeaturesResponse(
        error_code=code,
        error_message=message,
        results=tuple(
            UpdatableFeatureResult(feature=one.feature, error_code=code, error_message=message)
            for one in request.feature_updates
        ),
    )


async def _update(request: UpdateFeaturesRequest, session: Session) -> None:
    updates = request.feature_updates
    levels = {one.feature: one.max_version_level for one in updates}
    if not updates or len(levels) != len(updates) or len(updates) > FEATURES_MAX:
        raise InvalidRequest(f"name 1 to {FEATURES_MAX} features, each of them once")
    lowered = [one for one in updates if _may_lower(one)]
    if lowered and len(lowered) != len(updates):
        raise InvalidRequest("features are raised or lowered, not both at a time")
    broker = session.broker
    catalog = broker.catalog
    can_lower = bool(lowered)
    finalize(catalog.finalized, catalog.brokers.values(), levels, can_lower=can_lower)
    if not request.validate_only:
        await carried_out(partial(broker.finalize_features, levels, can_lower=can_lower))


def _may_lower(update: FeatureUpdateKey) -> bool:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE):
        raise InvalidRequest(f"{update.feature} is not lowered where that loses what was written")
    return update.allow_downgrade or update.upgrade_type == SAFE_DOWNGRADE
