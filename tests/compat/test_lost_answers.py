"""Transactions of librdkafka with lost answers to their writes: committed records are there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import KafkaException, Producer

from kafkaesque.testing.process import BrokerProcess
from tests.compat.test_transactions import SECONDS_MAX, producer, seen, topics
from tests.lost_answers import LostAnswers

pytestmark = pytest.mark.compat

TRIES_MAX = 5
CALL_SECONDS_MAX = 10.0
TRANSACTIONS = 4


class _Next:
    """Loses the next answer on request."""

    def __init__(self) -> None:
        self.is_due = False
        self.has_come = Event()

    def __call__(self) -> bool:
        is_due, self.is_due = self.is_due, False
        if is_due:
            self.has_come.set()
        return is_due


@contextmanager
def behind(is_lost: _Next, data: Path) -> Iterator[BrokerProcess]:
    """Run a broker behind a proxy that loses some answers."""
    with LostAnswers(is_lost) as proxy:
        broker = BrokerProcess(data, ["--advertised", proxy.bootstrap])
        broker.start()
        try:
            proxy.target_port = broker.port
            yield broker
        finally:
            broker.kill()


def ended(writer: Producer, end: Callable[[float], None]) -> None:
    """Commit or abort; retry a call that timed out, as librdkafka requires."""
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            end(CALL_SECONDS_MAX)
        except KafkaException as failed:
            if not failed.args[0].retriable() or not tries_left:
                raise
            writer.poll(0)
        else:
            return


def committed(writer: Producer, values: list[str]) -> list[str]:
    """Write until a transaction is committed; return its records."""
    for attempt in range(TRIES_MAX):
        written = [f"{value} of try {attempt}" for value in values]
        writer.begin_transaction()
        try:
            for value in written:
                writer.produce("orders", value, partition=0)
            ended(writer, writer.commit_transaction)
        except KafkaException as failed:
            error = failed.args[0]
            assert error.txn_requires_abort(), str(error)
            ended(writer, writer.abort_transaction)
        else:
            return written
    raise AssertionError(f"no try of {TRIES_MAX} was committed")


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_commit_after_a_lost_answer_keeps_all_records(tmp_path: Path, size: int) -> None:
    is_lost = _Next()
    with behind(is_lost, tmp_path / "data") as broker:
        topics(broker, "orders")
        # It retries so late that it is asked to abort before.
        writer = producer(broker, "t", linger_ms=50, retry_backoff_ms=1_000)
        wanted = committed(writer, ["first"])
        writer.begin_transaction()
        is_lost.is_due = True
        for place in range(3):
            writer.produce("orders", f"lost {place}", partition=0)
        assert is_lost.has_come.wait(SECONDS_MAX)
        ended(writer, writer.abort_transaction)
        for number in range(TRANSACTIONS):
            wanted += committed(writer, [f"{number}.{place}" for place in range(size)])
        assert seen(broker, "orders") == sorted(wanted)
