"""Operators who change broker settings during faults, and the invariants of these changes.

Each change has a unique value, so that the end shows which was the last.
"""

from functools import partial

from kafkaesque.broker.broker import Broker
from kafkaesque.errors import KafkaesqueError, OutcomeUnknown
from kafkaesque.machines.catalog.broker_settings import ALL_BROKERS
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation
from kafkaesque.types import NodeId

KIND = "settings"
NAME = "groups.offsets_retention_ms"
"""The setting to change: nothing in a world waits that long."""

_FIRST_VALUE = 7 * 24 * 3600 * 1000
_PAUSE = 60


class _Change:
    """One requested change."""

    __slots__ = ("begun", "ended", "is_refused", "node", "value")

    def __init__(self, node: NodeId, value: int, begun: int) -> None:
        self.node = node
        self.value = value
        self.begun = begun
        self.ended: int | None = None
        """When it was acknowledged."""
        self.is_refused = False


class Setters:
    """Changes the setting, for one broker or for all, through any broker."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = world.chance
        self._changes: list[_Change] = []
        self._is_stopped = KIND not in world.settings.faults

    def begin(self) -> None:
        """Start to change settings, if this world is about that."""
        if not self._is_stopped:
            self._world.schedule(_PAUSE, self._happen)

    def stop(self) -> None:
        """Change nothing more."""
        self._is_stopped = True

    def _happen(self) -> None:
        if self._is_stopped:
            return
        self._world.schedule(1 + self._chance.randrange(2 * _PAUSE), self._happen)
        able = self._world.able()
        if able:
            self._world.ask_broker(self._chance.choice(able), self._set)

    def _set(self, broker: Broker) -> None:
        node = self._chance.choice([ALL_BROKERS, *broker.catalog.brokers])
        change = _Change(node, _FIRST_VALUE + len(self._changes), self._world.clock.monotonic_ms())
        self._changes.append(change)
        broker.set_broker_settings(node, {NAME: str(change.value)}, partial(self._answered, change))

    def _answered(self, change: _Change, error: KafkaesqueError | None) -> None:
        if error is None:
            change.ended = self._world.clock.monotonic_ms()
            self._world.count("settings changed")
        elif not isinstance(error, OutcomeUnknown):
            change.is_refused = True

    def check_end(self) -> None:
        """All brokers know the last value set and apply it where they should; raises Violation."""
        for node in {change.node for change in self._changes}:
            self._check_last(node)
        for machine in self._world.nodes.values():
            broker = machine.broker
            assert broker is not None
            held = broker.config.groups.offsets_retention_ms
            own = self._known(broker, broker.node) or self._known(broker, ALL_BROKERS)
            if held != (own or broker.live.static.groups.offsets_retention_ms):
                raise Violation(f"broker {broker.node} holds {held}, and {own} is set for it")

    def _check_last(self, node: NodeId) -> None:
        asked = [change for change in self._changes if change.node == node]
        for machine in self._world.nodes.values():
            assert machine.broker is not None
            value = self._known(machine.broker, node)
            found = next((c for c in asked if c.value == value and not c.is_refused), None)
            done = [change for change in asked if change.ended is not None]
            if found is None and (value is not None or done):
                raise Violation(f"{value} is set for broker {node}, but was never requested")
            for later in done:
                if found and found.ended is not None and later.begun > found.ended:
                    raise Violation(f"{later.value} was set for broker {node} after {value}")

    @staticmethod
    def _known(broker: Broker, node: NodeId) -> int | None:
        texts = broker.committed_catalog.machine.broker_settings.get(node, {})
        return int(texts[NAME]) if NAME in texts else None
