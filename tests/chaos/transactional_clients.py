"""Clients of librdkafka that write in transactions, and one that reads what is committed."""

# mypy: disable-error-code="no-untyped-call"

import random
from collections.abc import Callable, Iterable
from itertools import count

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as Where

from tests.chaos.confluent_clients import CALL_SECONDS_MAX, FINAL_SECONDS_MAX, ends
from tests.chaos.history import NO_PARTITION, Outcome, Recorder, Transaction, Visible
from tests.chaos.job import TRANSACTIONS, Job, Stop, now

RECORDS_MAX = 5
TRIES_MAX = 10
ABORTS = 0.4
"""How many transactions are aborted, often before their records are answered."""
_PAUSE_SECONDS_MAX = 0.1
_RETRY_BACKOFF_MS = 1_000
"""So long that a batch whose answer was lost is still due for a retry when its producer aborts:
then librdkafka drops it, and reuses its sequence for the next one.
"""


def transact(job: Job, out: Recorder, stop: Stop) -> None:
    """Write one transaction after another; use a new producer after a fatal error."""
    numbers = count()
    chance = random.Random(job.name)
    while not stop.is_asked:
        _Transactor(job, out, chance).run(stop, numbers)


class _Transactor:
    """One transactional producer, from its creation to its end or its first fatal error."""

    def __init__(self, job: Job, out: Recorder, chance: random.Random) -> None:
        self._job = job
        self._out = out
        self._chance = chance
        self._producer = Producer(
            {
                "bootstrap.servers": job.bootstrap,
                "transactional.id": f"{TRANSACTIONS}-{job.name}",
                "linger.ms": 20,
                "retry.backoff.ms": _RETRY_BACKOFF_MS,
            }
        )

    def run(self, stop: Stop, numbers: Iterable[int]) -> None:
        if not self._has_done(lambda: self._producer.init_transactions(CALL_SECONDS_MAX)):
            return
        for number in numbers:
            if stop.is_asked or not self._transaction(number):
                break

    def _transaction(self, number: int) -> bool:
        """Write one transaction and end it; return whether the producer can go on."""
        amount = 1 + self._chance.randrange(RECORDS_MAX)
        values = tuple(f"{self._job.name}:{number}:{place}" for place in range(amount))
        begun = now()
        outcome, can_go_on, error = self._ended(values)
        self._out.add(
            Transaction(
                process=self._job.name,
                partition=NO_PARTITION,
                begun=begun,
                ended=now(),
                values=values,
                outcome=outcome,
                error=error,
            )
        )
        return can_go_on

    def _ended(self, values: tuple[str, ...]) -> tuple[Outcome, bool, str]:
        producer = self._producer
        try:
            producer.begin_transaction()
            for value in values:
                place = self._chance.randrange(self._job.partitions)
                producer.produce(TRANSACTIONS, value, partition=place)
            producer.poll(self._chance.random() * _PAUSE_SECONDS_MAX)
        except KafkaException as failed:  # what is not committed must never show
            return Outcome.FAILED, self._aborts(failed.args[0]), str(failed)
        if self._chance.random() < ABORTS:
            can_go_on = self._has_done(lambda: producer.abort_transaction(CALL_SECONDS_MAX))
            return Outcome.FAILED, can_go_on, ""
        try:
            self._persist(lambda: producer.commit_transaction(CALL_SECONDS_MAX))
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            if not error.txn_requires_abort():
                return Outcome.UNKNOWN, False, str(failed)
            can_go_on = self._aborts(error)
            return Outcome.FAILED if can_go_on else Outcome.UNKNOWN, can_go_on, str(failed)
        return Outcome.OK, True, ""

    def _aborts(self, error: KafkaError) -> bool:
        if error.fatal():
            return False
        return self._has_done(lambda: self._producer.abort_transaction(CALL_SECONDS_MAX))

    def _has_done(self, call: Callable[[], None]) -> bool:
        try:
            self._persist(call)
        except KafkaException:
            return False
        return True

    def _persist(self, call: Callable[[], None]) -> None:
        """Retry retriable errors; raises KafkaException for others."""
        for tries_left in reversed(range(TRIES_MAX)):
            try:
                call()
            except KafkaException as failed:
                if not failed.args[0].retriable() or not tries_left:
                    raise
            else:
                return


def read_transactions(job: Job, out: Recorder, stop: Stop) -> None:
    """Read everything committed in the end; a hanging transaction ends in a timeout."""
    reader = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": "nobody",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    begun = now()
    found: list[str] = []
    for partition in range(job.partitions):
        ends(reader, Where(TRANSACTIONS, partition))
        reader.assign([Where(TRANSACTIONS, partition, OFFSET_BEGINNING)])
        late = now() + FINAL_SECONDS_MAX * 10**9
        is_over = False
        while not is_over:
            assert now() < late, f"the end of partition {partition} is not reached"
            for message in reader.consume(500, 0.1):
                error, value = message.error(), message.value()
                if error is None:
                    assert value is not None
                    found.append(value.decode())
                elif error.code() == KafkaError._PARTITION_EOF:
                    is_over = True
    reader.close()
    out.add(
        Visible(
            process=job.name,
            partition=NO_PARTITION,
            begun=begun,
            ended=now(),
            values=tuple(found),
        )
    )
