"""The admin clients of confluent-kafka, kafka-python and aiokafka manage our broker."""

# mypy: disable-error-code="no-untyped-call,attr-defined"

import asyncio
import threading
import warnings

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from kafkaesque.testing.process import BrokerProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    import kafka.admin
    from aiokafka import TopicPartition as AIOTopicPartition
    from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
    from aiokafka.admin import NewPartitions as AIONewPartitions
    from aiokafka.admin import NewTopic as AIONewTopic
    from aiokafka.admin import config_resource as aio_resource

pytestmark = pytest.mark.compat

SECONDS_MAX = 60


def an_admin(broker: BrokerProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def create(admin: AdminClient, name: str, partitions: int = 1, **settings: str) -> None:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    topic = NewTopic(name, partitions, config=named)
    admin.create_topics([topic])[name].result(SECONDS_MAX)


def delete(admin: AdminClient, name: str) -> None:
    admin.delete_topics([name])[name].result(SECONDS_MAX)


def described(admin: AdminClient, name: str) -> dict[str, ConfigEntry]:
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = admin.describe_configs([resource])[resource].result(SECONDS_MAX)
    assert isinstance(found, dict)
    return found


def alter(admin: AdminClient, name: str, setting: str, value: str) -> None:
    change = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)


def produce(broker: BrokerProcess, topic: str, *values: bytes) -> list[KafkaError]:
    """Produce to partition 0; return the error, if any."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=delivered)
    assert producer.flush(SECONDS_MAX) == 0
    return failures


def ends(broker: BrokerProcess, topic: str) -> tuple[int, int]:
    """The first offset of partition 0, and its end offset."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    found = consumer.get_watermark_offsets(TopicPartition(topic, 0), SECONDS_MAX)
    consumer.close()
    assert found is not None
    return found


def test_settings_are_given_at_creation_and_described_with_all_defaults(
    broker: BrokerProcess,
) -> None:
    admin = an_admin(broker)
    create(admin, "orders", 2, retention_ms="3600000", cleanup_policy="compact,delete")
    found = described(admin, "orders")
    assert found["retention.ms"].value == "3600000"
    assert found["cleanup.policy"].value == "compact,delete"
    assert (found["max.message.bytes"].value, found["max.message.bytes"].is_default) == (
        "1048588",
        True,
    )
    with pytest.raises(KafkaException, match="unknown topic setting"):
        create(admin, "wrong", no_such="1")


def test_a_changed_setting_takes_effect_at_once(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    create(admin, "orders")
    assert produce(broker, "orders", b"x" * 1000) == []
    alter(admin, "orders", "max.message.bytes", "500")
    (failure,) = produce(broker, "orders", b"x" * 1000)
    assert failure.code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert described(admin, "orders")["max.message.bytes"].value == "500"


def test_a_broker_setting_takes_effect_at_once_and_after_a_restart(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    create(admin, "orders")

    def change(operation: AlterConfigOpType, value: str | None = None) -> None:
        entry = ConfigEntry("message.max.bytes", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(SECONDS_MAX)

    change(AlterConfigOpType.SET, "500")
    (failure,) = produce(broker, "orders", b"x" * 1000)
    assert failure.code() == KafkaError.MSG_SIZE_TOO_LARGE
    broker.stop()
    broker.start()
    (failure,) = produce(broker, "orders", b"x" * 1000)
    assert failure.code() == KafkaError.MSG_SIZE_TOO_LARGE
    change(AlterConfigOpType.SET, "2000")
    assert produce(broker, "orders", b"x" * 1000) == []
    assert described(admin, "orders")["max.message.bytes"].value == "2000"
    change(AlterConfigOpType.DELETE)
    assert described(admin, "orders")["max.message.bytes"].is_default


@pytest.mark.requirement("CORE-8")
def test_partitions_are_added_while_a_producer_keeps_sending(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    create(admin, "orders")
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "topic.metadata.refresh.interval.ms": 100}
    )
    places: list[int | None] = []
    failures: list[KafkaError] = []
    has_grown = threading.Event()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)
        places.append(message.partition())

    def grow() -> None:
        admin.create_partitions([NewPartitions("orders", 3)])["orders"].result(SECONDS_MAX)
        has_grown.set()

    thread = threading.Thread(target=grow)
    thread.start()
    sent = 0
    while set(places) != {0, 1, 2} and sent < 100_000:
        producer.produce("orders", b"x", key=str(sent), on_delivery=delivered)
        sent += 1
        producer.poll(0.001)
    assert producer.flush(SECONDS_MAX) == 0
    thread.join()
    assert has_grown.is_set()
    assert failures == []
    assert set(places) == {0, 1, 2}
    assert len(places) == sent


def test_deleted_records_stay_deleted(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    create(admin, "orders")
    produce(broker, "orders", *(str(number).encode() for number in range(10)))
    where = TopicPartition("orders", 0, 4)
    assert admin.delete_records([where])[where].result(SECONDS_MAX).low_watermark == 4
    assert ends(broker, "orders") == (4, 10)
    broker.kill()
    broker.start()
    assert ends(broker, "orders") == (4, 10)


def test_a_deleted_topic_can_be_recreated_and_is_empty(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    create(admin, "orders")
    produce(broker, "orders", b"old")
    delete(admin, "orders")
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
        delete(admin, "orders")
    create(admin, "orders")
    assert ends(broker, "orders") == (0, 0)
    assert produce(broker, "orders", b"new") == []
    assert ends(broker, "orders") == (0, 1)


def test_a_deleted_topic_stays_deleted_after_a_kill(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    create(admin, "orders", 3)
    create(admin, "others")
    delete(admin, "orders")
    broker.kill()
    broker.start()
    again = an_admin(broker)
    topics = again.list_topics(timeout=SECONDS_MAX).topics
    assert list(topics) == ["others"]


def test_the_cluster_is_described(broker: BrokerProcess) -> None:
    admin = an_admin(broker)
    found = admin.describe_cluster().result(SECONDS_MAX)
    assert [node.id for node in found.nodes] == [1]
    assert found.cluster_id


def test_kafka_python_can_administer_the_broker(broker: BrokerProcess) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    topic = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "orders")
    admin.create_topics([kafka.admin.NewTopic("orders", 2, 1)])
    change = {"segment.ms": "5000"}
    admin.alter_configs(
        [kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, "orders", change)]
    )
    modified = admin.describe_configs([topic])["topic"]["orders"]
    assert {name: entry["value"] for name, entry in modified.items()} == change
    assert len(admin.describe_configs([topic], config_filter="all")["topic"]["orders"]) > 10
    admin.create_partitions({"orders": kafka.admin.NewPartitions(4)})
    assert len(admin.describe_topics(["orders"])[0]["partitions"]) == 4
    produce(broker, "orders", b"a", b"b", b"c")
    where = kafka.TopicPartition("orders", 0)
    assert admin.delete_records({where: 2})[where]["low_watermark"] == 2
    assert [node["broker_id"] for node in admin.describe_cluster()["brokers"]] == [1]
    (folder,) = admin.describe_log_dirs()[0]["log_dirs"]
    assert [t["name"] for t in folder["topics"]] == ["orders"]
    assert folder["topics"][0]["partitions"][0]["partition_size"] > 0
    admin.delete_topics(["orders"])
    assert admin.list_topics() == []
    admin.close()


def test_aiokafka_can_administer_the_broker(broker: BrokerProcess) -> None:
    async def go() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        await admin.create_topics([AIONewTopic("orders", 2, 1)])
        kind = aio_resource.ConfigResourceType.TOPIC
        change = aio_resource.ConfigResource(kind, "orders", configs={"segment.ms": "5000"})
        await admin.alter_configs([change])
        (found,) = await admin.describe_configs([aio_resource.ConfigResource(kind, "orders")])
        entries = {entry[0]: entry[1] for entry in found.resources[0][4]}
        assert entries["segment.ms"] == "5000"
        assert entries["retention.ms"] == "604800000"
        await admin.create_partitions({"orders": AIONewPartitions(3)})
        (topic,) = await admin.describe_topics(["orders"])
        assert len(topic["partitions"]) == 3
        where = AIOTopicPartition("orders", 0)
        assert await admin.delete_records({where: RecordsToDelete(before_offset=0)}) == {where: 0}
        assert len((await admin.describe_cluster())["brokers"]) == 1
        await admin.delete_topics(["orders"])
        assert await admin.list_topics() == []
        await admin.close()

    asyncio.run(go())
