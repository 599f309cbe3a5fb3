"""All transactional producers and queries of a simulated cluster, and their invariants.

- all or none of a transaction's records and offsets become visible, on all brokers, and the
  producer was told its true end;
- nothing that a fenced producer wrote is visible, and it ends nothing;
- before its limit, only a client that knows a prepared transaction ends it;
- a query's batch is visible as first decided, as a whole, or not at all, and a replaced driver
  decides nothing;
- the last stable offset never exceeds the high watermark, never goes back, and reaches it once the
  timeouts of abandoned transactions have passed.
"""

import random
from collections.abc import Iterator

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.callbacks import ignore
from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.sim.broker_life import LEDGER, PARTITIONS
from kafkaesque.sim.broker_node import BrokerNode
from kafkaesque.sim.broker_query import Query
from kafkaesque.sim.broker_transactor import ZOMBIE, Tale, Transactor, Truth
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.sim.checks import Violation
from kafkaesque.types import Offset, Term

_READ_BYTES = 1 << 20
_LOOK_PAUSE = 150
_STEPS_MAX = 40_000
_OURS = b"mover-", b"spark/"


class Transactors:
    """As many as the world's settings say; half of a producer's habits follow from its number."""

    def __init__(self, world: BrokerWorld) -> None:
        self._world = world
        self._chance = random.Random(f"transactions of {world.seed}")
        self._all = [
            Transactor(world, self._chance, f"mover-{number}", is_v2=number % 2 == 1)
            for number in range(world.settings.transactors)
        ]
        self._queries = [
            Query(world, self._chance, f"query-{number}")
            for number in range(world.settings.queries)
        ]
        self._seen: set[bytes] = set()
        self._stable: dict[int, tuple[Term, Offset]] = {}
        self._is_stopped = False

    def begin(self) -> None:
        """Start to send requests."""
        if self._all or self._queries:
            self._world.schedule(1, self._look)
        for one in (*self._all, *self._queries):
            one.begin()

    def stop(self) -> None:
        """Stop them all, leaving open transactions as they are."""
        self._is_stopped = True
        for one in (*self._all, *self._queries):
            one.is_stopped = True

    # ── during the run ───────────────────────────────────────────────────────────────────────

    def _look(self) -> None:
        """Create the topic if it does not exist, and read its committed records."""
        if self._is_stopped:
            return
        self._world.schedule(1 + self._chance.randrange(_LOOK_PAUSE), self._look)
        able = self._world.able()
        if not able:
            return
        machine = self._chance.choice(able)
        assert machine.broker is not None
        if LEDGER not in machine.broker.catalog.topics:
            self._create(machine)
            return
        for index in range(PARTITIONS):
            self._read(index)

    def _create(self, machine: BrokerNode) -> None:
        def ask(broker: Broker) -> None:
            try:
                broker.create_topic(LEDGER, PARTITIONS, {}, ignore)
            except KafkaesqueError:
                self._world.count("ledger refused")

        self._world.ask_broker(machine, ask)

    def _read(self, index: int) -> list[bytes]:
        """Return what a read-committed consumer sees at the newest leader, if that is able."""
        machine = self._leading(index)
        values: list[bytes] = []
        if machine is None or machine not in self._world.able():
            return values

        def ask(broker: Broker) -> None:
            try:
                partition = broker.partition(LEDGER, index)
                self._check_stable(index, partition)
                values.extend(_committed(partition))
            except KafkaesqueError as error:
                self._world.count(f"reading: {type(error).__name__}")

        self._world.ask_broker(machine, ask)
        self._seen.update(values)
        if ZOMBIE in values:
            raise Violation("a record of a fenced producer is visible")
        return values

    def _check_stable(self, index: int, partition: Partition) -> None:
        stable, end = partition.stable_offset, partition.high_watermark
        if stable > end:
            raise Violation(f"the last stable offset {stable} is beyond the watermark {end}")
        term, before = self._stable.get(index, (0, 0))
        if partition.term >= term:
            if stable < before:
                raise Violation(f"the last stable offset went back from {before} to {stable}")
            self._stable[index] = partition.term, stable

    def _leading(self, index: int) -> BrokerNode | None:
        for machine in self._world.nodes.values():
            if machine.broker is None:
                continue
            topic = machine.broker.committed_catalog.machine.topics.get(LEDGER)
            if topic is not None:
                leader = self._world.leading(group_of(topic, index))
                return None if leader is None else self._world.nodes[leader.raft.node]
        return None

    # ── at the end ───────────────────────────────────────────────────────────────────────────

    def are_ended(self) -> bool:
        """Return whether nothing is open any more: only the coordinators are left to end it."""
        self._world.heal()
        brokers = [machine.broker for machine in self._world.nodes.values()]
        if not any(b is not None and LEDGER in b.catalog.topics for b in brokers):
            return True
        is_open = any(
            one.open_count
            for broker in brokers
            if broker is not None
            for one in broker.transactions.coordinators.all
        )
        return not is_open and all(self._is_stable(index) for index in range(PARTITIONS))

    def _is_stable(self, index: int) -> bool:
        machine = self._leading(index)
        if machine is None or machine.broker is None:
            return False
        try:
            partition = machine.broker.partition(LEDGER, index)
            stable = partition.stable_offset
        except KafkaesqueError:
            return False
        return stable == partition.replica.log.end_offset

    def check_end(self) -> None:
        """Compare the records visible at the end with the answers to the producers."""
        if not self._all and not self._queries:
            return
        values = [value for index in range(PARTITIONS) for value in self._read(index)]
        found = set(values)
        mine = [value for value in values if value.startswith(_OURS)]
        if len(set(mine)) != len(mine):
            raise Violation("a record of a transaction is seen twice")
        if not {one for one in self._seen if one.startswith(_OURS)} <= found:
            raise Violation("a record once seen as committed is missing at the end")
        for one in self._all:
            for tale in one.tales:
                _check_tale(tale, found)
            self._check_offset(one, found)
        for query in self._queries:
            for batch in query.tales.values():
                batch.check(found)

    def _check_offset(self, one: Transactor, found: set[bytes]) -> None:
        numbers = [t.number for t in one.tales if t.has_offset and found.issuperset(t.values)]
        if not numbers:
            return
        offsets: list[int] = []

        def is_found() -> bool:
            one.fetch(offsets.append)
            return bool(offsets)

        if not self._world.run_until(is_found, _STEPS_MAX):
            raise Violation(f"liveness: group {one.name} has no coordinator")
        if offsets[0] != max(numbers):
            raise Violation(f"{one.name} has committed offset {max(numbers)}, not {offsets[0]}")


def _check_tale(tale: Tale, found: set[bytes]) -> None:
    seen = [value in found for value in tale.values]
    if any(seen) and not all(seen):
        raise Violation(f"transaction {tale.name} is only partly visible")
    if tale.truth is Truth.COMMITTED and not all(seen):
        raise Violation(f"transaction {tale.name} was committed and is not seen")
    if tale.truth in (Truth.ABORTED, Truth.OPEN) and any(seen):
        raise Violation(f"transaction {tale.name} was not committed and is seen")


def _committed(partition: Partition) -> Iterator[bytes]:
    """Yield the values that a read-committed client shows."""
    stable, offset = partition.stable_offset, partition.first_offset
    while offset < stable:
        views = list(split_batches(partition.read(offset, _READ_BYTES, below=stable)))
        if not views:
            return  # the committed records are not on this disk yet
        aborted = partition.aborted(offset, views[-1].end_offset)
        pending = sorted(aborted, key=lambda one: one.first_offset)
        skipped: set[int] = set()
        for view in views:
            while pending and pending[0].first_offset <= view.base_offset:
                skipped.add(pending.pop(0).producer_id)
            if view.is_control:
                skipped.discard(view.producer_id)
            elif not (view.is_transactional and view.producer_id in skipped):
                yield from (one.value or b"" for one in read_records(view))
        offset = views[-1].end_offset
