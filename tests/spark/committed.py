"""The committed records of a topic."""

from confluent_kafka import Consumer, TopicPartition

from tests.spark.conftest import Topics

SECONDS_MAX = 30.0


def committed(topics: Topics, topic: str) -> list[int]:
    """Return the numbers that a reader of committed records gets, with a third-party client."""
    consumer = Consumer(
        {
            "bootstrap.servers": topics.bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    count = len(topics.admin.topics.describe(topic).partitions)
    consumer.assign([TopicPartition(topic, index, 0) for index in range(count)])
    found: list[int] = []
    ended: set[int | None] = set()
    while len(ended) < count:
        message = consumer.poll(SECONDS_MAX)
        assert message is not None, "every partition is read to its end in time"
        if message.error() is not None:
            ended.add(message.partition())
        else:
            found.append(int(message.value() or b""))
    consumer.close()
    return sorted(found)
