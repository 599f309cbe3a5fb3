"""What brokers of a cluster ask each other about transactions, and when they refuse."""

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.cluster.calls import TRANSACTION
from kafkaesque.broker.coordination.transactions import STATE_TOPIC
from kafkaesque.errors import KafkaesqueError, NotCoordinator, UnknownTopic
from kafkaesque.machines.catalog.catalog_commands import Refused
from kafkaesque.machines.catalog.group_names import group_of
from kafkaesque.machines.decision import Command
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    End,
    Init,
    Inited,
    Producer,
)
from kafkaesque.machines.transactions.transaction_errors import InvalidProducerMapping
from kafkaesque.machines.transactions.transaction_questions import (
    Answer,
    Check,
    EndThere,
    Marked,
    Marker,
)
from kafkaesque.machines.transactions.transaction_records import Place
from kafkaesque.sim.broker_world import BrokerWorld
from kafkaesque.types import NodeId, Term
from tests.sim.test_broker_world import broker_of, create, leader_of, ready_world, wait

PRODUCER = Producer(7, 0)
Told = dict[Place, KafkaesqueError | None]


def marker(number: int = 1) -> Marker:
    return Marker(
        producer_id=PRODUCER.producer_id,
        epoch=PRODUCER.epoch,
        is_commit=True,
        coordinator_term=1,
        number=number,
    )


def a_cluster() -> tuple[BrokerWorld, bytes, NodeId]:
    """A world with the topic `orders`, its id, and the leader of its only partition."""
    world = ready_world()
    assert create(world, 1, "orders", 1) is None
    wait(world, lambda: leader_of(world, "orders") is not None)
    machine = leader_of(world, "orders")
    assert machine is not None
    return world, broker_of(world, 1).catalog.topics["orders"].topic_id, machine.node


def write(world: BrokerWorld, node: NodeId, place: Place, told: Told) -> None:
    def ask(broker: Broker) -> None:
        broker.transactions.markers.write(marker(), [place], told.__setitem__)

    world.ask_broker(world.nodes[node], ask)


def coordinator(world: BrokerWorld) -> NodeId:
    """Create the coordinators of transactions; return the one of `t`."""
    world.ask_broker(
        world.nodes[1], lambda one: one.transactions.coordinators.when_ready(lambda _: None)
    )

    def named() -> set[NodeId | None]:
        return {broker_of(world, node).coordinator_of("t", STATE_TOPIC) for node in world.nodes}

    def is_open() -> bool:
        brokers = [broker_of(world, node) for node in world.nodes]
        return all(one.transactions.coordinators.is_open for one in brokers) and len(named()) == 1

    wait(world, is_open)
    (found,) = named()
    assert found is not None
    return found


def consult(world: BrokerWorld, node: NodeId, question: EndThere | Check) -> Answer:
    answers: list[Answer] = []
    world.ask_broker(
        world.nodes[node], lambda broker: broker.answer(TRANSACTION, question, answers.append)
    )
    wait(world, lambda: bool(answers))
    return answers[0]


def end_there(place: Place, term: Term) -> EndThere:
    return EndThere(
        producer_id=PRODUCER.producer_id,
        epoch=PRODUCER.epoch,
        is_commit=True,
        coordinator_term=1,
        number=1,
        places=[(*place, term)],
    )


def test_a_marker_is_written_by_the_leader_wherever_it_is() -> None:
    world, topic_id, leader = a_cluster()
    elsewhere = next(node for node in world.nodes if node != leader)
    told: Told = {}
    before = broker_of(world, leader).partition("orders", 0).high_watermark
    write(world, elsewhere, (topic_id, 0), told)
    wait(world, lambda: bool(told))
    assert told == {(topic_id, 0): None}
    assert broker_of(world, leader).partition("orders", 0).high_watermark == before + 1


def test_a_dead_leader_does_not_count_as_having_written_the_marker() -> None:
    world, topic_id, leader = a_cluster()
    elsewhere = next(node for node in world.nodes if node != leader)
    told: Told = {}
    world.nodes[leader].kill()
    write(world, elsewhere, (topic_id, 0), told)
    wait(world, lambda: bool(told))
    assert told[topic_id, 0] is not None


def test_a_marker_for_an_earlier_term_of_the_leader_is_not_written() -> None:
    world, topic_id, leader = a_cluster()
    topic = broker_of(world, leader).catalog.topics["orders"]
    term = broker_of(world, leader).leader_of(group_of(topic, 0)).term
    late = consult(world, leader, end_there((topic_id, 0), term - 1))
    assert late == Marked(settled=[])
    now = consult(world, leader, end_there((topic_id, 0), term))
    assert now == Marked(settled=[(topic_id, 0)])


def test_a_leader_that_does_not_know_a_topic_does_not_say_that_it_needs_no_marker() -> None:
    world, _, leader = a_cluster()
    assert consult(world, leader, end_there((b"?" * 16, 0), 1)) == Marked(settled=[])


def test_a_topic_counts_as_deleted_only_when_the_catalog_leader_does_not_have_it() -> None:
    world, _, leader = a_cluster()
    place = b"?" * 16, 0
    told: Told = {}
    write(world, leader, place, told)
    assert not told, "its copy of the catalog may lag"
    wait(world, lambda: bool(told))
    assert isinstance(told[place], UnknownTopic)


def test_a_replaced_coordinator_lets_no_producer_write() -> None:
    world, topic_id, _ = a_cluster()
    node = coordinator(world)

    def check(term: Term) -> Answer:
        question = Check(
            transactional_id="t",
            producer_id=PRODUCER.producer_id,
            epoch=PRODUCER.epoch,
            place=(topic_id, 0),
            adds=False,
            coordinator_term=term,
        )
        return consult(world, node, question)

    known, replaced = check(0), check(1_000)
    assert isinstance(known, Refused)
    assert known.error == InvalidProducerMapping.__name__
    assert isinstance(replaced, Refused)
    assert replaced.error == NotCoordinator.__name__


def test_a_coordinators_refusal_reaches_brokers_elsewhere() -> None:
    world, topic_id, _ = a_cluster()
    node = coordinator(world)
    elsewhere = next(other for other in world.nodes if other != node)
    found: list[int | KafkaesqueError] = []
    check = Check(
        transactional_id="t",
        producer_id=PRODUCER.producer_id,
        epoch=PRODUCER.epoch,
        place=(topic_id, 0),
        adds=False,
    )

    def ask(broker: Broker) -> None:
        broker.transactions.desk.check(check, found.append)

    world.ask_broker(world.nodes[elsewhere], ask)
    wait(world, lambda: bool(found))
    assert isinstance(found[0], InvalidProducerMapping)


def test_a_coordinator_without_a_majority_reports_no_end() -> None:
    world, topic_id, _ = a_cluster()
    node = coordinator(world)
    answers: list[object] = []

    def ask(command: Command[object]) -> None:
        def question(broker: Broker) -> None:
            broker.transactions.coordinators.of("t").ask(command, answers.append)

        world.ask_broker(world.nodes[node], question)

    ask(Init(transactional_id="t", timeout_ms=60_000))
    wait(world, lambda: bool(answers))
    come_as = answers.pop()
    assert isinstance(come_as, Inited)
    producer = come_as.producer
    add = Add(transactional_id="t", producer=producer, places=((topic_id, 0),))
    ask(add)
    wait(world, lambda: bool(answers))
    assert isinstance(answers.pop(), Added)
    for other in world.nodes:
        if other != node:
            world.nodes[other].kill()
    end = End(transactional_id="t", producer=producer, is_commit=True, bumps_epoch=False)
    ask(end)
    wait(world, lambda: bool(answers))
    assert isinstance(answers[0], NotCoordinator)
