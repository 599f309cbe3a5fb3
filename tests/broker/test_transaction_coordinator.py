"""The coordinator and its markers: when a transaction is complete, and what waits for that."""

from collections.abc import Sequence

import pytest

from kafkaesque.broker.coordination.transaction_coordinator import (
    MARKER_RETRY_MS,
    WAIT_MS_MAX,
    TransactionCoordinator,
)
from kafkaesque.broker.partition.refusals import BehindRefused
from kafkaesque.broker.partition.transaction_ports import Told
from kafkaesque.config import LogConfig
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.errors import NotCoordinator, NotLeader
from kafkaesque.log import snapshot
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.machines.decision import Command, Decision, Now, ReplyTo
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Added,
    Answer,
    DriverRegistered,
    End,
    Ended,
    Init,
    Inited,
    RegisterDriver,
)
from kafkaesque.machines.transactions.transaction_errors import ConcurrentTransactions
from kafkaesque.machines.transactions.transaction_questions import Marker
from kafkaesque.machines.transactions.transaction_records import Place, State
from kafkaesque.machines.transactions.transactions import TransactionCommand, Transactions
from kafkaesque.record.read import read_records
from kafkaesque.record.view import BatchView
from kafkaesque.transactional_ids import BatchTransactionId
from tests.broker.nodes import THREE, Node, heartbeat
from tests.broker.transactional import COMMITTED, TIMEOUT_MS, House, Writer, transactional
from tests.log.logs import HandClock

AGE_MS = LogConfig().snapshot_age_ms_max


class HeldMarkers:
    """Markers that reach no partition until the test releases them."""

    def __init__(self) -> None:
        self.asked: list[tuple[Marker, Sequence[Place], Told]] = []

    def write(self, marker: Marker, places: Sequence[Place], told: Told) -> None:
        self.asked.append((marker, places, told))


def held(house: House) -> tuple[Writer, HeldMarkers]:
    """A producer with a transaction in both partitions, whose markers are held back."""
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


def test_a_transaction_is_complete_once_all_partitions_have_the_marker() -> None:
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


def test_with_v2_a_batch_sent_before_the_marker_may_be_retried() -> None:
    house = House()
    writer = Writer(house, is_v2=True)
    assert writer.write(0, b"a") is COMMITTED
    markers = HeldMarkers()
    house.broker.transactions.coordinators.of("t")._markers = markers
    assert isinstance(writer.end(), Ended)
    first, second = (transactional(at, b"b", producer=writer.producer) for at in (0, 1))
    assert isinstance(writer.send(0, first), ConcurrentTransactions)
    marker, places, told = markers.asked[0]
    house.broker.transactions.write(marker, places, told)
    house.sync()
    assert isinstance(writer.send(0, second), BehindRefused)
    assert writer.send(0, first) is COMMITTED
    assert writer.send(0, second) is COMMITTED
    assert house.reading(0) == [b"a"]


def test_a_partition_that_refused_the_marker_is_asked_again() -> None:
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


def test_the_next_transaction_waits_for_the_previous_one_but_not_for_long() -> None:
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
    coordinator.ask(writer.add_command(0), answers.append)
    assert answers == []
    house.clock.ms += WAIT_MS_MAX
    house.tick()
    assert [type(answer) for answer in answers] == [ConcurrentTransactions]


def test_no_marker_is_sent_before_the_decision_is_committed() -> None:
    house = House()
    writer, markers = held(house)
    house.holds_syncs = True
    assert writer.try_to_end(writer.producer) is None
    assert markers.asked == []
    house.sync()
    assert len(markers.asked) == 1


def test_on_a_full_disk_all_waiting_requests_are_answered_and_timeouts_still_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = House()
    writer, _ = held(house)
    writer.end()
    coordinator = house.broker.transactions.coordinators.of("t")
    answers: list[Answer] = []

    init = Init(transactional_id="other", timeout_ms=TIMEOUT_MS)
    real = Transactions.decide

    def decide(
        machine: Transactions, command: TransactionCommand, to: ReplyTo, now: Now
    ) -> Decision:
        """Return something to write, but only when asked again."""
        if command is init and not house.broker._store.flusher.is_full:
            raise ConcurrentTransactions("not yet")
        return real(machine, command, to, now)

    monkeypatch.setattr(Transactions, "decide", decide)
    coordinator.ask(init, answers.append)
    coordinator.ask(writer.add_command(0), answers.append)
    house.broker._store.flusher.is_full = True
    house.clock.ms += WAIT_MS_MAX
    coordinator.tick()
    assert [type(answer) for answer in answers] == [NotCoordinator] * 2


# ── the log ──────────────────────────────────────────────────────────────────────────────────


def test_the_log_is_trimmed_up_to_the_older_of_two_snapshots() -> None:
    led = Led()
    log = led.node.replica.log
    for _ in range(3):
        assert isinstance(led.end(), Ended)
        _, places, told = led.markers.asked.pop()
        told(places[0], None)
        led.tick()
        led.clock.ms += AGE_MS
        for _ in range(3):
            led.tick()
        assert isinstance(led.add(), Added)
    assert log.start.offset > 0
    led.node.restart()
    assert led.node.failures == []


def test_a_follower_saves_the_state_too() -> None:
    led = Led()
    node = led.node
    node.step(heartbeat(node.replica.raft.term + 1, node.replica.raft.end))
    assert not led.coordinator.is_hosted
    assert snapshot.offsets(node.disk, node.replica.group, MACHINE) == []
    led.follow_for_two_ages()
    assert snapshot.offsets(node.disk, node.replica.group, MACHINE) != []


def test_a_new_drivers_registration_and_the_aborts_it_causes_are_written_atomically(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafkaesque.broker.machine_hosting.coordinator.BATCH_BYTES", 1)
    led = Led()
    log = led.node.replica.log
    register = RegisterDriver(query="q", sink="s")
    first = led.ask(register)
    assert isinstance(first, DriverRegistered)
    name = str(BatchTransactionId("q", "s", 0, first.driver_epoch, 0, 0))
    assert isinstance(led.ask(Init(transactional_id=name, timeout_ms=TIMEOUT_MS)), Inited)
    before = log.end
    assert isinstance(led.ask(register), DriverRegistered)
    (batch,) = log.entries(before, 1 << 20)
    assert isinstance(batch.payload, bytes | bytearray | memoryview)
    assert len(list(read_records(BatchView(batch.payload)))) == 2


# ── during a transfer of leadership ──────────────────────────────────────────────────────────


class Led:
    """A coordinator of three replicas, and a producer with the id `t`; the test plays the rest."""

    def __init__(self) -> None:
        self.node = Node(THREE)
        self.clock = HandClock()
        self.markers = HeldMarkers()
        self.coordinator = TransactionCoordinator(
            self.node.site(self.clock),
            TransactionConfig(),
            lambda give: give(7),
            self.markers,
        )
        self.node.elect()
        inited = self.ask(Init(transactional_id="t", timeout_ms=TIMEOUT_MS))
        assert isinstance(inited, Inited)
        self.producer = inited.producer
        assert isinstance(self.add(), Added)

    def follow_for_two_ages(self) -> None:
        """Follow a leader until a snapshot is due, twice."""
        for _ in range(2):
            self.coordinator.tick()
            self.clock.ms += AGE_MS
            self.node.step(heartbeat(self.node.replica.raft.term, self.node.replica.raft.end))
            self.coordinator.tick()
            self.coordinator.tick()
            self.node.sync()

    def ask(self, command: Command[Answer]) -> Answer | None:
        answers: list[Answer] = []
        self.coordinator.ask(command, answers.append)
        self.agree()
        return answers[0] if answers else None

    def add(self) -> Answer | None:
        add = Add(transactional_id="t", producer=self.producer, places=((bytes(16), 0),))
        return self.ask(add)

    def end(self) -> Answer | None:
        end = End(transactional_id="t", producer=self.producer, is_commit=True, bumps_epoch=False)
        return self.ask(end)

    def agree(self) -> None:
        """Let a follower have everything too."""
        self.node.sync()
        self.node.accepts(2, self.node.replica.raft.end)

    def tick(self) -> None:
        self.coordinator.tick()
        self.agree()

    def state(self) -> State:
        known = self.coordinator._host.machine.get("t")
        assert known is not None
        return known.state


def test_a_transaction_that_expires_during_a_cancelled_transfer_is_aborted_after_it() -> None:
    led = Led()
    led.tick()
    led.node.replica.transfer(2)
    led.clock.ms += TIMEOUT_MS
    led.tick()
    assert led.state() is State.ONGOING
    led.node.let_the_transfer_fail()
    led.tick()
    assert led.state() is State.PREPARE_ABORT


def test_a_transaction_whose_markers_are_written_during_a_transfer_is_complete_after_it() -> None:
    led = Led()
    assert isinstance(led.end(), Ended)
    led.node.replica.transfer(2)
    _, places, told = led.markers.asked[0]
    told(places[0], None)
    led.node.let_the_transfer_fail()
    led.clock.ms += MARKER_RETRY_MS
    led.tick()
    assert led.coordinator.open_count == 0


def test_nothing_is_decided_during_a_transfer() -> None:
    led = Led()
    led.node.replica.transfer(2)
    assert isinstance(led.end(), NotCoordinator)
    led.node.let_the_transfer_fail()
    assert isinstance(led.end(), Ended)
