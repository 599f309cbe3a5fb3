"""Transactions on a whole broker: atomic even if the disk fails in between."""

import pytest

from kafkaesque.broker.coordination.coordinators import OFFSETS_TOPIC, partition_of
from kafkaesque.broker.partition.partition_errors import StaleProducerEpoch
from kafkaesque.broker.partition.producers import NO_NUMBER
from kafkaesque.broker.partition.refusals import BehindRefused
from kafkaesque.broker.partition.transaction_ports import Checked, Guards
from kafkaesque.errors import NotCoordinator
from kafkaesque.machines.decision import Command
from kafkaesque.machines.transactions.transaction_commands import (
    Add,
    Answer,
    Ended,
    Init,
    Inited,
    Producer,
)
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    CoordinatorFenced,
    InvalidTransactionState,
    ProducerFenced,
    TransactionUnverified,
)
from kafkaesque.machines.transactions.transaction_questions import Check, Marker
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.partitions import numbered
from tests.broker.transactional import (
    COMMITTED,
    TIMEOUT_MS,
    Added,
    Committed,
    House,
    Writer,
    fetched,
    transactional,
)

both_versions = pytest.mark.parametrize("is_v2", [False, True])


class Closed:
    """A desk without a coordinator."""

    def check(self, _: Check, checked: Checked) -> None:
        checked(NotCoordinator("it has just moved"))


def begun(house: House, name: str = "t", *, is_v2: bool = False) -> Writer:
    """A producer that has written `a` and `b` in an open transaction."""
    writer = Writer(house, name, is_v2=is_v2)
    if not is_v2:
        assert isinstance(writer.add(0, 1), Added)
    assert writer.write(0, b"a") is COMMITTED
    assert writer.write(1, b"b") is COMMITTED
    return writer


@both_versions
def test_a_committed_transaction_is_visible_in_all_partitions(*, is_v2: bool) -> None:
    house = House()
    writer = begun(house, is_v2=is_v2)
    assert (house.reading(0), house.reading(1)) == ([], [])
    assert isinstance(writer.end(), Ended)
    assert (house.reading(0), house.reading(1)) == ([b"a"], [b"b"])
    assert house.partition().stable_offset == house.partition().high_watermark == 2


@both_versions
def test_b31_an_aborted_transaction_is_in_the_log_and_marked_as_aborted(*, is_v2: bool) -> None:
    house = House()
    writer = begun(house, is_v2=is_v2)
    writer.end(is_commit=False)
    assert house.reading(0) == []
    first = writer.producer.producer_id
    assert house.partition().aborted(0, 2) == [(first, 0)]
    assert house.values("orders")[0] == b"a", "readers of uncommitted records see it"
    if not is_v2:
        writer.add(0)
    writer.write(0, b"c")
    writer.end()
    assert house.reading(0) == [b"c"]


@both_versions
@pytest.mark.parametrize("policy", list(CrashPolicy))
@pytest.mark.parametrize("is_commit", [True, False])
def test_b27_a_decision_survives_a_crash(
    policy: CrashPolicy, *, is_commit: bool, is_v2: bool
) -> None:
    house = House()
    writer = begun(house, is_v2=is_v2)
    assert isinstance(writer.end(is_commit=is_commit), Ended)
    house.crash(policy)
    house.tick(3)
    assert (house.reading(0), house.reading(1)) == (([b"a"], [b"b"]) if is_commit else ([], []))
    if not is_v2:
        assert isinstance(writer.add(0), Added)
    assert writer.write(0, b"next") is COMMITTED


@both_versions
@pytest.mark.parametrize("policy", [CrashPolicy.DROP_UNSYNCED, CrashPolicy.TORN])
@pytest.mark.parametrize("rounds", range(4))
def test_b27_b28_a_crash_at_any_moment_of_the_end_leaves_all_or_none(
    rounds: int, policy: CrashPolicy, *, is_v2: bool
) -> None:
    house = House()
    writer = begun(house, is_v2=is_v2)
    house.holds_syncs = True
    answer = writer.try_to_end(writer.producer)
    for _ in range(rounds):
        house.later.play()
        house.broker.flush()
    house.crash(policy)
    house.holds_syncs = False
    house.tick()
    house.clock.ms += TIMEOUT_MS
    house.tick(3)
    seen = house.reading(0), house.reading(1)
    assert seen in (([b"a"], [b"b"]), ([], []))
    assert answer is None or seen == ([b"a"], [b"b"])
    assert house.partition().stable_offset == house.partition().high_watermark


def test_b27_an_open_transaction_times_out_after_a_crash_too() -> None:
    house = House()
    begun(house)
    house.crash(CrashPolicy.DROP_UNSYNCED)
    house.tick()
    assert house.partition().stable_offset == 0
    house.clock.ms += TIMEOUT_MS
    house.tick(2)
    assert house.partition().stable_offset == house.partition().high_watermark == 2
    assert house.reading(0) == []


def test_b26_a_late_batch_of_an_ended_transaction_is_refused() -> None:
    house = House()
    writer = begun(house)
    late = transactional(1, b"late", producer=writer.producer)
    writer.end()
    assert isinstance(writer.send(0, late), TransactionUnverified)
    assert house.reading(0) == [b"a"]


def test_a_batch_behind_one_that_could_not_be_checked_is_not_a_gap() -> None:
    house = House()
    writer = begun(house)
    writer.end()
    writer.add(0)
    desk, house.broker.transactions.desk = house.broker.transactions.desk, Closed()
    second, third = (transactional(at, b"x", producer=writer.producer) for at in (1, 2))
    assert isinstance(writer.send(0, second), NotCoordinator)
    house.broker.transactions.desk = desk
    assert isinstance(writer.send(0, third), BehindRefused)
    assert writer.send(0, second) is COMMITTED
    assert writer.send(0, third) is COMMITTED


def test_b26_with_v2_a_late_batch_has_a_stale_epoch() -> None:
    house = House()
    writer = begun(house, is_v2=True)
    late = transactional(1, b"late", producer=writer.producer)
    writer.end()
    writer.write(0, b"c")
    assert isinstance(writer.send(0, late), StaleProducerEpoch)
    writer.end()
    assert house.reading(0) == [b"a", b"c"]


class Connections:
    """Asks the coordinator of "t" over numbered connections."""

    def __init__(self) -> None:
        self._house = House()
        self._writer = begun(self._house)

    def asked(self, command: Command[Answer], connection: int) -> Answer:
        answers: list[Answer] = []
        self._house.broker.transactions.coordinators.of("t").ask(
            command, answers.append, connection
        )
        self._house.after_event()
        return answers[0]

    def init(self, connection: int) -> Add:
        """Start a new producer; return the first command of its transaction."""
        command = Init(transactional_id="t", timeout_ms=60_000)
        inited = self.asked(command, connection)
        if isinstance(inited, ConcurrentTransactions):  # the open transaction is aborted first
            inited = self.asked(command, connection)
        assert isinstance(inited, Inited)
        self._writer.producer = inited.producer
        return self._writer.add_command(0)


def test_b26_a_late_request_on_an_old_connection_is_refused() -> None:
    connections = Connections()
    add = connections.init(7)
    assert isinstance(connections.asked(add, 7), Added)
    assert isinstance(connections.asked(add, 9), Added)
    late = connections.asked(add, 7)
    assert isinstance(late, NotCoordinator)
    assert "younger" in str(late)
    add = connections.init(8)
    assert isinstance(connections.asked(add, 8), Added)


def test_the_requests_after_an_init_may_use_an_older_connection() -> None:
    """aiokafka has two connections to a broker, and opens the one for Init when it needs it."""
    connections = Connections()
    add = connections.init(9)
    assert isinstance(connections.asked(add, 7), Added)
    assert isinstance(connections.asked(add, 8), Added)
    assert isinstance(connections.asked(add, 7), NotCoordinator)


def test_a_batch_for_a_partition_outside_the_transaction_is_refused() -> None:
    house = House()
    writer = Writer(house)
    writer.add(0)
    assert isinstance(writer.write(1, b"x"), TransactionUnverified)
    assert house.values("orders", 1) == []


def test_a_fenced_epoch_never_writes_again() -> None:
    house = House()
    zombie = begun(house)
    heir = Writer(house)
    assert isinstance(zombie.write(0, b"x"), StaleProducerEpoch)
    assert isinstance(zombie.try_to_end(zombie.producer), ProducerFenced)
    heir.add(0)
    assert heir.write(0, b"of the heir") is COMMITTED
    heir.end()
    assert house.reading(0) == [b"of the heir"]


def test_batches_waiting_for_a_check_are_appended_in_order() -> None:
    house = House()
    writer = Writer(house, is_v2=True)
    house.holds_syncs = True
    for sequence, value in enumerate([b"0", b"1", b"2"]):
        assert writer.write(0, value, sequence=sequence) is None
    house.holds_syncs = False
    house.sync()
    writer.end()
    assert house.reading(0) == [b"0", b"1", b"2"]


def test_a_producer_with_an_open_transaction_cannot_write_outside_it() -> None:
    house = House()
    producer_id, epoch = begun(house).producer
    plain = numbered(1, b"x", producer_id=producer_id, epoch=epoch)
    with pytest.raises(InvalidTransactionState):
        house.partition().append(memoryview(plain), print)


def test_offsets_take_effect_once_their_transaction_is_committed() -> None:
    house = House()
    topic = house.broker.catalog.topics[OFFSETS_TOPIC]
    writer = begun(house)
    assert isinstance(writer.commit_offset("g", 5), TransactionUnverified)
    writer.add_places((topic.topic_id, partition_of("g", topic.partitions)))
    assert isinstance(writer.commit_offset("g", 5), Committed)
    assert fetched(house, "g").offsets == {}
    assert fetched(house, "g").unstable == {house.place(0)}
    house.crash(CrashPolicy.DROP_UNSYNCED)
    assert fetched(house, "g").unstable == {house.place(0)}
    writer.end()
    assert fetched(house, "g").offsets[house.place(0)].offset == 5
    assert fetched(house, "g").unstable == frozenset()


def test_offsets_of_an_aborted_transaction_are_dropped() -> None:
    house = House()
    writer = Writer(house, is_v2=True)
    assert isinstance(writer.commit_offset("g", 5), Committed)
    writer.end(is_commit=False)
    assert fetched(house, "g").offsets == {}
    assert fetched(house, "g").unstable == frozenset()


def test_a_deleted_topic_does_not_keep_a_transaction_from_ending() -> None:
    house = House()
    house.create("other", 1)
    writer = begun(house)
    writer.add_places((house.broker.catalog.topics["other"].topic_id, 0))
    assert house.delete("other") == [None]
    writer.end()
    assert isinstance(writer.add(0), Added)


def test_aborted_transactions_are_remembered_across_a_restart_and_forgotten_with_the_log() -> None:
    house = House()
    writer = begun(house)
    writer.end(is_commit=False)
    for _ in range(3):
        house.broker.partition("orders", 0).producers.upkeep()
    house.restart()
    assert house.partition().aborted(0, 2) == [(writer.producer.producer_id, 0)]
    house.broker.delete_records("orders", 0, 2, lambda _: None)
    house.sync()
    house.partition().producers.upkeep()
    assert house.partition().aborted(0, 2) == []


# ── markers ──────────────────────────────────────────────────────────────────────────────────


def marker(producer: Producer, number: int = NO_NUMBER, term: int = 1) -> Marker:
    return Marker(
        producer_id=producer.producer_id,
        epoch=producer.epoch,
        is_commit=True,
        coordinator_term=term,
        number=number,
    )


def test_a_marker_of_an_earlier_transaction_does_not_end_the_open_one() -> None:
    house = House()
    writer = begun(house)
    writer.end(is_commit=False)
    writer.add(0)
    writer.write(0, b"c")
    end = house.partition().high_watermark
    house.partition().end_transaction(marker(writer.producer, number=1), lambda _: None)
    house.sync()
    assert house.partition().high_watermark == end
    assert house.reading(0) == []


def test_a_duplicate_marker_is_written_once() -> None:
    house = House()
    writer = begun(house)
    told: list[object] = []
    for _ in range(2):
        house.partition().end_transaction(marker(writer.producer, number=1), told.append)
        house.sync()
    assert told == [COMMITTED, COMMITTED]
    assert house.partition().high_watermark == 2


def test_an_old_coordinator_and_an_old_epoch_cannot_write_markers() -> None:
    house = House()
    writer = begun(house)
    partition, producer = house.partition(), writer.producer
    partition.end_transaction(marker(Producer(producer.producer_id, 3), term=5), print)
    with pytest.raises(StaleProducerEpoch):
        partition.end_transaction(marker(producer, term=5), print)
    with pytest.raises(CoordinatorFenced):
        partition.end_transaction(marker(Producer(producer.producer_id, 3), term=4), print)


def test_the_last_stable_offset_waits_until_the_marker_is_committed() -> None:
    house = House()
    writer = begun(house)
    house.holds_syncs = True
    house.partition().end_transaction(marker(writer.producer, number=1), lambda _: None)
    assert house.partition().stable_offset == 0
    house.sync()
    assert house.partition().stable_offset == 2


def test_a_marker_invalidates_earlier_checks_of_its_producer() -> None:
    guards = Guards()
    old, other = guards.begin(1), guards.begin(2)
    guards.marked(1)
    new = guards.begin(1)
    assert not guards.end(1, old)
    assert guards.end(1, new)
    assert guards.end(2, other)
    assert not guards.end(2, other)
