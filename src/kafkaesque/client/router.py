"""Finds the broker that must be asked, and asks again while that can help.

What is known of the cluster comes from Metadata and is forgotten whenever an answer shows that it
was old. Only addresses are kept, and whoever could not help is the last to be asked again: it may
be cut off from the rest of its cluster. A question is repeated after every loss. A change is
repeated only when the broker said that nothing was done: a change whose answer was lost has an
unknown outcome, and that is said.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafkaesque.client.address import Address
from kafkaesque.client.blocking import BlockingConnection
from kafkaesque.client.refusals import check
from kafkaesque.clock import Clock
from kafkaesque.config import ClientConfig
from kafkaesque.errors import ConnectionLost, OutcomeUnknown, RefusedForNow, Unreachable
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
"""Addresses that are kept besides those of the bootstrap: brokers come and go."""

_GROUP = 0
_TRANSACTION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a client takes from its machine: clock, chance, and how to wait some seconds."""

    clock: Clock
    chance: random.Random
    sleep: Callable[[float], None]


@dataclass(slots=True, kw_only=True)
class _Known:
    """The cluster, as far as it was asked for."""

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
        self._addresses = list(dict.fromkeys(bootstrap))  # whom to ask next comes first
        self._around = around
        self._connections: dict[Address, BlockingConnection] = {}
        self._known = _Known()
        self._was_reached = False
        self._deadline_ms = 0

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- asking again ----------------------------------------------------------------------------

    def question(self, ask: Callable[[], T]) -> T:
        """Do what can be done twice, until it is done or the deadline has passed."""
        return self._persist(ask, is_change=False)

    def once(self, ask: Callable[[], T]) -> T:
        """Do something without asking again: what went wrong is the answer."""
        self._deadline_ms = self._around.clock.monotonic_ms() + self.config.deadline_ms
        return ask()

    def change(self, ask: Callable[[], T]) -> T:
        """Do what may be done only once; raises OutcomeUnknown if it may or may not be done."""
        return self._persist(ask, is_change=True)

    def _persist(self, ask: Callable[[], T], *, is_change: bool) -> T:
        clock, config = self._around.clock, self.config
        self._deadline_ms = clock.monotonic_ms() + config.deadline_ms
        pause_ms = config.backoff_ms_min
        told: RefusedForNow | None = None
        # Ends: every turn waits, and the deadline comes.
        while True:
            try:
                return ask()
            except Unreachable as error:
                if not self._was_reached:
                    raise  # most likely the address is wrong: say so at once
                problem: Exception = error
            except ConnectionLost as error:
                if is_change:
                    raise OutcomeUnknown(f"{error}: it may or may not have been done") from error
                problem = error
            except RefusedForNow as error:
                problem = told = error
            self._known = _Known()
            self._addresses.append(self._addresses.pop(0))  # who was asked last may be cut off
            wait_ms = pause_ms // 2 + self._around.chance.randrange(pause_ms // 2 + 1)
            if clock.monotonic_ms() + wait_ms >= self._deadline_ms:
                # What a broker said is the reason; that another was silent says little beside it.
                raise told or problem
            self._around.sleep(wait_ms / 1000)
            pause_ms = min(2 * pause_ms, config.backoff_ms_max)

    # --- whom to ask -----------------------------------------------------------------------------

    def ask_any(self, request: Any, response: type[R], *, version_max: int | None = None) -> R:
        """Ask some broker."""
        return self._call(self._any(), request, response, version_max)

    def serves(self, request: type[Any]) -> bool:
        """Return whether some broker serves the API of a request, in a version that we know."""
        return self._any().serves(request)

    def ask_node(
        self, node: int, request: Any, response: type[R], *, version_max: int | None = None
    ) -> R:
        """Ask the broker of this number."""
        return self._call(self.connection(node), request, response, version_max)

    def connection(self, node: int) -> BlockingConnection:
        """Return the connection to the broker of this number."""
        address = self._brokers().get(node)
        if address is None:
            raise RefusedForNow(f"broker {node} is not known", "BROKER_NOT_AVAILABLE")
        return self._connected(address)

    def answer_deadline_ms(self) -> int:
        """Return until when an answer to what is asked now is waited for."""
        now_ms = self._around.clock.monotonic_ms()
        return min(self._deadline_ms, now_ms + self.config.request_ms_max)

    def elapsed_ms(self) -> int:
        """Return for how long what is asked now has been tried."""
        return self._around.clock.monotonic_ms() - self._deadline_ms + self.config.deadline_ms

    def ask_controller(self, request: Any, response: type[R]) -> R:
        """Ask the broker that changes topics."""
        self._brokers()
        if self._known.controller == NOBODY:
            return self.ask_any(request, response)
        return self.ask_node(self._known.controller, request, response)

    def ask_coordinator(
        self, group: str, request: Any, response: type[R], *, version_max: int | None = None
    ) -> R:
        """Ask the broker that looks after a group."""
        node = self._coordinator(_GROUP, group)
        return self.ask_node(node, request, response, version_max=version_max)

    def ask_transaction_coordinator(
        self, transactional_id: str, request: Any, response: type[R]
    ) -> R:
        """Ask the broker that looks after a transactional id."""
        return self.ask_node(self._coordinator(_TRANSACTION, transactional_id), request, response)

    def _coordinator(self, kind: int, key: str) -> int:
        node = self._known.coordinators.get((kind, key))
        if node is None:
            node = self._known.coordinators[kind, key] = self._find_coordinator(kind, key)
        return node

    def nodes(self) -> list[int]:
        """Return the numbers of all brokers."""
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
        """Ask for these topics, for all if None, and learn from it.

        Missing ones are not made, unless they may be and the broker does that. Any broker is
        asked, which may lag behind; the newest is what the controller knows.
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
        """Ask what must be known before anything is asked for: a loss here leaves no doubt."""
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
        assert problem is not None, "there is one bootstrap address at least"
        raise problem

    def _keep(self, named: Iterable[Address]) -> None:
        """Keep the addresses that a broker named, to be asked next after that one."""
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
