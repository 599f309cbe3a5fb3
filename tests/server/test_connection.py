"""A running node, used through raw bytes: an error closes that connection and no other."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kafkaesque.errors import CannotListen, FolderInUse, NewerFormat
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.node import Node, NodeSettings
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.wire.codec import decode, encode
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.header import (
    RequestHeader,
    decode_response_header,
    encode_request_header,
    request_header_version,
    response_header_version,
)
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkaesque.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkaesque.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafkaesque.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

SECONDS_MAX = 120


class Client:
    """Sends and receives frames over one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._correlation = 0

    async def ask(self, request: object, version: int, answer: type) -> object:
        """Send a request and return its answer."""
        self.send(request, version)
        api = api_of(answer)
        async with asyncio.timeout(SECONDS_MAX):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            data = await self.reader.readexactly(size)
        correlation, start = decode_response_header(data, response_header_version(api, version))
        assert correlation == self._correlation
        return decode(answer, version, data, start)

    def send(self, request: object, version: int) -> None:
        """Send a request."""
        self._correlation += 1
        api = api_of(type(request))
        header = RequestHeader(
            key=api.key, version=version, correlation_id=self._correlation, client_id="test"
        )
        body = encode_request_header(header, request_header_version(api, version))
        body += encode(request, version)
        self.writer.write(struct.pack(">i", len(body)) + body)

    async def is_closed(self) -> bool:
        """Return whether the broker closes the connection."""
        async with asyncio.timeout(SECONDS_MAX):
            return await self.reader.read(1) == b""


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[Callable[[], Coroutine[None, None, Client]]]:
    """Run a node; yields a function that connects to it."""
    node = Node(NodeSettings(port=0, data=data))
    await node.start()
    clients: list[Client] = []

    async def connect() -> Client:
        clients.append(Client(*await asyncio.open_connection("127.0.0.1", node.port)))
        return clients[-1]

    try:
        yield connect
    finally:
        for client in clients:
            client.writer.transport.abort()
        await node.stop()


def a_topic(name: str) -> MetadataRequest:
    return MetadataRequest(topics=(MetadataRequestTopic(name=name),))


def test_an_unknown_version_of_api_versions_is_answered_in_version_zero(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client = await connect()
            body = struct.pack(">hhih", 18, 99, 1, -1) + b"\0\0\0\0"
            client.writer.write(struct.pack(">i", len(body)) + body)
            (size,) = struct.unpack(">i", await client.reader.readexactly(4))
            data = await client.reader.readexactly(size)
            answer = decode(ApiVersionsResponse, 0, data, 4)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
            again = await client.ask(ApiVersionsRequest(), 3, ApiVersionsResponse)
            assert isinstance(again, ApiVersionsResponse)
            assert again.error_code == 0

    asyncio.run(go())


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 2) + b"ab",
        struct.pack(">ihhi", 8, 9999, 0, 1),
        struct.pack(">ihhih", 10, 3, 99, 1, -1),
        struct.pack(">ihhih", 10, 0, 1, 1, -1),
        struct.pack(">ihhihi", 14, 3, 1, 1, -1, 2**31 - 1),
    ],
    ids=["negative", "huge", "short", "no such api", "no such version", "too old", "lie"],
)
@pytest.mark.complains(
    "connection_closed reason=protocol peer=*: no protocol begins with byte 127",
    "connection_closed reason=protocol peer=*: no protocol begins with byte 255",
    "connection_closed reason=request peer=*: 2 bytes are too few for a request",
    "connection_closed reason=request peer=*: API 9999 is not served here",
    "connection_closed reason=request peer=*: Metadata is not served in version 99",
    "connection_closed reason=request peer=*: Produce is not served in version 1",
    "connection_closed reason=request peer=*: topics is longer than the frame",
)
def test_a_malformed_request_closes_only_its_connection(tmp_path: Path, data: bytes) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            good, bad = await connect(), await connect()
            bad.writer.write(data)
            assert await bad.is_closed()
            answer = await good.ask(a_topic("orders"), 9, MetadataResponse)
            assert isinstance(answer, MetadataResponse)
            assert answer.topics[0].error_code == 0

    asyncio.run(go())


@pytest.mark.parametrize("name", ["..", "a/b", "x" * 250])
def test_a_topic_with_an_invalid_name_is_refused_with_an_error_code(
    tmp_path: Path, name: str
) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client = await connect()
            answer = await client.ask(a_topic(name), 9, MetadataResponse)
            assert isinstance(answer, MetadataResponse)
            assert answer.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION

    asyncio.run(go())


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (bytes(20), ErrorCode.INVALID_RECORD),
        (bytes(16) + b"\x01" + bytes(60), ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT),
    ],
    ids=["null", "empty", "short", "magic 1"],
)
def test_a_batch_with_false_fields_is_refused_and_not_written(
    tmp_path: Path, records: bytes | None, code: ErrorCode
) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client = await connect()
            await client.ask(a_topic("orders"), 9, MetadataResponse)
            share = PartitionProduceData(index=0, records=records)
            topic = TopicProduceData(name="orders", partition_data=(share,))
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(topic,))
            answer = await client.ask(request, 9, ProduceResponse)
            assert isinstance(answer, ProduceResponse)
            found = answer.responses[0].partition_responses[0]
            assert (found.error_code, found.base_offset) == (code, -1)

    asyncio.run(go())


def test_the_cluster_keeps_its_id_and_its_topics_across_a_restart(tmp_path: Path) -> None:
    async def look() -> MetadataResponse:
        async with running(tmp_path / "data") as connect:
            client = await connect()
            answer = await client.ask(a_topic("orders"), 12, MetadataResponse)
            assert isinstance(answer, MetadataResponse)
            return answer

    first, second = asyncio.run(look()), asyncio.run(look())
    assert first.cluster_id == second.cluster_id is not None
    assert first.topics[0].topic_id == second.topics[0].topic_id
    assert len(second.topics[0].partitions) == 4


def test_a_folder_in_use_by_another_broker_is_refused(tmp_path: Path) -> None:
    async def go() -> None:
        async with running(tmp_path / "data"):
            with pytest.raises(FolderInUse):
                await Node(NodeSettings(port=0, data=tmp_path / "data")).start()

    asyncio.run(go())


def test_a_port_in_use_is_reported_in_one_sentence(tmp_path: Path) -> None:
    async def go() -> None:
        first = Node(NodeSettings(port=0, data=tmp_path / "first"))
        await first.start()
        with pytest.raises(CannotListen, match="cannot listen on"):
            await Node(NodeSettings(port=first.port, data=tmp_path / "second")).start()
        await first.stop()

    asyncio.run(go())


def test_a_catalog_of_a_later_version_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    async def spoil() -> None:
        node = Node(NodeSettings(port=0, data=tmp_path / "data"))
        await node.start()
        committed = asyncio.Event()
        record = MachineRecord(b"cluster", bytes.fromhex("926301"))
        with pytest.raises(NewerFormat):
            node.broker._catalog._host.write([record], lambda _: committed.set())
        node.broker.flush()
        await committed.wait()
        await node.stop()
        for snapshot in (tmp_path / "data" / "cluster-metadata").glob("*.machine"):
            snapshot.unlink()  # otherwise the record would not be read again

    async def start() -> None:
        with pytest.raises(NewerFormat):
            await Node(NodeSettings(port=0, data=tmp_path / "data")).start()

    asyncio.run(spoil())
    asyncio.run(start())


@pytest.mark.requirement("LOG-4")
@pytest.mark.complains(
    "partition_offline partition=orders.*/0 reason=orders.*/0/00000000000000000000.log *",
)
def test_a_damaged_partition_is_offline_and_everything_else_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    now_ms = time.time_ns() // 1_000_000
    share = bytes(build_batch([Record(offset=0, timestamp_ms=now_ms, key=None, value=b"x")]))

    async def produce(index: int) -> tuple[int, list[tuple[int, int]]]:
        async with running(data) as connect:
            client = await connect()
            known = await client.ask(a_topic("orders"), 9, MetadataResponse)
            assert isinstance(known, MetadataResponse)
            partition = PartitionProduceData(index=index, records=share)
            topic = TopicProduceData(name="orders", partition_data=(partition,))
            request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(topic,))
            answer = await client.ask(request, 9, ProduceResponse)
            assert isinstance(answer, ProduceResponse)
            code = answer.responses[0].partition_responses[0].error_code
            return code, [(p.error_code, p.leader_id) for p in known.topics[0].partitions]

    assert asyncio.run(produce(0)) == (0, [(0, 1)] * 4)
    (damaged,) = data.glob("orders.*/0/00000000000000000000.log")
    kept = damaged.read_bytes()[:40]
    damaged.write_bytes(kept)
    offline = [(ErrorCode.LEADER_NOT_AVAILABLE, -1), (0, 1), (0, 1), (0, 1)]
    assert asyncio.run(produce(0)) == (ErrorCode.KAFKA_STORAGE_ERROR, offline)
    assert "00000000000000000000.log is damaged at byte 40" in caplog.text
    assert asyncio.run(produce(1)) == (0, offline)
    assert damaged.read_bytes() == kept


def test_a_client_that_reads_no_answers_is_not_read_from_either(tmp_path: Path) -> None:
    names = tuple(MetadataRequestTopic(name=f"{'n' * 200}{number}") for number in range(100))
    request = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    requests_max = 3_000  # 60 MB each way: far more than any buffer between us holds

    async def go() -> int:
        async with running(tmp_path / "data") as connect:
            deaf, good = await connect(), await connect()
            for sent in range(requests_max):
                deaf.send(request, 9)
                try:
                    await asyncio.wait_for(deaf.writer.drain(), 1)
                except TimeoutError:
                    answer = await good.ask(a_topic("orders"), 9, MetadataResponse)
                    assert isinstance(answer, MetadataResponse)
                    return sent
            return requests_max

    assert asyncio.run(go()) < requests_max


def produce_request(value: bytes, acks: int) -> ProduceRequest:
    record = Record(offset=0, timestamp_ms=1, key=None, value=value)
    share = PartitionProduceData(index=0, records=bytes(build_batch([record])))
    topic = TopicProduceData(name="orders", partition_data=(share,))
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(topic,))


async def offset_told(client: Client) -> int:
    """Return the offset in the next answer to a Produce request."""
    async with asyncio.timeout(SECONDS_MAX):
        (size,) = struct.unpack(">i", await client.reader.readexactly(4))
        data = await client.reader.readexactly(size)
    version = response_header_version(api_of(ProduceResponse), 9)
    answer = decode(ProduceResponse, 9, data, decode_response_header(data, version)[1])
    (found,) = answer.responses[0].partition_responses
    assert found.error_code == ErrorCode.NONE
    return found.base_offset


@pytest.mark.parametrize("acks", [[-1] * 50, [1] * 50, [-1, 1, -1, -1, 1] * 10])
def test_requests_that_arrive_together_are_each_answered_in_order(
    tmp_path: Path, acks: list[int]
) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client = await connect()
            await client.ask(a_topic("orders"), 9, MetadataResponse)
            for number, one in enumerate(acks):
                client.send(produce_request(b"%d" % number, one), 9)
            assert [await offset_told(client) for _ in acks] == list(range(len(acks)))

    asyncio.run(go())


@pytest.mark.complains(
    "connection_closed reason=request peer=*: API 9999 is not served here",
)
def test_requests_before_a_malformed_one_are_answered_before_the_connection_ends(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        async with running(tmp_path / "data") as connect:
            client = await connect()
            unsynced = CreatableTopicConfig(name="flush.policy", value="os")
            topic = CreatableTopic(
                name="orders",
                num_partitions=1,
                replication_factor=1,
                assignments=(),
                configs=(unsynced,),
            )
            make = CreateTopicsRequest(topics=(topic,), timeout_ms=5000, validate_only=False)
            await client.ask(make, 7, CreateTopicsResponse)
            client.send(produce_request(b"a", -1), 9)
            client.writer.write(struct.pack(">ihhi", 8, 9999, 0, 1))
            assert await offset_told(client) == 0
            assert await client.is_closed()

    asyncio.run(go())
