"""Transactions that another process ends, and batches that are committed as a whole or not."""

from collections.abc import Iterator

import pytest

from kafkaesque.client.admin import Admin
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import DriverFenced, NotServed, OlderBatch, Refused
from kafkaesque.client.prepared import PreparedTransaction
from kafkaesque.errors import OutcomeUnknown
from kafkaesque.record.view import Codec
from kafkaesque.testing import Broker
from kafkaesque.transactional_ids import BatchTransactionId
from kafkaesque.wire.apis import PRIVATE_KEY_FIRST
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.decide_batch import DecideBatchRequest, DecideBatchResponse
from kafkaesque.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafkaesque.wire.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tests.client.batches import committed, encoded
from tests.client.fake_broker import ALL_VERSIONS, HANG_UP, FakeBroker

SINK = "sink"
TIMEOUT_MS = 60_000


@pytest.fixture(name="admin")
def _admin(broker: Broker, topic: str) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as admin:
        admin.topics.create(topic, partitions=2)
        yield admin


def task(
    broker: Broker, topic: str, batch: int, driver: int, number: int, attempt: int = 0
) -> PreparedTransaction:
    """Let a task of the query, which is named like the topic, write to both partitions."""
    name = str(BatchTransactionId(topic, SINK, batch, driver, number, attempt))
    with Admin(broker.bootstrap) as admin:
        producer = admin.transactional_producer(name, Codec.ZSTD, timeout_ms=TIMEOUT_MS)
        value = f"{batch}.{number}.{attempt}".encode()
        producer.send({(topic, 0): encoded(value), (topic, 1): encoded(value, value)})
        producer.send({(topic, 0): encoded(value)})
        return producer.prepare(f"driver {driver}")


def seen(broker: Broker, topic: str) -> set[bytes]:
    return {value for index in (0, 1) for value in committed(broker.bootstrap, topic, index)}


def test_transactions_follow_each_other_and_each_is_atomic(
    broker: Broker, topic: str, admin: Admin
) -> None:
    producer = admin.transactional_producer(f"id-{topic}", Codec.NONE, timeout_ms=TIMEOUT_MS)
    for value, is_commit in ((b"a", True), (b"b", False), (b"c", True), (b"d", True)):
        producer.send({(topic, 0): encoded(value), (topic, 1): encoded(value)})
        producer.send({(topic, 0): encoded(value + b"2")})
        if is_commit:
            producer.commit()
        else:
            producer.abort()
    assert committed(broker.bootstrap, topic, 0) == [b"a", b"a2", b"c", b"c2", b"d", b"d2"]
    assert committed(broker.bootstrap, topic, 1) == [b"a", b"c", b"d"]


def test_ending_an_empty_transaction_sends_no_request(admin: Admin, topic: str) -> None:
    producer = admin.transactional_producer(f"id-{topic}", Codec.NONE, timeout_ms=TIMEOUT_MS)
    producer.commit()
    producer.abort()
    with pytest.raises(Refused, match="it was never used"):
        admin.transactions.describe(f"id-{topic}")


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_prepared_transaction_can_be_ended_by_an_older_process(
    broker: Broker, topic: str, admin: Admin, is_commit: bool
) -> None:
    admin.transactions.list()  # so that its connection is older than the producer's
    with Admin(broker.bootstrap) as other:
        producer = other.transactional_producer(f"id-{topic}", Codec.NONE, timeout_ms=TIMEOUT_MS)
        producer.send({(topic, 0): encoded(b"a")})
        prepared = producer.prepare("me")
    if is_commit:
        admin.transactions.commit(prepared)
    else:
        admin.transactions.abort(prepared)
    assert committed(broker.bootstrap, topic, 0) == ([b"a"] if is_commit else [])


def test_a_returning_producer_may_keep_its_prepared_transaction(
    broker: Broker, topic: str, admin: Admin
) -> None:
    producer = admin.transactional_producer(f"id-{topic}", Codec.NONE, timeout_ms=TIMEOUT_MS)
    producer.send({(topic, 0): encoded(b"a")})
    prepared = producer.prepare("me")
    request = InitProducerIdRequest(
        transactional_id=f"id-{topic}",
        transaction_timeout_ms=TIMEOUT_MS,
        enable2_pc=True,
        keep_prepared_txn=True,
    )
    router = admin.transactions._router
    said = router.question(
        lambda: router.ask_transaction_coordinator(f"id-{topic}", request, InitProducerIdResponse)
    )
    kept = said.ongoing_txn_producer_id, said.ongoing_txn_producer_epoch
    assert kept == (prepared.producer_id, prepared.epoch)
    with pytest.raises(Refused):
        admin.transactions.commit(prepared)
    admin.transactions.commit(
        PreparedTransaction(
            transactional_id=f"id-{topic}", producer_id=said.producer_id, epoch=said.producer_epoch
        )
    )
    assert committed(broker.bootstrap, topic, 0) == [b"a"]


def test_a_batch_consists_of_the_transactions_named_first(
    broker: Broker, topic: str, admin: Admin
) -> None:
    driver = admin.batches.register(topic, SINK)
    first = [task(broker, topic, 0, driver, number) for number in range(2)]
    spare = task(broker, topic, 0, driver, 1, attempt=1)
    assert admin.batches.decision(topic, SINK, 0) is None
    decided = admin.batches.decide(topic, SINK, 0, driver, first)
    names = tuple(one.transactional_id for one in first)
    assert (decided.transactional_ids, decided.was_decided_before) == (names, False)
    assert seen(broker, topic) == {b"0.0.0", b"0.1.0"}
    again = admin.batches.decide(topic, SINK, 0, driver, [first[0], spare])
    assert (again.transactional_ids, again.was_decided_before) == (names, True)
    assert admin.batches.decision(topic, SINK, 0) == again
    assert seen(broker, topic) == {b"0.0.0", b"0.1.0"}
    assert not [row for row in admin.transactions.list() if topic in row[0]], "ids are dropped"


def test_a_new_driver_fences_the_previous_one_and_aborts_its_leftovers(
    broker: Broker, topic: str, admin: Admin
) -> None:
    old = admin.batches.register(topic, SINK)
    left = task(broker, topic, 0, old, 0)
    new = admin.batches.register(topic, SINK)
    with pytest.raises(DriverFenced):
        admin.batches.decide(topic, SINK, 0, old, [left])
    with pytest.raises(Refused):
        task(broker, topic, 0, old, 1)
    admin.batches.decide(topic, SINK, 0, new, [task(broker, topic, 0, new, 0)])
    assert committed(broker.bootstrap, topic, 1) == [b"0.0.0", b"0.0.0"]


def test_an_older_checkpoint_is_refused(topic: str, admin: Admin) -> None:
    driver = admin.batches.register(topic, SINK)
    admin.batches.decide(topic, SINK, 8, driver, [])
    admin.batches.decide(topic, SINK, 9, driver, [])
    with pytest.raises(OlderBatch, match="an older checkpoint"):
        admin.batches.decide(topic, SINK, 8, driver, [])
    with pytest.raises(OlderBatch):
        admin.batches.decision(topic, SINK, 8)


def test_a_batch_with_an_unprepared_transaction_is_refused_as_a_whole(
    broker: Broker, topic: str, admin: Admin
) -> None:
    driver = admin.batches.register(topic, SINK)
    good, bad = (task(broker, topic, 0, driver, number) for number in range(2))
    admin.transactions.abort(bad)
    with pytest.raises(Refused, match="is not prepared"):
        admin.batches.decide(topic, SINK, 0, driver, [good, bad])
    assert admin.batches.decision(topic, SINK, 0) is None


def test_a_part_of_a_batch_cannot_be_committed_alone(
    broker: Broker, topic: str, admin: Admin
) -> None:
    driver = admin.batches.register(topic, SINK)
    part = task(broker, topic, 0, driver, 0)
    with pytest.raises(Refused):
        admin.transactions.commit(part)


def test_a_name_with_a_slash_is_refused(admin: Admin) -> None:
    with pytest.raises(Refused, match="without a slash"):
        admin.batches.register("a/b", SINK)


def test_a_decision_with_a_lost_answer_is_requested_again() -> None:
    answers: list[object] = [
        HANG_UP,
        DecideBatchResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS),
        DecideBatchResponse(error_code=ErrorCode.NONE, transactional_ids=("a",)),
    ]
    table = {DecideBatchRequest: lambda _: answers.pop(0)}
    with FakeBroker(table) as fake, Admin(fake.bootstrap) as admin:
        decided = admin.batches.decide("q", SINK, 0, 1, [])
    assert decided.transactional_ids == ("a",)
    assert len(set(fake.requests(DecideBatchRequest))) == 1


def test_an_end_with_a_lost_answer_is_requested_again() -> None:
    done = EndTxnResponse(error_code=ErrorCode.NONE, producer_id=7, producer_epoch=1)
    answers: list[object] = [HANG_UP, done]
    waiting = PreparedTransaction(transactional_id="id", producer_id=7, epoch=0)
    with (
        FakeBroker({EndTxnRequest: lambda _: answers.pop(0)}) as fake,
        Admin(fake.bootstrap) as admin,
    ):
        admin.transactions.commit(waiting)
    assert len(fake.requests(EndTxnRequest)) == 2


@pytest.mark.parametrize(
    "answer", [HANG_UP, DecideBatchResponse(error_code=ErrorCode.NOT_COORDINATOR)]
)
def test_without_an_answer_a_batch_may_or_may_not_be_decided(answer: object) -> None:
    config = ClientConfig(deadline_ms=3_000)  # it gets as far as asking on any machine
    with (
        FakeBroker({DecideBatchRequest: answer}) as fake,
        Admin(fake.bootstrap, config) as admin,
        pytest.raises(OutcomeUnknown),
    ):
        admin.batches.decide("q", SINK, 0, 1, [])


def test_brokers_without_prepared_transactions_list_none() -> None:
    versions = {key: one for key, one in ALL_VERSIONS.items() if key < PRIVATE_KEY_FIRST}
    with FakeBroker(versions=versions) as fake, Admin(fake.bootstrap) as admin:
        assert admin.transactions.prepared() == {}
        with pytest.raises(NotServed):
            admin.batches.register("q", SINK)
