"""Groups whose coordinator assigns, with librdkafka as their members: `group.protocol=consumer`."""

# mypy: disable-error-code="no-untyped-call"

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupType,
    KafkaError,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from kafkaesque.testing.process import BrokerProcess
from tests.compat.test_groups import (
    GROUP,
    PARTITIONS,
    SECONDS_MAX,
    TOPIC,
    group_offsets,
    is_shared,
    make_topic,
    poll_until,
    produce,
    shares,
)

pytestmark = pytest.mark.compat


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the broker remove members after two seconds, so that tests need not wait long."""
    monkeypatch.setenv("KAFKAESQUE_GROUPS_CONSUMER_SESSION_TIMEOUT_MS", "2000")


VICTIM = """
import sys
from confluent_kafka import Consumer

server, group, topic = sys.argv[1:]
one = Consumer({"bootstrap.servers": server, "group.id": group, "group.protocol": "consumer"})
one.subscribe([topic])
while True:
    one.poll(0.1)
"""


def consumer(broker: BrokerProcess, **settings: object) -> Consumer:
    """A member of the group that commits only when the test says so."""
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


@contextmanager
def consumers(
    broker: BrokerProcess,
    count: int,
    revoked: list[TopicPartition] | None = None,
    **settings: object,
) -> Iterator[list[Consumer]]:
    """Members of the group; closed at the end. Partitions revoked from them go to `revoked`."""
    taken: list[TopicPartition] = [] if revoked is None else revoked
    with ExitStack() as stack:
        made = []
        for _ in range(count):
            made.append(consumer(broker, **settings))
            stack.callback(made[-1].close)
            made[-1].subscribe([TOPIC], on_revoke=lambda _, parts: taken.extend(parts))
        yield made


@pytest.mark.requirement("CORE-6")
def test_members_come_and_go_during_production_and_every_record_is_read(
    broker: BrokerProcess,
) -> None:
    make_topic(broker)
    count = 2_000
    producing = threading.Thread(target=produce, args=(broker, 0, count))
    seen: list[str] = []
    revoked: list[TopicPartition] = []
    with consumers(broker, 1, revoked) as first:
        poll_until(first, lambda: is_shared(first))
        producing.start()
        with consumers(broker, 1) as more:
            poll_until(first + more, lambda: is_shared(first + more), seen)
            kept = set(shares(first)[0])
            assert not kept & {where.partition for where in revoked}, (
                "revoked only to be given back"
            )
            assert len(revoked) == PARTITIONS // 2
            for one in first + more:
                where = [place for place in one.position(one.assignment()) if place.offset >= 0]
                if where:
                    one.commit(offsets=where, asynchronous=False)
        producing.join(SECONDS_MAX)
        poll_until(first, lambda: is_shared(first), seen)
        poll_until(first, lambda: len(set(seen)) == count, seen)
    assert sorted(set(seen), key=int) == [str(number) for number in range(count)]


def test_an_instance_that_restarts_gets_its_partitions_back_without_a_rebalance(
    broker: BrokerProcess,
) -> None:
    make_topic(broker)
    revoked: list[TopicPartition] = []
    with consumers(broker, 1, revoked, group_instance_id="one") as first:
        with consumers(broker, 1, group_instance_id="two") as second:
            poll_until(first + second, lambda: is_shared(first + second))
            before = shares(first + second)
        revoked.clear()
        with consumers(broker, 1, group_instance_id="two") as again:
            poll_until(first + again, lambda: is_shared(first + again))
            assert shares(first + again) == before
            assert revoked == []


@pytest.mark.usefixtures("hasty")
def test_a_killed_member_is_removed_and_another_takes_its_place(broker: BrokerProcess) -> None:
    make_topic(broker)
    broker.stop()
    broker.start()  # with the timeout of this test
    with consumers(broker, 1) as group:
        poll_until(group, lambda: is_shared(group))
        victim = subprocess.Popen([sys.executable, "-c", VICTIM, broker.bootstrap, GROUP, TOPIC])
        try:
            poll_until(group, lambda: len(shares(group)[0]) == PARTITIONS // 2)
        finally:
            victim.kill()
            victim.wait()
        poll_until(group, lambda: is_shared(group))
        with consumers(broker, 1) as again:
            poll_until(group + again, lambda: is_shared(group + again))


def has_read(one: Consumer) -> bool:
    return all(place.offset >= 0 for place in one.position(one.assignment()))


def test_a_group_continues_after_the_broker_was_killed(broker: BrokerProcess) -> None:
    make_topic(broker)
    produce(broker, 0, 200)
    seen: list[str] = []
    with consumers(broker, 2) as group:
        poll_until(group, lambda: is_shared(group) and len(set(seen)) == 200, seen)
        # Partitions reassigned meanwhile are read once more before they have a position.
        poll_until(group, lambda: all(has_read(one) for one in group), seen)
        for one in group:
            one.commit(offsets=one.position(one.assignment()), asynchronous=False)
        before = shares(group)
        broker.kill()
        broker.start()
        produce(broker, 200, 100)
        seen.clear()
        poll_until(group, lambda: len(seen) >= 100, seen)
        assert sorted(map(int, seen)) == list(range(200, 300)), "it reads nothing twice"
        assert shares(group) == before


def test_a_pattern_follows_new_topics(broker: BrokerProcess) -> None:
    make_topic(broker)
    one = consumer(broker)
    one.subscribe(["^ord(ers|inary).*"])
    poll_until([one], lambda: len(one.assignment()) == PARTITIONS)
    make_topic(broker, "ordinary")
    make_topic(broker, "payments")
    poll_until([one], lambda: len(one.assignment()) == 2 * PARTITIONS)
    assert {where.topic for where in one.assignment()} == {TOPIC, "ordinary"}
    one.close()


def test_a_pattern_gets_a_new_topic_loses_it_and_reads_its_successor(
    broker: BrokerProcess,
) -> None:
    make_topic(broker, "payments")
    one = consumer(broker)
    one.subscribe([f"^{TOPIC}.*"])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    seen: list[str] = []

    def poll_for(*topics: str, count: int = 0) -> None:
        """Poll until these topics are assigned, and this many records were read."""
        end = time.monotonic() + SECONDS_MAX
        while {where.topic for where in one.assignment()} != set(topics) or len(seen) < count:
            assert time.monotonic() < end, (one.assignment(), seen)
            message = one.poll(0.05)
            if message is None:
                continue
            error, value = message.error(), message.value()
            if error is None:
                assert value is not None
                seen.append(value.decode())
            else:  # it may request a topic that has just been deleted
                assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART

    make_topic(broker, f"{TOPIC}-old")
    poll_for(f"{TOPIC}-old")
    make_topic(broker)
    poll_for(f"{TOPIC}-old", TOPIC)
    for gone in admin.delete_topics([TOPIC]).values():
        gone.result(SECONDS_MAX)
    poll_for(f"{TOPIC}-old")
    make_topic(broker)
    produce(broker, 0, 10)
    poll_for(f"{TOPIC}-old", TOPIC, count=10)
    assert sorted(map(int, seen)) == list(range(10))
    one.close()


def test_a_consumer_group_is_listed_described_and_deleted_and_becomes_a_classic_one(
    broker: BrokerProcess,
) -> None:
    make_topic(broker)
    produce(broker, 0, 10)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    seen: list[str] = []
    with consumers(broker, 1, client_id="reader", group_remote_assignor="range") as group:
        poll_until(group, lambda: len(seen) == 10, seen)
        group[0].commit(asynchronous=False)
        listed = admin.list_consumer_groups().result(SECONDS_MAX).valid
        assert [(g.group_id, g.type) for g in listed] == [(GROUP, ConsumerGroupType.CONSUMER)]
        shown = admin.describe_consumer_groups([GROUP])[GROUP].result(SECONDS_MAX)
        assert (shown.state, shown.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
        assert shown.partition_assignor == "range"
        assert shown.members[0].client_id == "reader"
        assert len(shown.members[0].assignment.topic_partitions) == PARTITIONS
    with consumers(broker, 1, group_protocol="classic") as classic:
        poll_until(classic, lambda: is_shared(classic), seen)
    assert len(seen) == 10, "the offsets stay with the group"
    assert sum(group_offsets(admin).values()) == 10
    for gone in admin.delete_consumer_groups([GROUP]).values():
        gone.result(SECONDS_MAX)
    assert admin.list_consumer_groups().result(SECONDS_MAX).valid == []


def test_five_members_share_and_share_again(broker: BrokerProcess) -> None:
    make_topic(broker)
    with consumers(broker, PARTITIONS + 1) as group:
        poll_until(group, lambda: sorted(chain(*shares(group))) == list(range(PARTITIONS)))
        poll_until(group, lambda: sorted(map(len, shares(group))) == [0, 1, 1, 1, 1])
