"""The coordinator and its markers: when a transaction is complete, and what waits for that."""

from collections.abc import Sequence

from kafkaesque.broker.transaction_coordinator import MARKER_RETRY_MS, WAIT_MS_MAX
from kafkaesque.broker.transaction_ports import Marker, Told
from kafkaesque.errors import NotLeader
from kafkaesque.machines.transaction_commands import Added, Answer, Ended
from kafkaesque.machines.transaction_errors import ConcurrentTransactions
from kafkaesque.machines.transaction_records import Place, State
from tests.broker.transactional import COMMITTED, House, Writer


class HeldMarkers:
    """Markers that reach no partition before the test lets them."""

    def __init__(self) -> None:
        self.asked: list[tuple[Marker, Sequence[Place], Told]] = []

    def write(self, marker: Marker, places: Sequence[Place], told: Told) -> None:
        self.asked.append((marker, places, told))


def held(house: House) -> tuple[Writer, HeldMarkers]:
    """A producer with a transaction in both partitions, whose markers are held."""
    writer = Writer(house)
    writer.add(0, 1)
    assert writer.write(0, b"a") is COMMITTED
    markers = HeldMarkers()
    house.broker.transactions.coordinators.of("t")._markers = markers
    return writer, markers


def state(house: House) -> State:
    known = house.broker.transactions.coordinators.of("t")._host.machine.get("t")
    assert known is not None
    return known.state


def test_a_transaction_is_complete_when_all_partitions_know_and_not_before() -> None:
    house = House()
    writer, markers = held(house)
    assert isinstance(writer.end(), Ended)
    _, places, told = markers.asked[0]
    assert set(places) == {house.place(0), house.place(1)}
    told(places[0], None)
    house.sync()
    assert state(house) is State.PREPARE_COMMIT
    told(places[1], None)
    house.sync()
    assert house.broker.transactions.coordinators.of("t").open_count == 0


def test_a_partition_that_did_not_take_the_marker_is_asked_again() -> None:
    house = House()
    writer, markers = held(house)
    writer.end()
    _, places, told = markers.asked[0]
    told(places[0], None)
    told(places[1], NotLeader(None))
    house.tick()
    assert len(markers.asked) == 1, "not at once"
    house.clock.ms += MARKER_RETRY_MS
    house.tick()
    assert [places for _, places, _ in markers.asked[1:]] == [[places[1]]]


def test_the_next_transaction_waits_for_the_one_before_but_not_for_long() -> None:
    house = House()
    writer, markers = held(house)
    writer.end()
    assert writer.add(0) is None
    _, places, told = markers.asked[0]
    for place in places:
        told(place, None)
    house.sync()
    assert isinstance(writer.add(1), Added)
    writer.end()
    answers: list[Answer] = []
    coordinator = house.broker.transactions.coordinators.of("t")
    waiting = writer.add_question(answers.append, 0)
    coordinator.ask("t", waiting, answers.append)
    assert answers == []
    house.clock.ms += WAIT_MS_MAX
    house.tick()
    assert [type(answer) for answer in answers] == [ConcurrentTransactions]


def test_nothing_is_told_to_partitions_before_the_decision_is_committed() -> None:
    house = House()
    writer, markers = held(house)
    house.holds_syncs = True
    assert writer.try_to_end(writer.producer) is None
    assert markers.asked == []
    house.sync()
    assert len(markers.asked) == 1
