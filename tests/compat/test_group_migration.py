"""Groups of librdkafka's consumers that change their protocol while in use."""

# mypy: disable-error-code="no-untyped-call"

from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kafkaesque.testing.process import BrokerProcess
from tests.compat.test_groups import (
    GROUP,
    SECONDS_MAX,
    TOPIC,
    group_offsets,
    is_shared,
    make_topic,
    poll_until,
    produce,
    shares,
)

pytestmark = pytest.mark.compat

COUNT = 400
REBALANCING = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)
"""The errors of a member that commits while its group moves to the next generation."""


def member(broker: BrokerProcess, stack: ExitStack, **settings: object) -> Consumer:
    """A member of the group that commits only when the test says so; closed at the end."""
    made = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    stack.callback(made.close)
    made.subscribe([TOPIC])
    return made


def old_member(broker: BrokerProcess, stack: ExitStack, strategy: str) -> Consumer:
    return member(
        broker,
        stack,
        partition_assignment_strategy=strategy,
        session_timeout_ms=6000,
        heartbeat_interval_ms=100,
    )


def kind(broker: BrokerProcess) -> ConsumerGroupType:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    listed = admin.list_consumer_groups().result(SECONDS_MAX)
    found: list[ConsumerGroupType] = [one.type for one in listed.valid if one.group_id == GROUP]
    return found[0]


def commit_all(group: list[Consumer], seen: list[str]) -> None:
    """Commit the positions of all; members in a rebalance may do so after it."""
    poll_until(group, lambda: all(commits(one) for one in group), seen)


def commits(one: Consumer) -> bool:
    where = [place for place in one.position(one.assignment()) if place.offset >= 0]
    if not where:
        return True
    try:
        one.commit(offsets=where, asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() not in REBALANCING:
            raise
        return False
    return True


@pytest.mark.requirement("CORE-6")
@pytest.mark.parametrize("strategy", ["cooperative-sticky", "range"])
def test_a_group_is_upgraded_and_downgraded_while_its_members_keep_reading(
    broker: BrokerProcess, strategy: str
) -> None:
    make_topic(broker)
    produce(broker, 0, COUNT)
    seen: list[str] = []
    with ExitStack() as stack:
        old = [old_member(broker, stack, strategy) for _ in range(2)]
        poll_until(old, lambda: is_shared(old), seen)
        poll_until(old, lambda: len(seen) == COUNT, seen)
        commit_all(old, seen)
        assert kind(broker) == ConsumerGroupType.CLASSIC
        with ExitStack() as inner:
            new = member(broker, inner, group_protocol="consumer")
            everyone = [*old, new]
            poll_until(everyone, lambda: is_shared(everyone), seen)
            assert kind(broker) == ConsumerGroupType.CONSUMER
            produce(broker, COUNT, COUNT)
            poll_until(everyone, lambda: len(seen) == 2 * COUNT, seen)
            commit_all(everyone, seen)
        poll_until(old, lambda: is_shared(old), seen)
        assert kind(broker) == ConsumerGroupType.CLASSIC
        produce(broker, 2 * COUNT, COUNT)
        poll_until(old, lambda: len(seen) == 3 * COUNT, seen)
        commit_all(old, seen)
    assert sorted(seen, key=int) == [str(number) for number in range(3 * COUNT)], "each once"
    offsets = group_offsets(AdminClient({"bootstrap.servers": broker.bootstrap}))
    assert sum(offsets.values()) == 3 * COUNT


def test_members_are_replaced_one_by_one_until_none_is_classic(broker: BrokerProcess) -> None:
    make_topic(broker)
    seen: list[str] = []
    with ExitStack() as stack:
        old = [old_member(broker, stack, "cooperative-sticky") for _ in range(2)]
        poll_until(old, lambda: is_shared(old), seen)
        new: list[Consumer] = []
        while old:
            new.append(member(broker, stack, group_protocol="consumer"))
            poll_until([*old, *new], lambda: is_shared([*old, *new]), seen)
            produce(broker, len(seen), COUNT)
            poll_until([*old, *new], lambda: len(seen) == len(new) * COUNT, seen)
            commit_all([*old, *new], seen)
            old.pop().close()
            poll_until([*old, *new], lambda: is_shared([*old, *new]), seen)
        assert kind(broker) == ConsumerGroupType.CONSUMER
        assert all(shares(new))
    assert sorted(seen, key=int) == [str(number) for number in range(2 * COUNT)], "each once"
