"""Third-party clients written in Python, with default settings: aiokafka, kafka-python."""

# mypy: disable-error-code="no-untyped-call, attr-defined"

import asyncio
import warnings
from itertools import count
from typing import Any

from tests.chaos.history import Final, Outcome, Poll, Recorder, Send
from tests.chaos.job import TOPIC, Job, Stop, now

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    import kafka
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import KafkaError, MessageSizeTooLargeError
    from kafka import TopicPartition as KafkaPythonPartition
    from kafka.errors import KafkaTimeoutError

FLUSH_SECONDS_MAX = 30
FINAL_SECONDS_MAX = 60
START_TRIES_MAX = 30
IN_FLIGHT_MAX = 1_000
_POLL_MS = 100
_OFFSETS_MS_MAX = 5_000


def produce(job: Job, out: Recorder, stop: Stop) -> None:
    """Send with aiokafka to all partitions in turn until stopped."""
    asyncio.run(_Sender(job, out).run(stop))


class _Sender:
    """An idempotent producer of aiokafka; sends without an answer by the end are unknown."""

    def __init__(self, job: Job, out: Recorder) -> None:
        self._job = job
        self._out = out
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, stop: Stop) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self._job.bootstrap, enable_idempotence=True)
        await _started(producer)
        async with asyncio.TaskGroup() as group:
            for number in count():
                if stop.is_asked:
                    break
                if len(self._tasks) < IN_FLIGHT_MAX:
                    await self._send(producer, group, number)
                await asyncio.sleep(self._job.pause_ms / 1000)
        await asyncio.wait_for(producer.stop(), FLUSH_SECONDS_MAX)

    async def _send(self, producer: Any, group: asyncio.TaskGroup, number: int) -> None:
        partition = number % self._job.partitions
        value = f"{self._job.name}:{partition}:{number}"
        begun = now()
        try:
            future = await asyncio.wait_for(
                producer.send(TOPIC, value.encode(), partition=partition), FLUSH_SECONDS_MAX
            )
        except (KafkaError, TimeoutError) as error:
            self._add(value, partition, begun, Outcome.UNKNOWN, None, repr(error))
            return
        task = group.create_task(self._await(future, value, partition, begun))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await(self, future: Any, value: str, partition: int, begun: int) -> None:
        try:
            told = await asyncio.wait_for(future, FLUSH_SECONDS_MAX)
        except MessageSizeTooLargeError as error:
            self._add(value, partition, begun, Outcome.FAILED, None, repr(error))
        except (KafkaError, TimeoutError) as error:
            self._add(value, partition, begun, Outcome.UNKNOWN, None, repr(error))
        else:
            self._add(value, partition, begun, Outcome.OK, told.offset, "")

    def _add(
        self,
        value: str,
        partition: int,
        begun: int,
        outcome: Outcome,
        offset: int | None,
        error: str,
    ) -> None:
        self._out.add(
            Send(
                process=self._job.name,
                partition=partition,
                begun=begun,
                ended=now(),
                value=value,
                outcome=outcome,
                offset=offset,
                error=error,
            )
        )


def consume(job: Job, out: Recorder, stop: Stop) -> None:
    """Read all partitions with aiokafka from the beginning until stopped."""
    asyncio.run(_consume(job, out, stop))


async def _consume(job: Job, out: Recorder, stop: Stop) -> None:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=job.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    await _started(consumer)
    consumer.assign([TopicPartition(TOPIC, partition) for partition in range(job.partitions)])
    while not stop.is_asked:
        begun = now()
        for where, messages in (await consumer.getmany(timeout_ms=_POLL_MS)).items():
            out.add(
                Poll(
                    process=job.name,
                    partition=where.partition,
                    begun=begun,
                    ended=now(),
                    records=tuple((one.offset, (one.value or b"").decode()) for one in messages),
                )
            )
    await asyncio.wait_for(consumer.stop(), FLUSH_SECONDS_MAX)


async def _started(client: Any) -> None:
    """Start a client of aiokafka, which gives up at once if it reaches no broker."""
    for _ in range(START_TRIES_MAX):
        try:
            await client.start()
        except KafkaError:
            await asyncio.sleep(1)
        else:
            return
    raise TimeoutError("there is no broker to start with")


def read_all(job: Job, out: Recorder, stop: Stop) -> None:
    """Read everything with kafka-python after the producers have finished.

    A consumer of its version 3.0.12 whose offset request gets "not leader" asks the same broker
    again, thousands of times, and never the new leader. So each attempt has a new consumer.
    """
    for partition in range(job.partitions):
        for tries_left in reversed(range(START_TRIES_MAX)):
            try:
                found = _read_partition(job, partition)
            except KafkaTimeoutError:
                if not tries_left:
                    raise
            else:
                out.add(found)
                break


def _read_partition(job: Job, partition: int) -> Final:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=job.bootstrap, enable_auto_commit=False, auto_offset_reset="none"
    )
    begun = now()
    where = KafkaPythonPartition(TOPIC, partition)
    try:
        consumer.assign([where])
        start = consumer.beginning_offsets([where], timeout_ms=_OFFSETS_MS_MAX)[where]
        end = consumer.end_offsets([where], timeout_ms=_OFFSETS_MS_MAX)[where]
        consumer.seek(where, start)
        found: list[tuple[int, str]] = []
        late = now() + FINAL_SECONDS_MAX * 10**9
        while (not found or found[-1][0] + 1 < end) and start < end and now() < late:
            for messages in consumer.poll(_POLL_MS).values():
                found += [(one.offset, one.value.decode()) for one in messages]
    finally:
        consumer.close()
    return Final(
        process=job.name,
        partition=partition,
        begun=begun,
        ended=now(),
        start=start,
        end=end,
        records=tuple(seen for seen in found if seen[0] < end),
    )
