"""Groups whose coordinator assigns, over a cluster of real processes whose brokers are killed."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.cli.main import run
from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.testing import Cluster
from tests.complaints import WITHOUT_LEADERS

SECONDS_MAX = 60
PARTITIONS = 6
COUNT = 300
GROUP = "sharers"
TOPIC = "shelf"

pytestmark = [pytest.mark.chaos, WITHOUT_LEADERS]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        made = admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
        made[TOPIC].result(SECONDS_MAX)
        yield running


def member(cluster: Cluster, stack: ExitStack, lost: list[TopicPartition]) -> Consumer:
    made = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": GROUP,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 200,
            "log_level": 0,
        }
    )
    stack.callback(made.close)
    made.subscribe([TOPIC], on_lost=lambda _, places: lost.extend(places))
    return made


def produce(cluster: Cluster, first: int) -> None:
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0}
    )
    for number in range(first, first + COUNT):
        producer.produce(TOPIC, str(number), partition=number % PARTITIONS)
    assert producer.flush(SECONDS_MAX) == 0


def poll_until(members: list[Consumer], done: Callable[[], bool], seen: list[str]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not done():
        assert time.monotonic() < end, [len(one.assignment()) for one in members]
        for one in members:
            for message in one.consume(100, 0.05):
                error = message.error()
                assert error is None or error.code() != KafkaError.FENCED_MEMBER_EPOCH
                if error is None:
                    seen.append((message.value() or b"").decode())


def is_shared(members: list[Consumer]) -> bool:
    found = [[where.partition for where in one.assignment()] for one in members]
    return all(found) and sorted(chain(*found)) == list(range(PARTITIONS))


@pytest.mark.requirement("CORE-6")
def test_members_continue_when_their_coordinator_is_killed(cluster: Cluster) -> None:
    seen: list[str] = []
    lost: list[TopicPartition] = []
    of_group = partition_of(GROUP, GroupConfig().offsets_partitions)
    with ExitStack() as stack:
        members = [member(cluster, stack, lost) for _ in range(2)]
        poll_until(members, lambda: is_shared(members), seen)
        before = [sorted(w.partition for w in one.assignment()) for one in members]
        produce(cluster, 0)
        poll_until(members, lambda: len(seen) >= COUNT, seen)
        for one in members:
            one.commit(offsets=one.position(one.assignment()), asynchronous=False)
        killed = cluster.leader(OFFSETS_TOPIC, of_group)
        cluster.kill(killed)
        produce(cluster, COUNT)
        poll_until(members, lambda: len(set(seen)) == 2 * COUNT, seen)
        assert [sorted(w.partition for w in one.assignment()) for one in members] == before
        assert not lost, "the next coordinator knows them"
        members.append(member(cluster, stack, lost))
        poll_until(members, lambda: is_shared(members), seen)
        cluster.restart(killed)
        produce(cluster, 2 * COUNT)
        poll_until(members, lambda: len(set(seen)) == 3 * COUNT, seen)
    assert sorted(set(seen), key=int) == [str(number) for number in range(3 * COUNT)]


def test_groups_commit_and_are_listed_whichever_broker_leads_and_coordinates(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("single", 3, 1)])["single"].result(SECONDS_MAX)
    places = [TopicPartition("single", index, 0) for index in range(3)]
    names = {f"readers-{number}" for number in range(6)}  # of coordinators on all brokers
    for name in sorted(names):
        reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": name})
        committed = reader.commit(offsets=places, asynchronous=False)
        assert [one.error for one in committed] == [None] * 3
        reader.close()
    capsys.readouterr()
    assert run(["group", "list", "--json", "--bootstrap", cluster.bootstrap]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert names <= {json.loads(line)["group"] for line in lines}
