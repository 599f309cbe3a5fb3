"""Options are checked at once, and each refusal names the option."""

from pathlib import Path

import pytest

from kafkaesque.record.view import Codec
from kafkaesque.spark.checkpoint import query_id
from kafkaesque.spark.errors import BadOption
from kafkaesque.spark.option_table import REFUSED, TABLE
from kafkaesque.spark.options import Mode, parse_read, parse_write
from kafkaesque.spark.positions import Assigned, Beginning, Matching, Subscribed

ONCE = {"deliveryGuarantee": "exactly-once"}
BOOTSTRAP = {"kafka.bootstrap.servers": "localhost:9092"}
ORDERS = {**BOOTSTRAP, "subscribe": "orders"}


def test_by_default_a_batch_query_reads_from_the_earliest_to_the_latest() -> None:
    options = parse_read(ORDERS, Mode.BATCH)
    assert options.starting.beginning is Beginning.EARLIEST
    assert options.ending.beginning is Beginning.LATEST
    assert options.fail_on_data_loss
    assert not options.is_committed


def test_by_default_a_stream_starts_at_the_latest() -> None:
    assert parse_read(ORDERS, Mode.STREAM).starting.beginning is Beginning.LATEST


def test_option_names_are_case_insensitive() -> None:
    options = parse_read({**ORDERS, "STARTINGoffsets": "earliest"}, Mode.STREAM)
    assert options.starting.beginning is Beginning.EARLIEST


def test_topics_are_named_in_three_ways() -> None:
    assert parse_read({**BOOTSTRAP, "subscribe": "b, a"}, Mode.BATCH).selection == Subscribed(
        topics=("a", "b")
    )
    assert parse_read({**BOOTSTRAP, "subscribePattern": "o.*"}, Mode.BATCH).selection == Matching(
        pattern="o.*"
    )
    assert parse_read({**BOOTSTRAP, "assign": '{"a":[1,0]}'}, Mode.BATCH).selection == Assigned(
        places=(("a", 0), ("a", 1))
    )


def test_offsets_are_given_for_each_partition() -> None:
    options = parse_read({**ORDERS, "startingOffsets": '{"orders":{"0":5,"1":-2}}'}, Mode.BATCH)
    assert options.starting.places == {("orders", 0): 5, ("orders", 1): -2}


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"subscribePattern": "o.*"}, "subscribe and subscribePattern"),
        ({"startingOffsets": "soon"}, "startingOffsets is 'soon'"),
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest"),
        ({"startingOffsets": '{"orders":{"0":-1}}'}, "startingOffsets cannot be latest"),
        ({"startingOffsets": '{"orders":{"x":1}}'}, "startingOffsets has 'x'"),
        ({"startingOffsets": '{"orders":{"0":"1"}}'}, "startingOffsets has"),
        ({"startingOffsets": '{"orders":5}'}, "startingOffsets must be like"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"endingOffsets": '{"orders":{"0":-2}}'}, "endingOffsets cannot be earliest"),
        ({"startingTimestamp": "1", "startingOffsets": "earliest"}, "contradict each other"),
        ({"startingTimestamp": "noon"}, "startingTimestamp is 'noon'"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "startingOffsetsByTimestampStrategy"),
        ({"maxOffsetsPerTrigger": "10"}, "maxOffsetsPerTrigger is not for batch"),
        ({"minPartitions": "0"}, "minPartitions is '0'"),
        ({"minPartitions": "many"}, "minPartitions is 'many'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss is 'maybe'"),
        ({"includeHeaders": "1"}, "includeHeaders is '1'"),
        ({"topic": "orders"}, "topic is an option for writing"),
        ({"kafka.group.id": "g"}, "kafka.group.id is not for batch"),
        ({"groupIdPrefix": "g"}, "name the group with kafka.group.id"),
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.linger.ms": "5"}, "kafka.linger.ms is not supported"),
        ({"kafka.isolation.level": "serializable"}, "kafka.isolation.level"),
        ({"kafka.security.protocol": "SASL_SSL"}, "kafka.security.protocol"),
        ({"kafka.bootstrap.servers": "::nowhere:x/"}, "kafka.bootstrap.servers"),
    ],
)
def test_a_wrong_option_of_a_batch_query_is_named(more: dict[str, str], named: str) -> None:
    with pytest.raises(BadOption, match=named):
        parse_read({**ORDERS, **more}, Mode.BATCH)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(BadOption, match=f"{name} is not for streams"):
        parse_read({**ORDERS, name: "5"}, Mode.STREAM)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (BOOTSTRAP, "give one of subscribe"),
        ({"subscribe": "orders"}, "kafka.bootstrap.servers is missing"),
        ({**BOOTSTRAP, "subscribe": " , "}, "subscribe names no topic"),
        ({**BOOTSTRAP, "subscribePattern": "("}, "subscribePattern is not a regular expression"),
        ({**BOOTSTRAP, "assign": "orders"}, "assign is 'orders'"),
        ({**BOOTSTRAP, "assign": "{}"}, "assign names no partition"),
        ({**BOOTSTRAP, "assign": '{"a":"b"}'}, "assign has null"),
    ],
)
def test_what_to_read_is_required(options: dict[str, str], named: str) -> None:
    with pytest.raises(BadOption, match=named):
        parse_read(options, Mode.BATCH)


def test_an_assigned_partition_without_a_starting_offset_is_named() -> None:
    more = {"assign": '{"a":[0,1]}', "startingOffsets": '{"a":{"0":5}}'}
    with pytest.raises(BadOption, match="lacks partition 1 of topic a"):
        parse_read({**BOOTSTRAP, **more}, Mode.STREAM)


def test_a_sink_compresses_on_request_and_ignores_what_spark_adds() -> None:
    more = {"topic": "out", "kafka.compression.type": "ZSTD", "checkpointLocation": "here"}
    options = parse_write({**BOOTSTRAP, **more}, Mode.STREAM)
    assert (options.topic, options.codec) == ("out", Codec.ZSTD)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"kafka.acks": "1"}, "kafka.acks is '1'"),
        ({"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence"),
        ({"deliveryGuarantee": "at-most-once"}, "deliveryGuarantee is 'at-most-once'"),
        ({"txnAppId": "a"}, "txnAppId needs deliveryGuarantee exactly-once: set that too"),
        ({**ONCE, "txnAppId": "a/b"}, "txnAppId is 'a/b', but must have 1 to 400 bytes"),
        ({**ONCE, "txnAppId": ""}, "txnAppId is ''"),
        ({**ONCE, "txnVersion": "1"}, "txnVersion is not for streams"),
        ({"kafka.transactional.id": "t"}, "exactly-once names its own transactions"),
        ({"kafka.compression.type": "rar"}, "kafka.compression.type is 'rar'"),
        ({"subscribe": "a"}, "subscribe is an option for reading"),
        ({"topic": ""}, "topic names no topic"),
    ],
)
def test_a_wrong_option_of_a_sink_is_named(more: dict[str, str], named: str) -> None:
    with pytest.raises(BadOption, match=named):
        parse_write({**BOOTSTRAP, **more}, Mode.STREAM)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"txnAppId": "a"}, "txnAppId and txnVersion belong together in a batch query"),
        ({"txnVersion": "1"}, "txnAppId and txnVersion belong together in a batch query"),
        ({"txnAppId": "a", "txnVersion": "one"}, "txnVersion is 'one', but must be a whole number"),
        ({"txnAppId": "a", "txnVersion": "-1"}, "txnVersion is '-1'"),
    ],
)
def test_a_wrong_name_of_a_batch_query_is_named(more: dict[str, str], named: str) -> None:
    with pytest.raises(BadOption, match=named):
        parse_write({**BOOTSTRAP, **ONCE, **more}, Mode.BATCH)


def test_an_exactly_once_batch_query_needs_a_name_and_a_version() -> None:
    more = {**ONCE, "txnAppId": "nightly", "txnVersion": "7"}
    once = parse_write({**BOOTSTRAP, **more}, Mode.BATCH).once
    assert once is not None
    assert (once.app, once.version, once.transaction_ms) == ("nightly", 7, 600_000)


@pytest.mark.parametrize(
    ("location", "named"),
    [
        (None, "checkpointLocation is missing among the query's own options"),
        ("s3://bucket/here", "is not a folder on this machine"),
        ("/nowhere/at/all", "does not contain the query's id: name the query with txnAppId"),
    ],
)
def test_a_checkpoint_without_an_id_is_named(location: str | None, named: str) -> None:
    with pytest.raises(BadOption, match=named):
        query_id(location)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_the_id_of_a_query_is_read_from_its_checkpoint(scheme: str, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "metadata").write_text('{"id":"4c1d"}')
    path = str(folder) if not scheme else str(folder).replace(" ", "%20")
    assert query_id(scheme + path) == "4c1d"


def test_no_option_is_both_accepted_and_refused() -> None:
    assert {one.name.lower() for one in TABLE} & REFUSED.keys() == set()
