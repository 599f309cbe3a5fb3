"""Clients of librdkafka with default settings that record what they do and see."""

# mypy: disable-error-code="no-untyped-call"

import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import count

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.chaos.history import (
    Assign,
    Commit,
    Committed,
    Final,
    Outcome,
    OutOfRange,
    Poll,
    Recorder,
    Send,
)
from tests.chaos.job import GROUP, TOPIC, Job, Stop, now

FLUSH_SECONDS_MAX = 30
CALL_SECONDS_MAX = 30
_ASKS_MAX = 10
_ASK_AGAIN_S = 1.0
FINAL_SECONDS_MAX = 60
_POLL_SECONDS = 0.1
_RECORDS_PER_POLL = 500
_POLLS_PER_COMMIT = 5

REFUSED = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP}
"""Errors after which a record is definitely not written; after any other it may be, because
the client may have sent it more than once before it gave up.
"""


def produce(job: Job, out: Recorder, stop: Stop) -> None:
    """Send to all partitions in turn until stopped; use a new producer after a fatal error."""
    numbers = count()
    for life in count():
        if stop.is_asked:
            return
        _Sender(job, out, f"{job.name}.{life}").run(stop, numbers)


class _Sender:
    """One idempotent producer, from its creation to its end or its first fatal error."""

    def __init__(self, job: Job, out: Recorder, process: str) -> None:
        self._job = job
        self._out = out
        self._process = process
        self._open: dict[str, Send] = {}
        self._is_broken = False
        self._producer = Producer(
            {
                "bootstrap.servers": job.bootstrap,
                "enable.idempotence": True,
                "error_cb": self._on_error,
            }
        )

    def run(self, stop: Stop, numbers: Iterable[int]) -> None:
        for number in numbers:
            if stop.is_asked or self._is_broken:
                break
            self._send(number)
            self._producer.poll(0)
            stop.pause(self._job.pause_ms)
        self._producer.flush(FLUSH_SECONDS_MAX)
        for send in list(self._open.values()):
            self._close(send, Outcome.UNKNOWN, None, "not answered")

    def _send(self, number: int) -> None:
        partition = number % self._job.partitions
        value = f"{self._process}:{partition}:{number}"
        send = Send(
            process=self._process,
            partition=partition,
            begun=now(),
            ended=0,
            value=value,
            outcome=Outcome.UNKNOWN,
        )
        try:
            self._producer.produce(
                TOPIC, value, partition=partition, on_delivery=self._on_delivered
            )
        except BufferError:  # the client's own queue is full: this one was never sent
            return
        self._open[value] = send

    def _on_delivered(self, error: KafkaError | None, message: Message) -> None:
        value = message.value()
        assert value is not None
        send = self._open[value.decode()]
        if error is None:
            self._close(send, Outcome.OK, message.offset(), "")
            return
        outcome = Outcome.FAILED if error.code() in REFUSED else Outcome.UNKNOWN
        self._close(send, outcome, None, str(error))

    def _close(self, send: Send, outcome: Outcome, offset: int | None, error: str) -> None:
        del self._open[send.value]
        self._out.add(
            Send(
                process=send.process,
                partition=send.partition,
                begun=send.begun,
                ended=now(),
                value=send.value,
                outcome=outcome,
                offset=offset,
                error=error,
            )
        )

    def _on_error(self, error: KafkaError) -> None:
        self._is_broken = self._is_broken or error.fatal()


class _Reader:
    """What assigned consumers and group members have in common."""

    def __init__(self, job: Job, out: Recorder, group: str) -> None:
        self._job = job
        self._out = out
        self.group = group
        self.consumer = Consumer(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": group or "nobody",
                "enable.auto.commit": False,
                # A silent reset would hide a lost position.
                "auto.offset.reset": "earliest" if group else "error",
            }
        )

    def poll(self) -> dict[int, int]:
        """Read a little; return the next offset of each partition that returned records."""
        begun = now()
        found: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for message in self.consumer.consume(_RECORDS_PER_POLL, _POLL_SECONDS):
            error = message.error()
            partition, offset, value = message.partition(), message.offset(), message.value()
            if error is None:
                assert partition is not None and offset is not None and value is not None
                found[partition].append((offset, value.decode()))
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                self._out.add(
                    OutOfRange(
                        process=self._job.name, partition=partition or 0, begun=begun, ended=now()
                    )
                )
        for partition, records in found.items():
            self._out.add(
                Poll(
                    process=self._job.name,
                    partition=partition,
                    begun=begun,
                    ended=now(),
                    records=tuple(records),
                    group=self.group,
                )
            )
        return {partition: records[-1][0] + 1 for partition, records in found.items()}


def consume_assigned(job: Job, out: Recorder, stop: Stop) -> None:
    """Read all partitions from the beginning until stopped."""
    reader = _Reader(job, out, "")
    reader.consumer.assign(
        [TopicPartition(TOPIC, partition, OFFSET_BEGINNING) for partition in range(job.partitions)]
    )
    while not stop.is_asked:
        reader.poll()
    reader.consumer.close()


def consume_slowly(job: Job, out: Recorder, stop: Stop) -> None:
    """Read like `consume_assigned`, but pause between polls: other clients must not notice."""
    reader = _Reader(job, out, "")
    reader.consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    while not stop.is_asked:
        reader.poll()
        stop.pause(500)
    reader.consumer.close()


def consume_in_group(job: Job, out: Recorder, stop: Stop) -> None:
    """Read as a group member that commits what it has read."""
    member = _Member(job, out)
    polls = 0
    while not stop.is_asked:
        member.read()
        polls += 1
        if polls % _POLLS_PER_COMMIT == 0:
            member.commit()
    member.close()


class _Member:
    """A group member; it only knows the positions of its assigned partitions."""

    def __init__(self, job: Job, out: Recorder) -> None:
        self._job = job
        self._out = out
        self._places: dict[int, int] = {}
        self._reader = _Reader(job, out, GROUP)
        self._reader.consumer.subscribe(
            [TOPIC], on_assign=self._on_assign, on_revoke=self._on_revoke
        )

    def read(self) -> None:
        self._places.update(self._reader.poll())

    def commit(self) -> None:
        """Commit, and fetch the committed offset at once."""
        for partition, place in list(self._places.items()):
            self._commit(partition, place)

    def close(self) -> None:
        self._reader.consumer.close()

    def _commit(self, partition: int, place: int) -> None:
        begun = now()
        where = [TopicPartition(TOPIC, partition, place)]
        outcome = Outcome.OK
        try:
            answer = self._reader.consumer.commit(offsets=where, asynchronous=False)
            if answer and any(one.error for one in answer):
                outcome = Outcome.UNKNOWN
        except KafkaException:
            outcome = Outcome.UNKNOWN
        self._out.add(
            Commit(
                process=self._job.name,
                partition=partition,
                begun=begun,
                ended=now(),
                group=GROUP,
                offset=place,
                outcome=outcome,
            )
        )

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._places.pop(one.partition, None)
            at = now()
            self._out.add(
                Assign(process=self._job.name, partition=one.partition, begun=at, ended=at)
            )

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            self._places.pop(one.partition, None)


def read_places(job: Job, out: Recorder, stop: Stop) -> None:
    """Fetch the committed offsets of the group once."""
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": GROUP})
    begun = now()
    wanted = [TopicPartition(TOPIC, partition) for partition in range(job.partitions)]
    for one in consumer.committed(wanted, CALL_SECONDS_MAX):
        out.add(
            Committed(
                process=job.name,
                partition=one.partition,
                begun=begun,
                ended=now(),
                group=GROUP,
                offset=one.offset if one.offset >= 0 else None,
            )
        )
    consumer.close()


def ends(reader: Consumer, where: TopicPartition) -> tuple[int, int]:
    """Return a partition's first and end offset; retry errors of a leader change."""
    for attempt in range(_ASKS_MAX):
        try:
            found = reader.get_watermark_offsets(where, CALL_SECONDS_MAX)
        except KafkaException:
            if attempt == _ASKS_MAX - 1:
                raise
            time.sleep(_ASK_AGAIN_S)
        else:
            return int(found[0]), int(found[1])
    raise AssertionError("the last one returns or raises")


def read_all(job: Job, out: Recorder, stop: Stop) -> None:
    """Read everything after the producers have finished."""
    reader = Consumer({"bootstrap.servers": job.bootstrap, "group.id": "nobody"})
    for partition in range(job.partitions):
        begun = now()
        where = TopicPartition(TOPIC, partition)
        start, end = ends(reader, where)
        reader.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
        found: list[tuple[int, str]] = []
        late = now() + FINAL_SECONDS_MAX * 10**9
        while (not found or found[-1][0] + 1 < end) and start < end and now() < late:
            for message in reader.consume(_RECORDS_PER_POLL, _POLL_SECONDS):
                value, offset = message.value(), message.offset()
                if message.error() is None:
                    assert offset is not None and value is not None
                    found.append((offset, value.decode()))
        out.add(
            Final(
                process=job.name,
                partition=partition,
                begun=begun,
                ended=now(),
                start=start,
                end=end,
                records=tuple(seen for seen in found if seen[0] < end),
            )
        )
    reader.close()
