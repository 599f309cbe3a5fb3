"""Orders in a queue: each goes to one packer, and one that is given back goes to another."""

import asyncio
from collections.abc import Iterator

from confluent_kafka import AcknowledgeType, Message, Producer, ShareConsumer

from kafkaesque.testing.story import create, start_at_the_beginning, tell

GROUP = "packers"


def orders(bootstrap: str, count: int) -> Iterator[tuple[ShareConsumer, Message]]:
    """Join the share group, and yield the next orders as they come."""
    settings = {"group.id": GROUP, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer({"bootstrap.servers": bootstrap, **settings})
    consumer.subscribe(["orders"])
    try:
        while count > 0:
            for message in consumer.poll(1):
                yield consumer, message
                count -= 1
    finally:
        consumer.close()  # sends the last acknowledgements, and leaves the group


def pack(bootstrap: str) -> list[str]:
    """Pack six orders; the first packer has no box for the fifth, and gives it back."""
    packed = []
    for consumer, message in orders(bootstrap, 6):
        order = (message.value() or b"").decode()
        if order == "5":
            consumer.acknowledge(message, AcknowledgeType.RELEASE)
        else:
            packed.append(order)
            consumer.acknowledge(message)
    for consumer, message in orders(bootstrap, 1):
        packed.append((message.value() or b"").decode())
        print(f"Order {packed[-1]} was delivered {message.delivery_count()} times.")
        consumer.acknowledge(message)
    return packed


async def story(bootstrap: str) -> bool:
    """Send six orders, and let two packers share them."""
    create(bootstrap, "orders")
    start_at_the_beginning(bootstrap, GROUP)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(1, 7):
        producer.produce("orders", str(number))
    producer.flush()
    packed = await asyncio.to_thread(pack, bootstrap)
    print("Packed:", *packed)
    return packed == list("123465")


if __name__ == "__main__":
    tell(story)
