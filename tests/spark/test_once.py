"""Of all attempts, drivers and repetitions of a batch, one complete set of writes counts."""

import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from kafkaesque.client.errors import DriverFenced, OlderBatch, Refused
from kafkaesque.client.prepared import TransactionalProducer
from kafkaesque.client.producer import EncodedRecords
from kafkaesque.clock import SystemClock
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.record.view import HEADER_BYTES
from kafkaesque.spark.clients import admin_of, forget_all, producer_of
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.once import SINK, Attempted, attempt, decide, register, take_back
from kafkaesque.spark.options import Mode, WriteOptions, parse_write
from kafkaesque.transactional_ids import BatchTransactionId
from kafkaesque.wire.apis import PRIVATE_KEY_FIRST
from tests.client.fake_broker import ALL_VERSIONS, FakeBroker
from tests.spark.committed import SECONDS_MAX, committed
from tests.spark.conftest import Topics

pytestmark = pytest.mark.spark

PARTITION = 0


def encoded(numbers: Sequence[int]) -> EncodedRecords:
    """Return records with these numbers as values."""
    now_ms = SystemClock().now_ms()
    records = [
        Record(offset=n, timestamp_ms=now_ms, key=None, value=b"%d" % number)
        for n, number in enumerate(numbers)
    ]
    data = bytes(build_batch(records))[HEADER_BYTES:]
    return EncodedRecords(data=data, count=len(records), timestamp_ms=now_ms)


def settles(topics: Topics, topic: str) -> bool:
    """Return whether soon no open transaction blocks readers of committed records."""
    deadline = time.monotonic() + SECONDS_MAX
    while time.monotonic() < deadline:
        if is_settled(topics, topic):
            return True
    return False


def is_settled(topics: Topics, topic: str) -> bool:
    """Return whether no open transaction blocks readers of committed records."""
    place = (topic, PARTITION)
    ends = [
        topics.admin.topics.offsets([place], -1, is_committed=is_committed)[place]
        for is_committed in (False, True)
    ]
    return ends[0] == ends[1]


class Query:
    """A query that writes to a separate topic, and whose drivers and tasks a test controls."""

    def __init__(self, topics: Topics, name: str) -> None:
        self.name = name
        self.topic = topics.create(f"once-{name}")
        given = topics.options(topic=self.topic, deliveryGuarantee="exactly-once")
        self.options: WriteOptions = parse_write(given, Mode.BATCH)
        self._topics = topics
        self._attempts = 0

    @property
    def found(self) -> list[int]:
        return committed(self._topics, self.topic)

    def driver(self) -> int:
        return register(self.options.cluster, self.name)

    def id(self, driver: int, batch: int, task: int = 0) -> BatchTransactionId:
        self._attempts += 1
        return BatchTransactionId(self.name, SINK, batch, driver, task, self._attempts)

    def run(self, driver: int, batch: int, numbers: Sequence[int], task: int = 0) -> Attempted:
        return attempt(self.options, self.id(driver, batch, task), self.writes(numbers))

    def decide(self, batch: int, *attempts: Attempted) -> None:
        decide(self.options.cluster, batch, attempts)

    def writes(self, numbers: Sequence[int]) -> Callable[[TransactionalProducer], int]:
        def write(producer: TransactionalProducer) -> int:
            producer.send({(self.topic, PARTITION): encoded(numbers)})
            return len(numbers)

        return write

    def producer(self, driver: int, batch: int) -> TransactionalProducer:
        """Return a producer with an open transaction, like that of a running task."""
        name = str(self.id(driver, batch))
        admin = admin_of(self.options.cluster)
        return admin.transactional_producer(name, self.options.codec, timeout_ms=60_000)

    def commit_alone(self, name: str, numbers: Sequence[int]) -> None:
        """Write in a transaction that only its producer ends."""
        admin = admin_of(self.options.cluster)
        name = f"{self.name} {name}"
        producer = admin.transactional_producer(name, self.options.codec, timeout_ms=60_000)
        producer.send({(self.topic, PARTITION): encoded(numbers)})
        producer.commit()

    def write_at_least_once(self, numbers: Sequence[int]) -> None:
        producer = producer_of(self.options.cluster, self.options.codec)
        producer.send({(self.topic, PARTITION): encoded(numbers)})


@pytest.fixture
def query(topics: Topics, request: pytest.FixtureRequest) -> Iterator[Query]:
    yield Query(topics, f"{abs(hash(request.node.name)):x}")


def test_prepared_records_count_once_their_batch_is_decided_and_not_before(query: Query) -> None:
    driver = query.driver()
    attempts = [query.run(driver, 0, [1, 2]), query.run(driver, 0, [3], task=1)]
    assert query.found == []
    query.decide(0, *attempts)
    assert query.found == [1, 2, 3]


def test_a_batch_repeated_after_its_decision_is_not_written_again(query: Query) -> None:
    driver = query.driver()
    query.decide(0, query.run(driver, 0, [1, 2]))
    again = query.run(query.driver(), 0, [1, 2])
    assert again.transaction is None
    query.decide(0, again)
    assert query.found == [1, 2]


def test_a_repeated_batch_with_at_least_once_is_duplicated(query: Query) -> None:
    """The control of the test above: without decisions the same story ends like this."""
    query.write_at_least_once([1, 2])
    query.write_at_least_once([1, 2])
    assert query.found == [1, 1, 2, 2]


def test_a_replaced_driver_cannot_decide(query: Query) -> None:
    old = query.driver()
    of_old = query.run(old, 0, [1, 2])
    new = query.driver()
    with pytest.raises(DriverFenced, match="taken over"):
        query.decide(0, of_old)
    query.decide(0, query.run(new, 0, [1, 2]))
    assert query.found == [1, 2]


def test_two_drivers_without_a_decision_write_everything_twice(query: Query) -> None:
    """The control of the test above: each ends its own transaction, as with plain Kafka."""
    for name in ("one driver", "another"):
        query.commit_alone(name, [1, 2])
    assert query.found == [1, 1, 2, 2]


def test_a_task_of_an_older_driver_cannot_write_any_more(query: Query, topics: Topics) -> None:
    zombie = query.producer(query.driver(), 0)
    zombie.send({(query.topic, PARTITION): encoded([1])})
    new = query.driver()
    with pytest.raises(Refused):
        zombie.send({(query.topic, PARTITION): encoded([2])})
    query.decide(0, query.run(new, 0, [1, 2]))
    assert query.found == [1, 2]
    assert settles(topics, query.topic)


def test_a_task_of_an_older_driver_cannot_begin_any_more(query: Query) -> None:
    old = query.driver()
    query.driver()
    with pytest.raises(Refused):
        query.run(old, 0, [1])


def test_of_concurrent_attempts_only_the_named_one_counts(query: Query, topics: Topics) -> None:
    driver = query.driver()
    first, second = query.run(driver, 0, [1, 2]), query.run(driver, 0, [1, 2])
    assert first.transaction is not None
    assert second.transaction is not None
    query.decide(0, second)
    assert query.found == [1, 2]
    assert settles(topics, query.topic)


def test_all_named_attempts_count(query: Query) -> None:
    """The control of the test above: naming is what makes the difference."""
    driver = query.driver()
    query.decide(0, query.run(driver, 0, [1, 2]), query.run(driver, 0, [1, 2]))
    assert query.found == [1, 1, 2, 2]


def test_a_lost_attempt_blocks_nothing(query: Query, topics: Topics) -> None:
    driver = query.driver()
    query.producer(driver, 0).send({(query.topic, PARTITION): encoded([1])})
    assert not is_settled(topics, query.topic)
    query.decide(0, query.run(driver, 0, [1, 2]))
    assert query.found == [1, 2]
    assert settles(topics, query.topic)


def test_a_repetition_whose_tasks_have_other_rows_counts_as_a_whole(query: Query) -> None:
    old = query.driver()
    query.run(old, 0, [1, 2, 3])  # task 0 is done, and the driver dies before task 1 is
    new = query.driver()
    tasks = [query.run(new, 0, [5, 3, 1]), query.run(new, 0, [4, 2, 6], task=1)]
    query.decide(0, *tasks)
    assert query.found == [1, 2, 3, 4, 5, 6]


def test_tasks_with_other_rows_deduplicated_one_by_one_lose_and_duplicate_rows(
    query: Query,
) -> None:
    """The control of the test above: task 0 counts from the first run, task 1 from the second."""
    query.commit_alone("task 0", [1, 2, 3])
    query.commit_alone("task 1", [4, 2, 6])
    assert query.found == [1, 2, 2, 3, 4, 6]


def test_an_older_checkpoint_is_noticed_before_anything_is_written(query: Query) -> None:
    driver = query.driver()
    for batch in range(3):
        query.decide(batch, query.run(driver, batch, [batch]))
    with pytest.raises(OlderBatch, match="an older checkpoint of the query was restored"):
        query.run(query.driver(), 1, [1])
    assert query.found == [0, 1, 2]


def test_a_batch_without_rows_is_decided_too(query: Query) -> None:
    driver = query.driver()
    empty = attempt(query.options, query.id(driver, 4), lambda _: 0)
    assert empty.transaction is None
    query.decide(4, empty)
    with pytest.raises(OlderBatch):
        query.run(driver, 3, [1])


def test_unneeded_prepared_transactions_are_aborted(query: Query, topics: Topics) -> None:
    prepared = query.run(query.driver(), 0, [1, 2])
    assert not is_settled(topics, query.topic)
    take_back(query.options.cluster, [prepared])
    assert settles(topics, query.topic)
    assert query.found == []


def test_decided_transactions_are_not_aborted(query: Query) -> None:
    prepared = query.run(query.driver(), 0, [1, 2])
    query.decide(0, prepared)
    take_back(query.options.cluster, [prepared])
    assert query.found == [1, 2]


def test_a_failing_task_leaves_no_open_transaction(query: Query, topics: Topics) -> None:
    def write(producer: TransactionalProducer) -> int:
        producer.send({(query.topic, PARTITION): encoded([1])})
        raise BadOption("a row that cannot be written")

    with pytest.raises(BadOption, match="cannot be written"):
        attempt(query.options, query.id(query.driver(), 0), write)
    assert settles(topics, query.topic)
    assert query.found == []


def test_brokers_without_decisions_are_refused() -> None:
    kafkas = {key: versions for key, versions in ALL_VERSIONS.items() if key < PRIVATE_KEY_FIRST}
    with FakeBroker(versions=kafkas) as broker:
        given = {"kafka.bootstrap.servers": broker.bootstrap, "deliveryGuarantee": "exactly-once"}
        options = parse_write({**given, "topic": "t"}, Mode.BATCH)
        with pytest.raises(BadOption, match="deliveryGuarantee cannot be exactly-once"):
            register(options.cluster, "q")
        forget_all()
