"""Meter readings, at most once: the offset is committed before the work, so a crash loses."""

import asyncio
from collections.abc import Callable

from confluent_kafka import Consumer, Producer

from kafkaesque.testing.story import create, tell


def send(bootstrap: str, readings: range) -> None:
    """Send readings without waiting for acknowledgements."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": 0, "retries": 0})
    for reading in readings:
        producer.produce("readings", str(reading))
    producer.flush()


def read(bootstrap: str, handle: Callable[[str], None]) -> None:
    """Handle readings up to the end of the topic, each at most once."""
    place = {"bootstrap.servers": bootstrap, "group.id": "meters", "enable.auto.commit": False}
    ends = {"auto.offset.reset": "earliest", "enable.partition.eof": True}
    consumer = Consumer(place | ends)
    consumer.subscribe(["readings"])
    try:
        while (message := consumer.poll(30)) and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
            handle((message.value() or b"").decode())
    finally:
        consumer.close()


async def story(bootstrap: str) -> bool:
    """Let a reader crash at the fourth reading, and another take over."""
    seen: list[str] = []

    def crash(reading: str) -> None:
        if reading == "3":
            raise RuntimeError("the power is gone")
        seen.append(reading)

    create(bootstrap, "readings")
    await asyncio.to_thread(send, bootstrap, range(10))
    try:
        await asyncio.to_thread(read, bootstrap, crash)
    except RuntimeError as error:
        print(f"Reading 3 was committed, but not handled: {error}")
    await asyncio.to_thread(read, bootstrap, seen.append)
    print("Handled:", *seen)
    return seen == list("012456789")


if __name__ == "__main__":
    tell(story)
