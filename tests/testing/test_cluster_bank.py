"""A bank on a cluster of real processes: money moves in transactions while brokers are killed.

Each transfer is one transaction of two records in two partitions, minus here and plus there; some
are aborted. Between two transfers, when the tellers rest and no transaction is open, the ends of
all accounts are a consistent cut through the bank: up to there the sum is that of the beginning, at
every audit, also right after a kill. A transfer with an unknown outcome is decided before that,
because its teller first restarts under its id, which waits for what was decided. During a transfer
there is no such cut, and Kafka gives readers none over partitions either: they may see one half of
it before the other, but never an aborted one.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.broker.coordination.coordinators import partition_of
from kafkaesque.broker.coordination.transactions import STATE_TOPIC
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.patterns.connection import patiently
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS
from tests.testing.killing import Killer

SECONDS_MAX = 30
ACCOUNTS = 4
TRANSFERS = 60
TELLERS = 2
TOPIC = "accounts"
AUDIT_EVERY = 20

pytestmark = [pytest.mark.chaos, WITHOUT_LEADERS]


class Fate(Enum):
    """What a teller knows of a transfer's outcome."""

    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, ACCOUNTS, 3)])[TOPIC].result(SECONDS_MAX)
        yield running


class Teller:
    """Moves money; restarts under its id when it cannot tell how a transfer ended."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._producer = self._come()

    def transfer(self, number: int, *, takes_back: bool, harm: Callable[[], object]) -> Fate:
        """Move money from one account to the next; a fault is injected before it ends."""
        source, target = number % ACCOUNTS, (number + 1) % ACCOUNTS
        is_ending = False
        try:
            self._producer.begin_transaction()
            self._producer.produce(TOPIC, f"{number}:{-number}", partition=source)
            self._producer.produce(TOPIC, f"{number}:{number}", partition=target)
            harm()
            if takes_back:
                self._producer.flush(SECONDS_MAX)
                self._producer.abort_transaction(SECONDS_MAX)
                return Fate.ABORTED
            is_ending = True
            self._producer.commit_transaction(SECONDS_MAX)
        except KafkaException as problem:
            return self._give_up(problem, is_ending=is_ending)
        return Fate.COMMITTED

    def _give_up(self, problem: KafkaException, *, is_ending: bool) -> Fate:
        try:
            if problem.args[0].txn_requires_abort():
                self._producer.abort_transaction(SECONDS_MAX)
                return Fate.ABORTED
        except KafkaException:
            pass
        self._producer = self._come()
        return Fate.UNKNOWN if is_ending else Fate.ABORTED

    def _come(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "transactional.id": self.name,
                "transaction.timeout.ms": 10_000,
                "socket.timeout.ms": 3_000,
                "retry.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )
        producer.init_transactions(SECONDS_MAX)
        return producer


def audit(cluster: Cluster) -> list[tuple[int, int]]:
    """Read what is committed up to a cut: transfers, and by how much each moved.

    The cut is the ends of the accounts as uncommitted readers see them, so no written record is
    left out: an open transaction keeps this from ending, which fails.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "auditors",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    cut = ends(cluster)
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(ACCOUNTS)])
    found: list[tuple[int, int]] = []
    reached = [0] * ACCOUNTS
    end = time.monotonic() + SECONDS_MAX
    while any(at < wanted for at, wanted in zip(reached, cut, strict=True)):
        assert time.monotonic() < end, "a transaction without an owner hides what is behind it"
        message = consumer.poll(0.2)
        if message is None:
            continue
        problem, partition, offset = message.error(), message.partition(), message.offset()
        if problem is None:
            number, _, amount = (message.value() or b"").decode().partition(":")
            found.append((int(number), int(amount)))
        elif problem.code() == KafkaError._PARTITION_EOF:
            assert partition is not None
            assert offset is not None
            reached[partition] = offset
    consumer.close()
    return found


def ends(cluster: Cluster) -> list[int]:
    """Return the end of each account, including uncommitted records."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "auditors",
            "isolation.level": "read_uncommitted",
            "log_level": 0,
        }
    )
    found = [
        patiently(
            partial(consumer.get_watermark_offsets, TopicPartition(TOPIC, index), SECONDS_MAX)
        )
        for index in range(ACCOUNTS)
    ]
    consumer.close()
    return [high for _, high in found]


def check(found: list[tuple[int, int]], fates: dict[int, Fate]) -> None:
    """Find what no cut between transfers may show: an aborted, partial or duplicated transfer."""
    assert all(count == 1 for count in Counter(found).values()), "a record is duplicated"
    halves = Counter(number for number, _ in found)
    for number, fate in fates.items():
        wanted = {Fate.COMMITTED: (2,), Fate.ABORTED: (0,), Fate.UNKNOWN: (0, 2)}[fate]
        assert halves[number] in wanted, f"{halves[number]} records of {number}, {fate}"
    assert sum(amount for _, amount in found) == 0, "money was lost or created"


@pytest.mark.requirement("LOG-4")
def test_b25_b28_no_money_is_lost_or_created_while_brokers_are_killed(cluster: Cluster) -> None:
    tellers = [Teller(cluster, f"teller-{number}") for number in range(TELLERS)]
    fates: dict[int, Fate] = {}

    def coordinator(number: int) -> int:
        return partition_of(tellers[number % TELLERS].name, TransactionConfig().state_partitions)

    plan = {
        15: (STATE_TOPIC, coordinator(15)),  # it wants to abort just then
        28: (TOPIC, 28 % ACCOUNTS),
        41: (STATE_TOPIC, coordinator(41)),
    }
    killer = Killer(cluster, plan)
    for number in range(1, TRANSFERS + 1):
        killer.relieve(number)
        teller, harm = tellers[number % TELLERS], partial(killer.strike, number)
        fates[number] = teller.transfer(number, takes_back=number % 5 == 0, harm=harm)
        if number in plan or number % AUDIT_EVERY == 0:
            check(audit(cluster), fates)
    assert killer.is_done
    killer.relieve_all()
    committed = [number for number, fate in fates.items() if fate is Fate.COMMITTED]
    assert len(committed) > TRANSFERS // 2
    check(audit(cluster), fates)
