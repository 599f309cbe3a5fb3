"""Clients of librdkafka that fill a queue, share it, and empty it in the end."""

# mypy: disable-error-code="no-untyped-call"

import os
import random
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import count
from typing import NoReturn

from confluent_kafka import (
    AcknowledgeType,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
)

from kafkaesque.client.address import parse_addresses
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.router import Router, Surroundings
from kafkaesque.clock import SystemClock
from kafkaesque.errors import KafkaesqueError
from kafkaesque.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
)
from tests.chaos.confluent_clients import CALL_SECONDS_MAX, FINAL_SECONDS_MAX, FLUSH_SECONDS_MAX
from tests.chaos.history import Accept, Delivery, Drained, Outcome, Put, Recorder
from tests.chaos.job import QUEUE, SHARERS, Job, Stop, now

RELEASES = 0.02
"""How many records are given back at their first delivery."""
LIFE_SECONDS = (1.0, 4.0)
"""How long a consumer lives before its process uses a new one, at least and at most: only what a
consumer receives that is newer than an acceptance is surely delivered after it.
"""
_PAUSE_MS = 5
_POLL_SECONDS = 0.2
_JOIN_SECONDS_MAX = 5.0
_LAG_VERSION = 1


def fill(job: Job, out: Recorder, stop: Stop) -> None:
    """Write to all partitions of the queue in turn until stopped."""
    numbers = count()
    while not stop.is_asked:
        fatal: list[KafkaError] = []
        producer = Producer(
            {
                "bootstrap.servers": job.bootstrap,
                "enable.idempotence": True,
                "error_cb": lambda error, fatal=fatal: (
                    fatal.append(error) if error.fatal() else None
                ),
            }
        )
        while not (stop.is_asked or fatal):
            number = next(numbers)
            producer.produce(
                QUEUE,
                f"{job.name}:{number}",
                partition=number % job.partitions,
                on_delivery=partial(_put, job, out, now()),
            )
            producer.poll(0)
            stop.pause(_PAUSE_MS)
        producer.flush(FLUSH_SECONDS_MAX)


def _put(job: Job, out: Recorder, begun: int, error: KafkaError | None, message: Message) -> None:
    """Record what was acknowledged; anything else may be there or not."""
    if error is None:
        where, value = _place(message)
        out.add(Put(process=job.name, partition=where, begun=begun, ended=now(), value=value))


def _place(message: Message) -> tuple[int, str]:
    partition, value = message.partition(), message.value()
    assert partition is not None and value is not None
    return partition, value.decode()


def _seen(message: Message) -> tuple[int, str, int]:
    offset, times = message.offset(), message.delivery_count()
    assert offset is not None and times is not None
    return offset, _place(message)[1], times


def share(job: Job, out: Recorder, stop: Stop) -> None:
    """Take records and accept most of them, as one short-lived consumer after another."""
    chance = random.Random(job.name)
    while not stop.is_asked:
        member = _Member(job, out, chance, RELEASES)
        late = time.monotonic() + chance.uniform(*LIFE_SECONDS)
        while not stop.is_asked and (time.monotonic() < late or not member.has_taken):
            member.take()
        late = time.monotonic() + _JOIN_SECONDS_MAX
        while not member.has_taken and time.monotonic() < late:
            member.take()
        if member.has_taken:
            member.close()
        else:
            _leave_without_closing()


def empty(job: Job, out: Recorder, stop: Stop) -> None:
    """Accept everything that is left, until the brokers say that nothing is, or for too long."""
    member = _Member(job, out, random.Random(job.name), 0.0)
    begun = now()
    around = Surroundings(clock=SystemClock(), chance=random.Random(), sleep=time.sleep)
    router = Router(parse_addresses(job.bootstrap), ClientConfig(), around)
    late = time.monotonic() + FINAL_SECONDS_MAX
    lags: Mapping[int, int] = {}
    while time.monotonic() < late:
        if member.take():
            continue
        try:
            lags = _lags(router, job.partitions)
        except KafkaesqueError:  # an election, perhaps: ask again
            continue
        if not any(lags.values()):
            break
    router.close()
    for partition in range(job.partitions):
        lag = lags.get(partition, -1)
        out.add(Drained(process=job.name, partition=partition, begun=begun, ended=now(), lag=lag))
    _leave_without_closing()


def _leave_without_closing() -> NoReturn:
    """End this process; a consumer that receives its first partitions while it closes would hang.

    librdkafka 2.16 then waits forever for partitions that it does not release.
    """
    os._exit(0)


def _lags(router: Router, partitions: int) -> Mapping[int, int]:
    """Return how many records of each partition are not done; -1 if that is not known."""
    topic = DescribeShareGroupOffsetsRequestTopic(
        topic_name=QUEUE, partitions=tuple(range(partitions))
    )
    group = DescribeShareGroupOffsetsRequestGroup(group_id=SHARERS, topics=(topic,))
    said = router.question(
        lambda: router.ask_coordinator(
            SHARERS,
            DescribeShareGroupOffsetsRequest(groups=(group,)),
            DescribeShareGroupOffsetsResponse,
        )
    )
    lags = dict.fromkeys(range(partitions), -1)
    for answered in said.groups[0].topics:
        lags |= {one.partition_index: one.lag for one in answered.partitions if not one.error_code}
    return lags


class _Member:
    """A member of the share group that acknowledges each record explicitly."""

    def __init__(self, job: Job, out: Recorder, chance: random.Random, releases: float) -> None:
        self._job = job
        self._out = out
        self._chance = chance
        self._releases = releases
        self._since = now()
        self.has_taken = False
        """Whether it has partitions, so that it can be closed."""
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": job.bootstrap,
                "group.id": SHARERS,
                "share.acknowledgement.mode": "explicit",
            }
        )
        self._consumer.subscribe([QUEUE])

    def take(self) -> int:
        """Take some records and acknowledge them; return how many there were."""
        begun = now()
        found: dict[int, list[Message]] = defaultdict(list)
        for message in self._consumer.poll(_POLL_SECONDS):
            if message.error() is None:
                found[_place(message)[0]].append(message)
        for partition, messages in found.items():
            self._out.add(
                Delivery(
                    process=self._job.name,
                    partition=partition,
                    begun=begun,
                    ended=now(),
                    since=self._since,
                    records=tuple(map(_seen, messages)),
                )
            )
        if found:
            self.has_taken = True
            self._acknowledge(found)
        return sum(map(len, found.values()))

    def close(self) -> None:
        """Leave the group; only for a member that has taken something."""
        try:
            self._consumer.close()
        except KafkaException as failed:  # nothing is pending; its locks end anyway
            sys.stderr.write(f"close: {failed}\n")

    def _acknowledge(self, found: Mapping[int, Sequence[Message]]) -> None:
        accepted: dict[int, list[str]] = defaultdict(list)
        for partition, messages in found.items():
            for message in messages:
                is_first = message.delivery_count() == 1
                if is_first and self._chance.random() < self._releases:
                    self._consumer.acknowledge(message, AcknowledgeType.RELEASE)
                else:
                    self._consumer.acknowledge(message)
                    accepted[partition].append(_place(message)[1])
        begun = now()
        errors: dict[int, KafkaException | None] = {}
        unanswered = "not answered"
        try:
            answer = self._consumer.commit_sync(CALL_SECONDS_MAX)
            errors = {where.partition: error for where, error in answer.items()}
        except KafkaException as failed:
            unanswered = str(failed)
        for partition, values in accepted.items():
            error = errors.get(partition) if partition in errors else unanswered
            self._out.add(
                Accept(
                    process=self._job.name,
                    partition=partition,
                    begun=begun,
                    ended=now(),
                    values=tuple(values),
                    # A refused one may have counted: the client repeats what was not answered.
                    outcome=Outcome.OK if error is None else Outcome.UNKNOWN,
                    error="" if error is None else str(error),
                )
            )
