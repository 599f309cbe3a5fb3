"""How long a run takes on two otherwise idle cores, as measured on such a machine."""

from collections.abc import Sequence

from bench.field.measuring import FAILOVER_SECONDS, IDLE_SECONDS
from bench.field.system import Durability, Variant
from bench.field.touching import ASIDE_BYTES, stored_bytes
from bench.field.workload import MIB, Kind, Plan, Workload

START_SECONDS = {"kafkaesque": 1.5, "kafka": 8.0, "rabbitmq": 9.0, "activemq": 6.0}
"""Including preparation and stopping; other systems start at once."""
CLUSTER_START_SECONDS = {"kafkaesque": 4.0, "kafka": 20.0}
_OTHER_START_SECONDS = 0.5
_OTHER_CLUSTER_START_SECONDS = 4.0
_DRIVER_SECONDS = 0.3
"""To create a topic and start the driver, for each workload."""
_SYNC_FACTOR = 1.5
"""Messages still waiting when a producer stops take longer if each is synced."""
_STORED_BYTES_PER_SECOND = 250 * MIB
_TOUCHED_BYTES_PER_SECOND = 500 * MIB
_PAUSE_SECONDS = {"kafka": 9.0}
"""How long a dead leader is missed beyond the time in which messages are sent anyway."""


def expected_seconds(plan: Plan, variants: Sequence[Variant]) -> float:
    """Return how long a plan takes with these variants."""
    return sum(
        _start_seconds(variant)
        + IDLE_SECONDS
        + 2 * plan.warm_up_seconds
        + sum(_seconds(plan, variant, one) for one in plan.for_variant(variant, number))
        for number in range(plan.rounds)
        for variant in variants
    )


def _system(variant: Variant) -> str:
    return variant.name.partition("-")[0]


def _start_seconds(variant: Variant) -> float:
    if variant.brokers > 1:
        return CLUSTER_START_SECONDS.get(_system(variant), _OTHER_CLUSTER_START_SECONDS)
    return START_SECONDS.get(_system(variant), _OTHER_START_SECONDS)


def _seconds(plan: Plan, variant: Variant, workload: Workload) -> float:
    factor = _SYNC_FACTOR if variant.durability is Durability.ALWAYS else 1.0
    match workload.kind:
        case Kind.THROUGHPUT | Kind.FAN_OUT:
            taken = 2 * plan.seconds * factor
        case Kind.LATENCY:
            taken = 1.1 * plan.latency_seconds + _DRIVER_SECONDS
        case Kind.CATCH_UP:
            taken = 3 * plan.seconds
        case Kind.REPLAY:
            taken = plan.seconds
        case Kind.TAIL:
            taken = workload.stored_bytes / _STORED_BYTES_PER_SECOND
        case Kind.FAILOVER:
            taken = FAILOVER_SECONDS + _PAUSE_SECONDS.get(_system(variant), 0.0)
    return (
        taken
        + _DRIVER_SECONDS
        + _touched_bytes(plan, variant, workload) / _TOUCHED_BYTES_PER_SECOND
    )


def _touched_bytes(plan: Plan, variant: Variant, workload: Workload) -> int:
    stored = stored_bytes(plan, workload) * variant.brokers
    match workload.kind:
        case Kind.TAIL | Kind.FAILOVER:
            return 0
        case Kind.LATENCY | Kind.REPLAY:
            return stored + ASIDE_BYTES
        case _:
            return stored + 2 * ASIDE_BYTES
