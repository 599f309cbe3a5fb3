"""Requests on the fast path get the same answers as those on the usual path."""

from collections.abc import Sequence

import pytest

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.errors import KafkaesqueError
from kafkaesque.record.build import BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.record import Record
from kafkaesque.server.edge.dispatch import Requests
from kafkaesque.server.edge.produce_fast_path import SMALL_BYTES, Passing
from kafkaesque.server.requests.coroutine_runner import Awaited
from kafkaesque.server.requests.event_queue import Turn
from kafkaesque.types import Buffer
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.header import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    request_header_version,
    response_header_version,
)
from kafkaesque.wire.kinds import NO_UUID
from kafkaesque.wire.messages.produce import (
    API,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.server.memory_broker import MemoryBroker

VERSION = 9
BY_ID = 13
LENGTH_BYTES = 4


def a_batch(value: bytes = b"v", sequence: int | None = None) -> bytes:
    stamp = None
    if sequence is not None:
        stamp = ProducerStamp(producer_id=5, producer_epoch=0, base_sequence=sequence)
    record = Record(offset=0, timestamp_ms=5, key=None, value=value)
    return bytes(build_batch([record], producer=stamp))


class AClient:
    """One connection to a broker with the topics `orders`, of two partitions, and `invoices`."""

    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.topic_id = self.broker.create("orders", 2)
        self.broker.create("invoices", 1)
        self.requests = Requests(self.broker.session, Turn())
        self.sent = 0

    def begin(
        self,
        batch: bytes,
        partition: int = 0,
        *,
        topic: str = "orders",
        topic_id: bytes = NO_UUID,
        acks: int = -1,
        version: int = VERSION,
        transactional_id: str | None = None,
    ) -> Awaited[list[Buffer]]:
        """Send one batch; nothing is synced before `answer`."""
        self.sent += 1
        header = RequestHeader(API.key, version, self.sent, "a client")
        data = PartitionProduceData(index=partition, records=batch)
        named = TopicProduceData(topic_id=topic_id, name=topic, partition_data=(data,))
        request = ProduceRequest(
            transactional_id=transactional_id, acks=acks, timeout_ms=1000, topic_data=(named,)
        )
        head = encode_request_header(header, request_header_version(API, version))
        frame = memoryview(bytearray(head + encode(request, version)))
        begun = self.requests.begin(frame)
        assert not isinstance(begun, list)
        return begun

    def answer(
        self, begun: Awaited[list[Buffer]], version: int = VERSION
    ) -> PartitionProduceResponse:
        """Let the disk do its work, and read the answer."""
        self.broker.settle()
        return read(begun.answer(), version)

    def on_the_lane(self, version: int = VERSION, **said: object) -> None:
        """Send until requests like these take the fast path."""
        for value in (b"first", b"second"):
            begun = self.begin(a_batch(value), version=version, **said)  # type: ignore[arg-type]
            assert not isinstance(begun, Passing)
            assert self.answer(begun, version).error_code == ErrorCode.NONE


def read(parts: Sequence[Buffer], version: int = VERSION) -> PartitionProduceResponse:
    data = b"".join(parts)[LENGTH_BYTES:]
    _, start = decode_response_header(data, response_header_version(API, version))
    (topic,) = decode(ProduceResponse, version, data, start).responses
    (found,) = topic.partition_responses
    return found


def test_a_third_similar_request_takes_the_fast_path_and_gets_the_same_answer() -> None:
    client = AClient()
    client.on_the_lane()
    begun = client.begin(a_batch(b"third"))
    assert isinstance(begun, Passing)
    assert not begun.is_done, "it is not synced yet"
    found = client.answer(begun)
    assert begun.is_done
    other = client.answer(client.begin(a_batch(), 1))
    assert (found.index, found.error_code, found.base_offset) == (0, ErrorCode.NONE, 2)
    assert (found.log_append_time_ms, found.log_start_offset) == (-1, 0)
    assert (other.index, other.base_offset) == (1, 0), "the other partition has the same lane"
    assert client.broker.partition("orders").high_watermark == 3


@pytest.mark.parametrize(
    "other",
    [
        {"topic": "invoices"},
        {"acks": 1},
        {"acks": 0},
        {"version": 11},
    ],
)
def test_a_request_with_any_other_field_takes_the_usual_path(other: dict[str, object]) -> None:
    client = AClient()
    client.on_the_lane()
    assert not isinstance(client.begin(a_batch(), **other), Passing)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (a_batch(), {"acks": 1}),
        (a_batch(bytes(SMALL_BYTES)), {}),
        (a_batch(), {"version": 4}),
    ],
)
def test_unusual_requests_have_no_lane(batch: bytes, said: dict[str, object]) -> None:
    client = AClient()
    for _ in range(3):
        assert not isinstance(client.begin(batch, **said), Passing)  # type: ignore[arg-type]


def test_transactional_requests_have_no_lane() -> None:
    client = AClient()
    traits = BatchTraits(is_transactional=True)
    stamp = ProducerStamp(producer_id=5, producer_epoch=0, base_sequence=0)
    record = Record(offset=0, timestamp_ms=5, key=None, value=b"v")
    batch = bytes(build_batch([record], producer=stamp, traits=traits))
    for _ in range(3):
        assert not isinstance(client.begin(batch, transactional_id="t"), Passing)


def test_a_refused_batch_gets_its_error_and_later_ones_are_accepted() -> None:
    client = AClient()
    client.on_the_lane()
    damaged = bytearray(a_batch())
    damaged[-1] ^= 1
    begun = client.begin(bytes(damaged))
    assert not isinstance(begun, Passing)
    assert client.answer(begun).error_code == ErrorCode.CORRUPT_MESSAGE
    assert client.answer(client.begin(a_batch())).base_offset == 2


def test_a_missing_partition_gets_an_error() -> None:
    client = AClient()
    client.on_the_lane()
    found = client.answer(client.begin(a_batch(), 9))
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_duplicate_batch_gets_the_answer_of_the_first() -> None:
    client = AClient()
    client.on_the_lane()
    first = client.answer(client.begin(a_batch(b"numbered", sequence=0)))
    begun = client.begin(a_batch(b"numbered", sequence=0))
    assert isinstance(begun, Passing)
    assert begun.is_done, "its first copy is committed"
    assert client.answer(begun) == first


def delete(client: AClient, topic: str) -> None:
    errors: list[KafkaesqueError | None] = []
    client.broker.broker.delete_topic(topic, errors.append)
    client.broker.settle()
    assert errors == [None]


def test_records_for_a_recreated_topic_do_not_go_to_the_old_one() -> None:
    client = AClient()
    said = {"topic": "", "topic_id": client.topic_id}
    client.on_the_lane(BY_ID, **said)
    assert isinstance(
        client.begin(a_batch(), topic="", topic_id=client.topic_id, version=BY_ID), Passing
    )
    client.broker.settle()
    delete(client, "orders")
    client.broker.create("orders", 1)
    begun = client.begin(a_batch(), topic="", topic_id=client.topic_id, version=BY_ID)
    assert client.answer(begun, BY_ID).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert client.broker.partition("orders").high_watermark == 0


def test_a_request_waiting_while_its_topic_is_deleted_gets_an_error() -> None:
    client = AClient()
    client.on_the_lane()
    begun = client.begin(a_batch())
    assert isinstance(begun, Passing)
    client.broker.partition("orders").close()
    found = read(begun.answer())
    assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found.base_offset == -1


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (Outcome.UNKNOWN, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (Outcome.TOO_FEW, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND),
        (None, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_an_unknown_outcome_is_reported_as_unknown(
    outcome: Outcome | None, code: ErrorCode
) -> None:
    client = AClient()
    client.on_the_lane()
    begun = client.begin(a_batch())
    assert isinstance(begun, Passing)
    if outcome is not None:
        begun.done(outcome)
    found = read(begun.answer())
    assert (found.error_code, found.base_offset) == (code, -1)
