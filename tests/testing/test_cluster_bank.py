"""A bank on a cluster of real processes: money moves in transactions while brokers are killed.

Each transfer is one transaction of two records in two partitions, minus here and plus there; some
are taken back. Whoever reads committed records may see one half of a transfer before the other,
because partitions are read one by one, but never an aborted one, and in the end whole ones only.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum, auto

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.broker.coordinators import partition_of
from kafkaesque.broker.transactions import STATE_TOPIC
from kafkaesque.config import TransactionConfig
from kafkaesque.testing import Cluster
from kafkaesque.types import NodeId

SECONDS_MAX = 30
ACCOUNTS = 4
TRANSFERS = 60
TELLERS = 2
TOPIC = "accounts"

pytestmark = [pytest.mark.chaos]


class Fate(Enum):
    """What a teller was told of a transfer."""

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
    """Moves money; comes anew under its id when it cannot tell how a transfer ended."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._producer = self._come()

    def transfer(
        self, number: int, *, takes_back: bool, harm: Callable[[], None] | None = None
    ) -> Fate:
        """Move money from one account to the next; harm is done before it is ended."""
        source, target = number % ACCOUNTS, (number + 1) % ACCOUNTS
        is_ending = False
        try:
            self._producer.begin_transaction()
            self._producer.produce(TOPIC, f"{number}:{-number}", partition=source)
            self._producer.produce(TOPIC, f"{number}:{number}", partition=target)
            if harm is not None:
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


def seen(cluster: Cluster) -> list[tuple[int, int]]:
    """Read all that is committed of the accounts: transfers, and by how much each moved."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "auditors",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(ACCOUNTS)])
    found: list[tuple[int, int]] = []
    ended: set[int | None] = set()
    end = time.monotonic() + SECONDS_MAX
    while len(ended) < ACCOUNTS and time.monotonic() < end:
        message = consumer.poll(0.2)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition())
            continue
        number, _, amount = (message.value() or b"").decode().partition(":")
        found.append((int(number), int(amount)))
    consumer.close()
    return found


def check(found: list[tuple[int, int]], fates: dict[int, Fate], *, is_over: bool) -> None:
    """Find what no reader may see: an aborted transfer, one twice, and in the end half of one."""
    assert all(count == 1 for count in Counter(found).values()), "a record is there twice"
    halves = Counter(number for number, _ in found)
    for number, fate in fates.items():
        if fate is Fate.ABORTED:
            assert halves[number] == 0, f"transfer {number} was aborted and is seen"
        elif is_over:
            wanted = (2,) if fate is Fate.COMMITTED else (0, 2)
            assert halves[number] in wanted, f"{halves[number]} records of {number}, {fate}"
    whole = [amount for number, amount in found if halves[number] == 2]
    assert sum(whole) == 0, "money came from nowhere"


@pytest.mark.requirement("LOG-4")
def test_b25_b28_no_money_is_lost_or_made_while_brokers_are_killed(cluster: Cluster) -> None:
    tellers = [Teller(cluster, f"teller-{number}") for number in range(TELLERS)]
    partitions = TransactionConfig().state_partitions
    fates: dict[int, Fate] = {}
    killed: list[NodeId] = []

    def kill(topic: str, partition: int) -> None:
        if killed:
            cluster.restart(killed[-1])
        killed.append(cluster.leader(topic, partition))
        cluster.kill(killed[-1])

    def coordinator(number: int) -> int:
        return partition_of(tellers[number % TELLERS].name, partitions)

    harms = {
        15: lambda: kill(STATE_TOPIC, coordinator(15)),  # it wants to abort just then
        28: lambda: kill(TOPIC, 28 % ACCOUNTS),
        41: lambda: kill(STATE_TOPIC, coordinator(41)),
    }
    for number in range(1, TRANSFERS + 1):
        teller, harm = tellers[number % TELLERS], harms.get(number)
        fates[number] = teller.transfer(number, takes_back=number % 5 == 0, harm=harm)
        if harm is not None:
            check(seen(cluster), fates, is_over=False)
    cluster.restart(killed[-1])
    assert len(killed) == 3
    committed = [number for number, fate in fates.items() if fate is Fate.COMMITTED]
    assert len(committed) > TRANSFERS // 2
    end = time.monotonic() + SECONDS_MAX
    while len(seen(cluster)) < 2 * len(committed):
        assert time.monotonic() < end, "committed transfers are not seen"
    check(seen(cluster), fates, is_over=True)
