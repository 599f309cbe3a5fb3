"""Parcels, at least once: the offset is committed after the work, so a crash repeats."""

import asyncio
from collections.abc import Callable

from confluent_kafka import Consumer, Producer

from kafkaesque.testing.story import create, tell


def send(bootstrap: str, parcels: range) -> None:
    """Send parcels until each of them is acknowledged; each is written once."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for parcel in parcels:
        producer.produce("parcels", str(parcel))
    if producer.flush(30):
        raise TimeoutError("not all parcels were acknowledged: send them again")


def read(bootstrap: str, handle: Callable[[str], None]) -> None:
    """Handle parcels up to the end of the topic, each at least once."""
    place = {"bootstrap.servers": bootstrap, "group.id": "couriers", "enable.auto.commit": False}
    ends = {"auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer(place | ends)
    consumer.subscribe(["parcels"])
    try:
        while (message := consumer.poll(30)) and message.error() is None:
            handle((message.value() or b"").decode())
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


async def story(bootstrap: str) -> bool:
    """Let a courier crash after the fourth parcel, and another take over."""
    seen: list[str] = []

    def crash(parcel: str) -> None:
        seen.append(parcel)
        if parcel == "3":
            raise RuntimeError("the van broke down")

    create(bootstrap, "parcels")
    await asyncio.to_thread(send, bootstrap, range(10))
    try:
        await asyncio.to_thread(read, bootstrap, crash)
    except RuntimeError as error:
        print(f"Parcel 3 was handled, but not committed: {error}")
    await asyncio.to_thread(read, bootstrap, seen.append)
    print("Handled:", *seen)
    return seen == list("01233456789")


if __name__ == "__main__":
    tell(story)
