"""Finds the broker to ask, and retries while that can help.

What is known of the cluster comes from Metadata, and is forgotten whenever an answer shows that it
was outdated. Only addresses are kept, and a broker that could not help is asked last the next time:
it may be cut off from the rest of its cluster. A query is retried after every loss. A change is
retried only if the broker said that nothing was done: after a lost response the outcome is unknown,
and that is raised.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkaesque.client.address import Address
from kafkaesque.client.blocking_connection import BlockingConnection
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import ConnectionLost, RefusedForNow, Unreachable
from kafkaesque.client.refusals import check
from kafkaesque.clock import Clock
from kafkaesque.errors import OutcomeUnknown
from kafkaesque.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

R = TypeVar("R")
T = TypeVar("T")

NOBODY = -1
ADDRESSES_MAX = 100
"""Addresses kept besides those of the bootstrap: brokers come and go."""

_GROUP = 0
_TRANSACTION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a client takes from its machine: clock, randomness and sleep."""

    clock: Clock
    chance: random.Random
    sleep: Callable[[float], None]


@dataclass(slots=True, kw_only=True)
class _Known:
    """The known part of the cluster."""

    brokers: Mapping[int, Address] = field(default_factory=dict)
    controller: int = NOBODY
    leaders: dict[tuple[str, int], int] = field(default_factory=dict)
    coordinators: dict[tuple[int, str], int] = field(default_factory=dict)


class Router:
    """Every broker of one cluster, for one thread."""

    def __init__(
        self, bootstrap: Sequence[Address], config: ClientConfig, around: Surroundings
    ) -> None:
        self.config = config
        self._bootstrap = frozenset(bootstrap)
        self._addresses = list(dict.fromkeys(bootstrap))  # the next one to ask comes first
        self._around = around
        self._connections: dict[Address, BlockingConnection] = {}
        self._known = _Known()
        self._was_reached = False
        self._deadline_ms = 0

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- retries ---------------------------------------------------------------------------------

    def question(self, ask: Callable[[], T]) -> T:
        """Retry a repeatable request until it succeeds or the deadline passes."""
        return self._persist(ask, is_change=False)

    def once(self, ask: Callable[[], T]) -> T:
        """Send a request once: any error is the answer."""
        self._deadline_ms = self._around.clock.monotonic_ms() + self.config.deadline_ms
        return ask()

    def change(self, ask: Callable[[], T]) -> T:
        """Make a change at most once; raises OutcomeUnknown if it may or may not be done."""
        return self._persist(ask, is_change=True)

    def _persist(self, ask: Callable[[], T], *, is_change: bool) -> T:
        clock, config = self._around.clock, self.config
        self._deadline_ms = clock.monotonic_ms() + config.deadline_ms
        pause_ms = config.backoff_ms_min
        told: RefusedForNow | None = None
        # Ends: every turn waits, and the deadline passes.
        while True:
            try:
                return ask()
            except Unreachable as error:
                if not self._was_reached:
                    raise  # most likely the address is wrong: fail at once
                problem: Exception = error
            except ConnectionLost as error:
                if is_change:
                    raise OutcomeUnknown(f"{error}: it may or may not have been done") from error
                problem = error
            except RefusedForNow as error:
                problem = told = error
            self._known = _Known()
            self._addresses.append(self._addresses.pop(0))  # the last one asked may be cut off
            wait_ms = pause_ms // 2 + self._around.chance.randrange(pause_ms // 2 + 1)
            if clock.monotonic_ms() + wait_ms >= self._deadline_ms:
                # A refusal is the reason; another broker's silence adds little to it.
                raise told or problem
            self._around.sleep(wait_ms / 1000)
            pause_ms = min(2 * pause_ms, config.backoff_ms_max)

    # --- which broker ----------------------------------------------------------------------------

    def ask_any(self, request: Any, response: type[R], *, version_max: int | None = None) -> R:
        """Ask any broker."""
        return self._call(self._any(), request, response, version_max)

    def serves(self, request: type[Any]) -> bool:
        """Return whether some broker serves the API of a request, in a version that we know."""
        return self._any().serves(request)

    def ask_node(
        self, node: int, request: Any, response: type[R], *, version_max: int | None = None
    ) -> R:
        """Ask the broker with this id."""
        return self._call(self.connection(node), request, response, version_max)

    def connection(self, node: int) -> BlockingConnection:
        """Return the connection to the broker with this id."""
        address = self._brokers().get(node)
        if address is None:
            raise RefusedForNow(f"broker {node} is not known", "BROKER_NOT_AVAILABLE")
        return self._connected(address)

    def answer_deadline_ms(self) -> int:
        """Return the deadline for answers to requests sent now."""
        now_ms = self._around.clock.monotonic_ms()
        return min(self._deadline_ms, now_ms + self.config.request_ms_max)

    def elapsed_ms(self) -> int:
        """Return how long the current request has been tried."""
        return self._around.clock.monotonic_ms() - self._deadline_ms + self.config.deadline_ms

    def ask_controller(self, request: Any, response: type[R]) -> R:
        """Ask the controller, which changes topics."""
        self._brokers()
        if self._known.controller == NOBODY:
            return self.ask_any(request, response)
        return self.ask_node(self._known.controller, request, response)

    def ask_coordinator(
        self, group: str, request: Any, response: type[R], *, version_max: int | None = None
    ) -> R:
        """Ask the coordinator of a group."""
        node = self._coordinator(_GROUP, group)
        return self.ask_node(node, request, response, version_max=version_max)

    def ask_transaction_coordinator(
        self, transactional_id: str, request: Any, response: type[R]
    ) -> R:
        """Ask the coordinator of a transactional id."""
        return self.ask_node(self._coordinator(_TRANSACTION, transactional_id), request, response)

    def _coordinator(self, kind: int, key: str) -> int:
        node = self._known.coordinators.get((kind, key))
        if node is None:
            node = self._known.coordinators[kind, key] = self._find_coordinator(kind, key)
        return node

    def nodes(self) -> list[int]:
        """Return the ids of all brokers."""
        return sorted(self._brokers())

    def leader(self, topic: str, partition: int) -> int:
        """Return the broker that leads a partition."""
        node = self._known.leaders.get((topic, partition))
        if node is None:
            self.metadata([topic])
            node = self._known.leaders.get((topic, partition), NOBODY)
        if node == NOBODY:
            raise RefusedForNow(
                f"partition {partition} of topic {topic} has no leader", "LEADER_NOT_AVAILABLE"
            )
        return node

    def metadata(
        self,
        topics: Sequence[str] | None,
        *,
        is_newest: bool = False,
        may_create: bool = False,
    ) -> MetadataResponse:
        """Fetch and cache the metadata of these topics, or of all if None.

        Missing topics are created only if `may_create` and the broker does that. Any broker is
        asked, which may lag behind; with `is_newest` only the controller is.
        """
        wanted = None if topics is None else tuple(MetadataRequestTopic(name=t) for t in topics)
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=may_create)
        ask = self.ask_controller if is_newest else self.ask_any
        said = self._look_up(ask, request, MetadataResponse)
        check(said.error_code, "the cluster")
        self._known.brokers = {b.node_id: Address(host=b.host, port=b.port) for b in said.brokers}
        self._keep(self._known.brokers.values())
        self._known.controller = said.controller_id
        for topic in said.topics:
            if topic.name is not None:
                for one in topic.partitions:
                    self._known.leaders[topic.name, one.partition_index] = one.leader_id
        return said

    def _look_up(self, ask: Callable[[Any, type[R]], R], request: Any, response: type[R]) -> R:
        """Make a query that precedes a request: a loss here leaves no doubt about the request."""
        try:
            return ask(request, response)
        except ConnectionLost as error:
            raise Unreachable(str(error)) from error

    def _brokers(self) -> Mapping[int, Address]:
        if not self._known.brokers:
            self.metadata([])
        return self._known.brokers

    def _find_coordinator(self, kind: int, key: str) -> int:
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=(key,))
        said = self._look_up(self.ask_any, request, FindCoordinatorResponse)
        found = said.coordinators[0] if said.coordinators else said
        what = "group" if kind == _GROUP else "transactional id"
        check(found.error_code, f"{what} {key}", found.error_message)
        self._known.brokers = {
            **self._brokers(),
            found.node_id: Address(host=found.host, port=found.port),
        }
        return found.node_id

    # --- connections -----------------------------------------------------------------------------

    def _any(self) -> BlockingConnection:
        problem: Unreachable | None = None
        for address in list(self._addresses):
            try:
                return self._connected(address)
            except Unreachable as error:
                problem = error
                self._addresses.append(self._addresses.pop(0))
        assert problem is not None, "there is at least one bootstrap address"
        raise problem

    def _keep(self, named: Iterable[Address]) -> None:
        """Keep the addresses that a broker named, to be tried right after that broker."""
        new = [address for address in named if address not in self._addresses]
        self._addresses[1:1] = new
        others = [address for address in self._addresses if address not in self._bootstrap]
        for address in others[ADDRESSES_MAX:]:
            self._addresses.remove(address)

    def _connected(self, address: Address) -> BlockingConnection:
        connection = self._connections.get(address)
        if connection is None or connection.is_closed:
            self._connections.pop(address, None)
            clock = self._around.clock
            connection = BlockingConnection.open(address, self.config, clock, self._deadline_ms)
            self._connections[address] = connection
            self._was_reached = True
        return connection

    def _call(
        self,
        connection: BlockingConnection,
        request: Any,
        response: type[R],
        version_max: int | None,
    ) -> R:
        deadline_ms = self.answer_deadline_ms()
        return connection.call(request, response, deadline_ms, version_max=version_max)
