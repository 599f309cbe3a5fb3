"""A cluster of real processes loses nothing when its brokers are killed, paused and cut off."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kafkaesque.errors import KafkaesqueError
from kafkaesque.testing import Cluster
from kafkaesque.testing.process import BrokerProcess
from tests.complaints import WITHOUT_LEADERS

SECONDS_MAX = 120
COUNT = 200


pytestmark = WITHOUT_LEADERS


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        yield running


class Sender:
    """An idempotent producer that counts acknowledgements."""

    def __init__(self, cluster: Cluster, bootstrap: str | None = None) -> None:
        self.acknowledged: list[bytes] = []
        self.failures: list[str] = []
        self._number = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap or cluster.bootstrap,
                "enable.idempotence": True,
                "request.timeout.ms": 2_000,
                "socket.timeout.ms": 3_000,
            }
        )

    def send(self, topic: str, count: int = COUNT) -> None:
        """Send some more, and return when all of them are acknowledged."""
        for _ in range(count):
            self._number += 1
            self._producer.produce(topic, b"%d" % self._number, partition=0, on_delivery=self._told)
        left = self._producer.flush(2 * SECONDS_MAX)
        assert (left, self.failures) == (0, [])

    def _told(self, error: object, message: object) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.append(message.value())  # type: ignore[attr-defined]


def create(cluster: Cluster, topic: str, replicas: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, replicas)])[topic].result(SECONDS_MAX)


def read(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    settings = {"group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, **settings})
    consumer.assign([TopicPartition(topic, 0, 0)])
    messages = consumer.consume(count, SECONDS_MAX)
    consumer.close()
    return [message.value() for message in messages]


@pytest.mark.requirement("REP-5")
def test_brokers_join_and_know_each_other(cluster: Cluster) -> None:
    assert cluster.nodes == [1, 2, 3]
    for node in cluster.nodes:
        known = AdminClient({"bootstrap.servers": cluster.address(node)}).list_topics(timeout=10)
        assert sorted(known.brokers) == [1, 2, 3]
        assert {f"{b.host}:{b.port}" for b in known.brokers.values()} == {
            cluster.address(other) for other in cluster.nodes
        }


@pytest.mark.requirement("REP-4")
def test_nothing_is_lost_or_duplicated_when_the_leader_is_killed(cluster: Cluster) -> None:
    create(cluster, "killed")
    sender = Sender(cluster)
    sender.send("killed")
    leader = cluster.leader("killed")
    cluster.kill(leader)
    sender.send("killed")
    assert cluster.leader("killed") != leader
    cluster.restart(leader)
    sender.send("killed")
    assert read(cluster, "killed", 3 * COUNT) == sender.acknowledged


@pytest.mark.long
def test_new_consumers_find_a_partition_while_its_leader_is_replaced(cluster: Cluster) -> None:
    create(cluster, "asked")
    Sender(cluster).send("asked")
    leader = cluster.leader("asked")
    others = ",".join(cluster.address(node) for node in cluster.nodes if node != leader)
    cluster.kill(leader)
    answers: set[object] = set()
    for _ in range(20):
        consumer = Consumer({"bootstrap.servers": others, "group.id": "unused", "log_level": 0})
        try:
            asked = TopicPartition("asked", 0)
            answers.add(consumer.get_watermark_offsets(asked, timeout=SECONDS_MAX))
        except KafkaException as error:
            # For a moment others may still name the dead leader: then clients wait for it.
            assert error.args[0].code() == KafkaError._TIMED_OUT, error
        finally:
            consumer.close()
    cluster.restart(leader)
    assert answers == {(0, COUNT)}


def test_an_isolated_leader_is_replaced_and_acknowledges_nothing(cluster: Cluster) -> None:
    create(cluster, "cut")
    sender = Sender(cluster)
    sender.send("cut")
    leader = cluster.leader("cut")
    cluster.isolate(leader)
    try:
        sender.send("cut")
    finally:
        cluster.heal()
    sender.send("cut")
    assert read(cluster, "cut", 3 * COUNT) == sender.acknowledged


def test_a_client_that_knows_only_the_isolated_leader_finds_the_next_one(
    cluster: Cluster,
) -> None:
    create(cluster, "lured")
    leader = cluster.leader("lured")
    sender = Sender(cluster, cluster.address(leader))
    sender.send("lured")
    cluster.isolate(leader)
    try:
        sender.send("lured")
    finally:
        cluster.heal()
    assert read(cluster, "lured", 2 * COUNT) == sender.acknowledged


def test_a_paused_leader_resumes_as_a_follower(cluster: Cluster) -> None:
    create(cluster, "paused")
    sender = Sender(cluster)
    sender.send("paused")
    leader = cluster.leader("paused")
    cluster.pause(leader)
    try:
        sender.send("paused")
    finally:
        cluster.resume(leader)
    sender.send("paused")
    assert read(cluster, "paused", 3 * COUNT) == sender.acknowledged


@pytest.mark.requirement("Q-6")
def test_any_broker_accepts_any_change(cluster: Cluster) -> None:
    for node in cluster.nodes:
        admin = AdminClient({"bootstrap.servers": cluster.address(node)})
        admin.create_topics([NewTopic(f"by-{node}", 2, 3)])[f"by-{node}"].result(SECONDS_MAX)
    for node in cluster.nodes:
        known = AdminClient({"bootstrap.servers": cluster.address(node)}).list_topics(timeout=10)
        assert {f"by-{other}" for other in cluster.nodes} <= set(known.topics)


@pytest.mark.complains(
    "link_refused peer=127.0.0.1:* reason='one broker belongs to cluster *, the other to *'",
    "link_refused peer=127.0.0.1:* reason='the other side refuses the link: one broker *",
)
def test_a_broker_joins_no_cluster_but_its_own(cluster: Cluster, tmp_path: Path) -> None:
    stranger = BrokerProcess(tmp_path / "stranger")
    stranger.start()
    stranger.stop()
    again = BrokerProcess(tmp_path / "stranger", ["--join", cluster.address(1)])
    with pytest.raises(KafkaesqueError, match="refuses the broker of this data folder"):
        again.start()
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert sorted(admin.list_topics(timeout=10).brokers) == cluster.nodes
    without = BrokerProcess(tmp_path / "stranger")
    without.start()  # it belongs to another cluster, and continues with it
    try:
        alone = AdminClient({"bootstrap.servers": without.bootstrap})
        assert sorted(alone.list_topics(timeout=10).brokers) == [1]
    finally:
        without.stop()


def test_a_broker_that_cannot_reach_the_cluster_reports_it(tmp_path: Path) -> None:
    lost = BrokerProcess(tmp_path / "lost", ["--join", "nobody"])
    with pytest.raises(KafkaesqueError, match="an address must be host:port"):
        lost.start()


class Text:
    """A user at a terminal, connected to one broker."""

    def __init__(self, cluster: Cluster, node: int) -> None:
        host, _, port = cluster.address(node).partition(":")
        self._stream = socket.create_connection((host, int(port)), SECONDS_MAX)
        self._answers = self._stream.makefile()

    def say(self, line: str) -> str:
        """Type a line; return the answer."""
        self._stream.sendall(f"{line}\r\n".encode())
        return self.hear()

    def hear(self) -> str:
        """Return the next line that arrives."""
        return self._answers.readline().strip()

    def close(self) -> None:
        self._answers.close()
        self._stream.close()


@pytest.mark.requirement("TXT-4")
def test_any_broker_accepts_any_line_of_text(cluster: Cluster) -> None:
    people = [Text(cluster, node) for node in cluster.nodes]
    assert people[0].say("CRTP notes 6 3") == "Done"
    sent = [f"{place}-{number}" for place in range(3) for number in range(6)]
    for body in sent:
        assert people[int(body[0])].say(f'PUBS notes {{"Body": "{body}"}}') == "Done"
    for place, person in enumerate(people):
        subscribed = json.loads(person.say(f"SUBS notes readers-{place} 6"))
        answers = [json.loads(person.say(f"CONS notes {s} 0")) for s in subscribed["Data"]]
        assert sorted(one["Body"] for answer in answers for one in answer["Data"]) == sent
        person.close()


def test_records_are_still_pushed_when_the_leader_is_killed(cluster: Cluster) -> None:
    create(cluster, "pushed")
    sender = Sender(cluster)
    sender.send("pushed", 1)
    leader = cluster.leader("pushed")
    person = Text(cluster, next(node for node in cluster.nodes if node != leader))
    assert json.loads(person.say("PUSH pushed screen"))["Ok"]
    cluster.kill(leader)
    try:
        sender.send("pushed", 3)
        assert [json.loads(person.hear())["Body"] for _ in range(3)] == ["2", "3", "4"]
        assert person.say("STOP") == "Done"
    finally:
        cluster.restart(leader)
        person.close()
