"""UpdateFeatures: change the cluster's feature levels, all or none."""

from functools import partial

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.features import finalize
from kafkaesque.server.requests.callback_waits import carried_out
from kafkaesque.server.requests.errors import InvalidRequest, code_of, message_of
from kafkaesque.server.requests.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE = 1, 2
"""Kafka's third kind, unsafe downgrade, would lose data written at the higher level."""

FEATURES_MAX = 100


async def handle(
    request: UpdateFeaturesRequest, version: int, session: Session
) -> UpdateFeaturesResponse:
    """Finalize the levels, or report the error; with `validate_only`, check without writing."""
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
        raise InvalidRequest(f"name 1 to {FEATURES_MAX} features, each once")
    lowered = [one for one in updates if _may_lower(one)]
    if lowered and len(lowered) != len(updates):
        raise InvalidRequest("raise features or lower them, not both at once")
    broker = session.broker
    catalog = broker.catalog
    can_lower = bool(lowered)
    finalize(catalog.finalized, catalog.brokers.values(), levels, can_lower=can_lower)
    if not request.validate_only:
        await carried_out(partial(broker.finalize_features, levels, can_lower=can_lower))


def _may_lower(update: FeatureUpdateKey) -> bool:
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE):
        raise InvalidRequest(f"{update.feature} cannot be lowered where that loses data")
    return update.allow_downgrade or update.upgrade_type == SAFE_DOWNGRADE
