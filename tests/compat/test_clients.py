"""All clients pass the same tests, from which the client matrix of the docs is made."""

import time
from collections.abc import Callable, Iterator

import pytest

from kafkaesque.clock import SystemClock
from kafkaesque.testing.process import BrokerProcess
from tests.compat.clients.aio import AioKafka
from tests.compat.clients.client import SECONDS_MAX, Client, Does, Member, Sent
from tests.compat.clients.confluent import Confluent
from tests.compat.clients.kafkapython import KafkaPython
from tests.compat.clients.kcat import PROGRAM, Kcat

pytestmark = [pytest.mark.compat, pytest.mark.filterwarnings("ignore:.*:DeprecationWarning")]

CLIENTS: tuple[Client, ...] = (Confluent(), AioKafka(), KafkaPython(), Kcat())
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = (("trace", b"abc"),)


def all_that(does: Does) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with every client that has this capability."""
    able = [
        pytest.param(
            client,
            id=client.name,
            marks=[pytest.mark.skip(reason="kcat is not installed")]
            if client.name == Kcat.name and PROGRAM is None
            else [],
        )
        for client in CLIENTS
        if does in client.does
    ]
    return pytest.mark.parametrize("client", able)


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Group members that are closed at the end, whatever happens."""
    opened: list[Member] = []
    yield opened
    for member in opened:
        member.close()


def send(client: Client, broker: BrokerProcess, topic: str, values: list[bytes]) -> None:
    producer = client.producer(broker.bootstrap, codec="none", is_idempotent=False)
    producer.send(topic, [Sent(value=value) for value in values])
    producer.close()


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


@all_that(Does.PRODUCE)
@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_back_as_they_were_sent(
    broker: BrokerProcess, client: Client, codec: str
) -> None:
    producer = client.producer(broker.bootstrap, codec=codec, is_idempotent=False)
    sent = [Sent(key=b"k%d" % n, value=b"value %d" % n * 20, headers=HEADERS) for n in range(50)]
    producer.send("letters", sent)
    producer.close()
    seen = client.read(broker.bootstrap, "letters", count=50)
    assert [(one.offset, one.key, one.value, one.headers) for one in seen] == [
        (offset, one.key, one.value, HEADERS) for offset, one in enumerate(sent)
    ]


@all_that(Does.BIG)
def test_large_messages_pass(broker: BrokerProcess, client: Client) -> None:
    value = b"0123456789" * 90_000
    send(client, broker, "letters", [value])
    (seen,) = client.read(broker.bootstrap, "letters", count=1)
    assert seen.value == value


@all_that(Does.TIME)
def test_reading_can_start_at_a_timestamp(broker: BrokerProcess, client: Client) -> None:
    producer = Confluent().producer(broker.bootstrap, codec="none", is_idempotent=False)
    start_ms = SystemClock().now_ms() - 3_600_000  # much older records would be deleted
    producer.send(
        "letters", [Sent(value=b"%d" % n, timestamp_ms=start_ms + n * 1000) for n in range(100)]
    )
    producer.close()
    seen = client.read(broker.bootstrap, "letters", count=10, from_ms=start_ms + 41_500)
    assert [one.value for one in seen][:10] == [b"%d" % n for n in range(42, 52)]


@all_that(Does.IDEMPOTENT)
def test_an_idempotent_producer_writes_each_record_once(
    broker: BrokerProcess, client: Client
) -> None:
    producer = client.producer(broker.bootstrap, codec="none", is_idempotent=True)
    values = [b"%d" % n for n in range(200)]
    producer.send("letters", [Sent(value=value) for value in values[:100]])
    broker.kill()
    broker.start()
    producer.send("letters", [Sent(value=value) for value in values[100:]])
    producer.close()
    assert [one.value for one in client.read(broker.bootstrap, "letters", count=200)] == values


@all_that(Does.RECONNECT)
def test_a_producer_continues_after_the_broker_was_killed(
    broker: BrokerProcess, client: Client
) -> None:
    producer = client.producer(broker.bootstrap, codec="none", is_idempotent=False)
    producer.send("letters", [Sent(value=b"before")])
    broker.kill()
    broker.start()
    producer.send("letters", [Sent(value=b"after")])
    producer.close()
    seen = client.read(broker.bootstrap, "letters", count=2)
    assert [one.value for one in seen] == [b"before", b"after"]


@all_that(Does.GROUP)
def test_members_share_a_topic_while_records_are_produced(
    broker: BrokerProcess, client: Client, members: list[Member]
) -> None:
    Confluent().create_topic(broker.bootstrap, "letters", 4, {})
    producer = Confluent().producer(broker.bootstrap, codec="none", is_idempotent=False)

    def produce(numbers: range) -> None:
        producer.send("letters", [Sent(value=b"%d" % n, partition=n % 4) for n in numbers])

    first = client.join(broker.bootstrap, "letters", "readers")
    members.append(first)
    produce(range(100))
    until(lambda: first.assigned == {0, 1, 2, 3}, "the only member gets all partitions")
    second = client.join(broker.bootstrap, "letters", "readers")
    members.append(second)
    until(
        lambda: len(first.assigned) == 2 and first.assigned | second.assigned == {0, 1, 2, 3},
        "two members share the partitions",
    )
    produce(range(100, 200))
    until(
        lambda: (
            {one.value for one in [*first.seen, *second.seen]} >= {b"%d" % n for n in range(200)}
        ),
        "every record is seen",
    )
    assert any(one.partition in second.assigned for one in second.seen)
    producer.close()


@all_that(Does.COMMIT)
def test_committed_offsets_survive_a_kill(broker: BrokerProcess, client: Client) -> None:
    send(Confluent(), broker, "letters", [b"%d" % n for n in range(10)])
    member = client.join(broker.bootstrap, "letters", "readers")
    until(lambda: len(member.seen) == 10, "the member sees all records")
    member.close()
    broker.kill()
    broker.start()
    send(Confluent(), broker, "letters", [b"new"])
    again = client.join(broker.bootstrap, "letters", "readers")
    until(lambda: len(again.seen) > 0, "the member goes on")
    again.close()
    assert [one.value for one in again.seen] == [b"new"]


@all_that(Does.ADMIN)
def test_topics_are_created_described_changed_and_deleted(
    broker: BrokerProcess, client: Client
) -> None:
    where = broker.bootstrap
    client.create_topic(where, "letters", 2, {"retention.ms": "3600000"})
    assert "letters" in client.topics(where)
    found = client.settings(where, "letters")
    assert (found["retention.ms"], found["cleanup.policy"]) == ("3600000", "delete")
    client.change_setting(where, "letters", "max.message.bytes", "2000")
    assert client.settings(where, "letters")["max.message.bytes"] == "2000"
    client.add_partitions(where, "letters", 3)
    client.delete_topic(where, "letters")
    until(lambda: "letters" not in client.topics(where), "the topic goes")
