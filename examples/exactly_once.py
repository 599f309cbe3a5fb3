"""Invoices, exactly once: the output and the read position are committed together."""

import asyncio

from confluent_kafka import Consumer, Producer

from kafkaesque.testing.story import create, tell


def reader(bootstrap: str, group: str, topic: str) -> Consumer:
    """Return a consumer that skips open and aborted transactions."""
    place = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    ends = {"auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer(place | ends | {"isolation.level": "read_committed"})
    consumer.subscribe([topic])
    return consumer


def bill(bootstrap: str, crash_at: bytes = b"") -> None:
    """Write one invoice for each order, up to the end of the orders."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "billing"})
    producer.init_transactions(30)
    consumer = reader(bootstrap, "billing", "sold")
    try:
        while (message := consumer.poll(30)) and message.error() is None:
            producer.begin_transaction()
            producer.produce("invoices", b"invoice of " + (message.value() or b""))
            if message.value() == crash_at:
                producer.flush()
                raise RuntimeError("the power is gone")
            places = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
    finally:
        consumer.close()


async def story(bootstrap: str) -> bool:
    """Let billing crash within a transaction, and check the invoices afterwards."""
    create(bootstrap, "sold", "invoices")
    shop = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(10):
        shop.produce("sold", str(number))
    shop.flush(30)
    try:
        await asyncio.to_thread(bill, bootstrap, b"3")
    except RuntimeError as error:
        print(f"An invoice was written, but not committed: {error}")
    await asyncio.to_thread(bill, bootstrap)
    books, seen = reader(bootstrap, "books", "invoices"), []
    while (invoice := books.poll(30)) and invoice.error() is None:
        seen.append((invoice.value() or b"").decode())
    books.close()
    print("Committed:", *seen, sep="\n  ")
    return seen == [f"invoice of {number}" for number in range(10)]


if __name__ == "__main__":
    tell(story)
