"""Our client against our broker, over a real socket."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaesque.client.address import Address
from kafkaesque.client.admin import Admin
from kafkaesque.client.asyncio_channel import SocketChannel
from kafkaesque.client.config import ClientConfig
from kafkaesque.client.errors import Refused, Unreachable
from kafkaesque.client.topics import EARLIEST, LATEST, NOT_FOUND
from kafkaesque.errors import InvalidSetting, InvalidTopic, TopicExists, UnknownTopic
from kafkaesque.record.build import build_batch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import Codec
from kafkaesque.testing.process import BrokerProcess
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.create_partitions import CreatePartitionsRequest
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest
from kafkaesque.wire.messages.delete_topics import DeleteTopicsRequest
from kafkaesque.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkaesque.wire.messages.metadata import MetadataRequest, MetadataResponse
from kafkaesque.wire.messages.offset_commit import OffsetCommitRequest
from kafkaesque.wire.messages.offset_delete import OffsetDeleteRequest

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker") / "data")
    process.start()
    yield process
    process.kill()


@pytest.fixture
def admin(broker: BrokerProcess) -> Iterator[Admin]:
    with Admin(broker.bootstrap) as client:
        yield client


def need(admin: Admin, *requests: type[Any]) -> None:
    """Skip a test of an API that this broker does not serve."""
    for request in requests:
        if not admin.serves(request):
            pytest.skip(f"the broker does not serve {api_of(request).name}")


KEPT = {"retention.ms": "-1"}
"""Current times: records of 1970 would be deleted as soon as the broker looks."""


def a_batch(values: list[bytes], timestamp_ms: int, codec: Codec = Codec.NONE) -> bytearray:
    records = [
        Record(offset=number, timestamp_ms=timestamp_ms, key=None, value=value)
        for number, value in enumerate(values)
    ]
    return build_batch(records, codec=codec)


def test_a_topic_is_created_listed_and_described(admin: Admin) -> None:
    admin.topics.create("made", partitions=3, settings={"retention.ms": "60000"})
    assert "made" in [topic.name for topic in admin.topics.list()]
    topic = admin.topics.describe("made")
    assert [one.index for one in topic.partitions] == [0, 1, 2]
    assert all(one.leader in admin.cluster().brokers for one in topic.partitions)


def test_a_topic_is_not_created_twice(admin: Admin) -> None:
    admin.topics.create("twice")
    with pytest.raises(TopicExists, match="twice"):
        admin.topics.create("twice")


def test_a_topic_without_partitions_is_refused(admin: Admin) -> None:
    with pytest.raises((InvalidTopic, Refused)):
        admin.topics.create("nothing", partitions=0)


def test_a_topic_is_changed_and_deleted(admin: Admin) -> None:
    need(admin, DeleteTopicsRequest, CreatePartitionsRequest, IncrementalAlterConfigsRequest)
    admin.topics.create("changing", partitions=1, settings={"retention.ms": "60000"})
    admin.topics.alter("changing", put={"segment.ms": "5000"}, drop=["retention.ms"])
    chosen = {
        one.name: one.value for one in admin.topics.settings("changing") if not one.is_default
    }
    assert chosen == {"segment.ms": "5000"}
    admin.topics.add_partitions("changing", 3)
    assert len(admin.topics.describe("changing").partitions) == 3
    admin.topics.delete("changing")
    with pytest.raises(UnknownTopic):
        admin.topics.describe("changing")


def test_an_invalid_request_is_refused_with_the_brokers_message(admin: Admin) -> None:
    need(admin, DeleteTopicsRequest, CreatePartitionsRequest, IncrementalAlterConfigsRequest)
    admin.topics.create("sensible", partitions=2)
    with pytest.raises(InvalidSetting, match="nonsense"):
        admin.topics.alter("sensible", put={"nonsense": "1"})
    with pytest.raises(InvalidTopic, match="partitions"):
        admin.topics.add_partitions("sensible", 1)
    with pytest.raises(UnknownTopic):
        admin.topics.delete("nosuch")


def test_batches_are_read_back_as_they_were_sent(admin: Admin) -> None:
    admin.topics.create("letters", partitions=1, settings=KEPT)
    for number, codec in enumerate(Codec):
        batch = a_batch([b"a", b"b"], 1_000 * (number + 1), codec)
        assert admin.batches.produce("letters", 0, batch) == 2 * number
    fetched = admin.batches.fetch("letters", 0, 4)
    assert [one.codec for one in fetched.batches] == [Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
    assert [record.value for record in read_records(fetched.batches[0])] == [b"a", b"b"]
    assert (fetched.start, fetched.high_watermark) == (0, 10)
    assert admin.batches.fetch("letters", 0, 10).batches == ()


def test_offsets_are_found_at_both_ends_and_by_time(admin: Admin) -> None:
    admin.topics.create("timed", partitions=2, settings=KEPT)
    for timestamp_ms in (1_000, 2_000):
        admin.batches.produce("timed", 0, a_batch([b"x"], timestamp_ms))
    places = [("timed", 0), ("timed", 1)]
    assert list(admin.topics.offsets(places, EARLIEST).values()) == [0, 0]
    assert admin.topics.offsets(places, LATEST) == {places[0]: 2, places[1]: 0}
    assert admin.topics.offsets(places, 1_500) == {places[0]: 1, places[1]: NOT_FOUND}


def test_an_offset_outside_the_partition_is_refused(admin: Admin) -> None:
    admin.topics.create("short", partitions=1)
    with pytest.raises(Refused, match="offset 5: the offset is before the first record kept"):
        admin.batches.fetch("short", 0, 5)


def test_a_group_without_members_is_moved_described_and_deleted(admin: Admin) -> None:
    need(admin, OffsetCommitRequest, DeleteGroupsRequest, OffsetDeleteRequest)
    admin.topics.create("read", partitions=2)
    admin.groups.commit("readers", {("read", 0): 5, ("read", 1): 7})
    assert admin.groups.offsets("readers") == {("read", 0): 5, ("read", 1): 7}
    assert "readers" in [one.group for one in admin.groups.list()]
    assert (admin.groups.describe("readers").state, admin.groups.describe("readers").members) == (
        "Empty",
        (),
    )
    admin.groups.delete_offsets("readers", [("read", 0)])
    assert admin.groups.offsets("readers") == {("read", 1): 7}
    admin.groups.delete("readers")
    assert admin.groups.offsets("readers") == {}
    with pytest.raises(Refused, match=r"no (such )?group"):
        admin.groups.describe("readers")


def test_the_channel_over_a_socket_reaches_the_broker(broker: BrokerProcess) -> None:
    async def brokers() -> int:
        channel = SocketChannel(Address(host="127.0.0.1", port=broker.port))
        said = await channel.call(MetadataRequest(topics=()), MetadataResponse)
        channel.close()
        return len(said.brokers)

    assert asyncio.run(brokers()) == 1


def test_a_broker_that_returns_is_asked_again(tmp_path: Path) -> None:
    process = BrokerProcess(tmp_path / "data")
    process.start()
    try:
        with Admin(process.bootstrap) as client:
            client.topics.create("kept", partitions=1)
            process.kill()
            process.start()
            client.topics.create("new", partitions=1)
            assert [topic.name for topic in client.topics.list()] == ["kept", "new"]
        process.kill()
        with (
            Admin(process.bootstrap, ClientConfig(deadline_ms=500)) as client,
            pytest.raises(Unreachable, match="cannot reach"),
        ):
            client.topics.create("unreached")
    finally:
        process.kill()
