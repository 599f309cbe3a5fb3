"""Commands to the catalog travel as bytes, and refusals arrive as the original errors."""

import msgspec
import pytest

from kafkaesque import errors
from kafkaesque.machines.catalog import catalog_errors
from kafkaesque.machines.catalog.catalog_commands import (
    Carried,
    CatalogCommand,
    CreateTopic,
    DrainBroker,
    FinishMove,
    MovePartitions,
    Refused,
    RegisterBroker,
    RemoveBroker,
    Reply,
    TakeProducerIds,
    Unknown,
    to_error,
    to_refusal,
)

COMMANDS = (
    CreateTopic(
        name="orders",
        topic_id=bytes(16),
        partitions=2,
        replication=-1,
        settings={"retention.ms": "5"},
        assignment=[[1, 2], [2, 3]],
    ),
    TakeProducerIds(count=1000),
    RegisterBroker(
        node=2, host="b2", port=9092, rack="r", directory=bytes(range(16)), incarnation=7
    ),
    MovePartitions(moves=[(bytes(16), 0, [2, 3]), (bytes(16), 1, [])]),
    FinishMove(topic_id=bytes(16), partition=1, nodes=[2, 3], number=4),
    DrainBroker(node=3, is_draining=True),
    RemoveBroker(node=3),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_round_trips(command: CatalogCommand) -> None:
    data = msgspec.msgpack.encode(command)
    assert msgspec.msgpack.Decoder(CatalogCommand).decode(data) == command


@pytest.mark.parametrize("reply", [Carried(end=3), Refused(error="X", text="y"), Unknown()])
def test_a_reply_round_trips(reply: Reply) -> None:
    data = msgspec.msgpack.encode(reply)
    assert msgspec.msgpack.Decoder(Reply).decode(data) == reply


@pytest.mark.parametrize(
    "error",
    [
        errors.TopicExists("there already"),
        catalog_errors.InvalidReplicas("too many"),
        errors.NotLeader(3),
        errors.UnknownTopic("no such"),
        catalog_errors.NoMove("not moving"),
        catalog_errors.UnknownBroker("no broker"),
        catalog_errors.BrokerInUse("holds something"),
    ],
)
def test_a_refusal_arrives_as_the_original_error(error: errors.KafkaesqueError) -> None:
    again = to_error(to_refusal(error))
    assert type(again) is type(error)


def test_a_refusal_of_a_later_version_is_an_error_with_the_same_message() -> None:
    again = to_error(Refused(error="SomethingNew", text="it is forbidden on sundays"))
    assert isinstance(again, errors.BrokerError)
    assert str(again) == "it is forbidden on sundays"
