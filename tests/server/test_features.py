"""Feature levels as Kafka's clients see and change them: atomically, through any broker."""

from kafkaesque.broker.broker import Broker
from kafkaesque.server.edge import api_versions
from kafkaesque.server.handlers import update_features
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.server.test_cluster_admin import answered, session_of
from tests.sim.test_broker_world import broker_of, ready_world, wait

RAISE, LOWER, LOWER_AND_LOSE = 1, 2, 3


def asked(
    world: BrokerWorld,
    node: NodeId,
    *updates: tuple[str, int],
    kind: int = RAISE,
    validate_only: bool = False,
) -> UpdateFeaturesResponse:
    keys = tuple(
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level in updates
    )
    request = UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)
    return answered(world, update_features.handle(request, 1, session_of(world, node)))


def finalized(broker: Broker) -> dict[str, int]:
    return {
        one.name: one.max_version_level
        for one in api_versions.answer((), broker).finalized_features
    }


def test_api_versions_lists_supported_and_finalised_features() -> None:
    broker = broker_of(ready_world(3), 2)
    answer = api_versions.answer((), broker)
    ranges = {one.name: (one.min_version, one.max_version) for one in answer.supported_features}
    assert ranges == broker.supports
    assert all(first > 0 for first, _ in ranges.values()), "older Java clients fail at 0"
    assert finalized(broker) == {name: last for name, (_, last) in ranges.items()}
    assert answer.finalized_features_epoch == 1


def test_a_level_whose_lowering_loses_nothing_can_be_changed_through_any_broker() -> None:
    world = ready_world(3)
    update = ("transaction.version", 1)
    assert asked(world, 2, update).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert asked(world, 2, update, kind=LOWER).error_code == ErrorCode.NONE
    wait(world, lambda: all(finalized(broker_of(world, n))[update[0]] == 1 for n in (1, 2, 3)))
    answer = asked(world, 3, ("transaction.version", 2))
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE]
    wait(world, lambda: all(finalized(broker_of(world, n))[update[0]] == 2 for n in (1, 2, 3)))
    assert api_versions.answer((), broker_of(world, 1)).finalized_features_epoch == 3


def test_validating_changes_nothing() -> None:
    world = ready_world(3)
    answer = asked(world, 1, ("transaction.version", 1), kind=LOWER, validate_only=True)
    assert answer.error_code == ErrorCode.NONE
    assert finalized(broker_of(world, 1))["transaction.version"] == 2


def test_an_unknown_level_is_refused_and_nothing_else_is_changed() -> None:
    world = ready_world(3)
    answer = asked(world, 1, ("transaction.version", 1), ("group.version", 0), kind=LOWER)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert asked(world, 1, ("group.version", 9)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert asked(world, 1, ("kraft.version", 1)).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert finalized(broker_of(world, 1))["transaction.version"] == 2


def test_invalid_requests_are_refused() -> None:
    world = ready_world(3)
    update = ("transaction.version", 1)
    assert asked(world, 1).error_code == ErrorCode.INVALID_REQUEST
    assert asked(world, 1, update, update, kind=LOWER).error_code == ErrorCode.INVALID_REQUEST
    assert asked(world, 1, update, kind=LOWER_AND_LOSE).error_code == ErrorCode.INVALID_REQUEST
