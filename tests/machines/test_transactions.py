"""All transactional ids of a coordinator: timeouts, limits, and restarts."""

import pytest

from kafkaesque.ages import Ages, Leap
from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.errors import NewerFormat
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transactions.transaction_commands import Init, Producer
from kafkaesque.machines.transactions.transaction_errors import (
    InvalidTransactionalId,
    InvalidTransactionTimeout,
    ProducerFenced,
    TooManyTransactions,
)
from kafkaesque.machines.transactions.transaction_records import (
    NO_EPOCH,
    State,
    Transaction,
    from_record,
    to_record,
)
from kafkaesque.machines.transactions.transactions import Transactions
from tests.machines.transaction_desk import TIMEOUT_MS, A, B, Desk


def test_b27_an_open_transaction_times_out_and_its_producer_is_fenced() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer, A)
    desk.pass_ms(0)
    desk.pass_ms(TIMEOUT_MS - 1)
    assert desk.is_in(State.ONGOING)
    desk.pass_ms(1)
    assert desk.is_in(State.PREPARE_ABORT)
    desk.complete()
    assert desk.markers == [(Producer(producer.producer_id, producer.epoch + 1), False)]
    with pytest.raises(ProducerFenced):
        desk.end(producer)
    assert desk.init(expected=producer).epoch == producer.epoch + 1, "its own producer may go on"


@pytest.mark.parametrize("wall_ms", [-(10**9), 0])
def test_a_clock_that_is_set_back_does_not_keep_a_transaction_open(wall_ms: int) -> None:
    desk = Desk()
    desk.add(desk.init(), A)
    desk.pass_ms(0, wall_ms=wall_ms)
    desk.pass_ms(TIMEOUT_MS, wall_ms=0)
    assert desk.is_in(State.PREPARE_ABORT)


def test_a_clock_in_doubt_neither_aborts_early_nor_expires_ids() -> None:
    desk = Desk(TransactionConfig(id_expiration_ms=100))
    producer = desk.init()
    desk.add(producer, A)
    late = desk.now._replace(wall_ms=desk.now.wall_ms + 10**9, ages=None)
    desk.carry_out(desk.machine.tick(late))
    assert desk.is_in(State.ONGOING)
    desk.end(producer)
    desk.complete()
    assert desk.machine.expire(late).records == []
    leaps = (Leap(desk.now.wall_ms, 10**9),)
    set_right = late._replace(ages=Ages(now_ms=late.wall_ms, leaps=leaps))
    assert desk.machine.expire(set_right).records == [], "the clock was behind"
    assert desk.machine.expire(late._replace(ages=Ages(now_ms=late.wall_ms))).records != []


def test_a_restart_counts_the_elapsed_part_of_the_timeout() -> None:
    desk = Desk()
    desk.add(desk.init(), A)
    desk.pass_ms(TIMEOUT_MS - 10)
    desk.restart()
    desk.pass_ms(0)
    desk.pass_ms(9)
    assert desk.is_in(State.ONGOING)
    desk.pass_ms(1)
    assert desk.is_in(State.PREPARE_ABORT)


def test_the_timeout_of_one_transaction_does_not_hit_the_next() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer)
    desk.pass_ms(TIMEOUT_MS - 1)
    desk.end(producer)
    desk.complete()
    desk.add(producer)
    desk.pass_ms(1)
    assert desk.is_in(State.ONGOING)


def test_b28_a_restart_between_two_partitions_loses_neither() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer, A)
    desk.restart()
    assert desk.add(producer, B) == 1
    desk.restart()
    desk.end(producer)
    assert desk.known.places == (A, B)


def test_b27_a_decision_survives_and_is_found_after_a_restart() -> None:
    desk = Desk()
    desk.add(producer := desk.init(), A)
    desk.end(producer)
    desk.restart()
    assert desk.machine.ending() == ["t"]
    desk.complete()
    assert desk.is_in(State.COMPLETE_COMMIT)


def test_the_records_rebuild_the_machine() -> None:
    desk = Desk()
    desk.add(desk.init(), A, B)
    before = desk.known
    desk.restore()
    assert desk.known == before
    assert desk.machine.open_count == 1


def test_a_late_confirmation_of_an_old_transaction_completes_nothing() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer)
    desk.end(producer)
    assert desk.machine.completed("t", 0, desk.now).records == []
    assert desk.machine.completed("t", 1, desk.now).records != []


def test_an_unused_id_expires_but_not_one_with_an_open_transaction() -> None:
    desk = Desk(TransactionConfig(id_expiration_ms=100, prepared_ms_max=10**12))
    producer = desk.init()
    desk.add(producer)
    desk.prepare(producer)
    desk.pass_ms(1_000)
    assert desk.machine.expire(desk.now).records == []
    desk.end(producer)
    desk.complete()
    desk.pass_ms(99)
    assert desk.machine.expire(desk.now).records == []
    desk.pass_ms(1)
    desk.carry_out(desk.machine.expire(desk.now))
    assert len(desk.machine) == 0


def test_a_prepared_transaction_that_is_not_ended_for_long_is_aborted() -> None:
    desk = Desk(TransactionConfig(prepared_ms_max=10_000))
    producer = desk.init()
    desk.add(producer)
    desk.prepare(producer)
    desk.pass_ms(0)
    desk.pass_ms(9_999)
    assert desk.is_in(State.PREPARED)
    desk.pass_ms(1)
    assert desk.is_in(State.PREPARE_ABORT)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_has_limits(timeout_ms: int) -> None:
    with pytest.raises(InvalidTransactionTimeout):
        Desk().init(timeout_ms=timeout_ms)


@pytest.mark.parametrize("name", ["", "x" * 1025])
def test_an_id_has_limits(name: str) -> None:
    desk = Desk()
    command = Init(transactional_id=name, timeout_ms=1, fresh_id=1)
    with pytest.raises(InvalidTransactionalId):
        desk.machine.init(command, print, desk.now)


def test_a_coordinator_has_a_limited_number_of_ids_and_of_open_transactions() -> None:
    desk = Desk(TransactionConfig(ids_max=1, open_max=0))
    producer = desk.init()
    with pytest.raises(TooManyTransactions):
        desk.add(producer)
    other = Init(transactional_id="other", timeout_ms=1, fresh_id=1)
    with pytest.raises(TooManyTransactions):
        desk.machine.init(other, print, desk.now)


def test_the_record_has_the_documented_format() -> None:
    value = Transaction(
        state=State.ONGOING,
        producer_id=7,
        epoch=1,
        timeout_ms=60_000,
        began_ms=1,
        changed_ms=2,
        number=3,
        places=((bytes(range(16)), 2),),
    )
    record = to_record("t", value)
    assert record.key.hex(" ") == "92 01 a1 74"
    wanted = "9e 01 a7 4f 6e 67 6f 69 6e 67 07 01 ff ff ff cd ea 60 01 02 03 91 92 c4 10 "
    wanted += " ".join(f"{byte:02x}" for byte in range(16)) + " 02 a0 ff"
    assert record.value is not None
    assert record.value.hex(" ") == wanted
    assert from_record(record) == ("t", value)


def test_a_record_from_before_kept_prepared_transactions_can_be_read() -> None:
    data = "9d 01 a7 4f 6e 67 6f 69 6e 67 07 01 ff ff ff cd ea 60 01 02 03 90 a3 6d 61 79"
    name, value = from_record(MachineRecord(bytes.fromhex("9201a174"), bytes.fromhex(data)))
    assert name == "t"
    assert isinstance(value, Transaction)
    assert (value.owner, value.begun_epoch) == ("may", NO_EPOCH)


def test_a_record_of_a_later_version_is_refused() -> None:
    machine = Transactions(TransactionConfig())
    with pytest.raises(NewerFormat):
        machine.apply(MachineRecord(b"\x92\x02\xa1t", None))


def test_the_partitions_of_all_open_transactions_are_bounded_together() -> None:
    desk = Desk(TransactionConfig(places_max=3))
    one, two = desk.init(name="one"), desk.init(name="two")
    desk.add(one, A, B, name="one")
    desk.add(two, A, name="two")
    with pytest.raises(TooManyTransactions):
        desk.add(two, B, name="two")
    desk.add(two, A, name="two")
    desk.end(one, name="one")
    desk.complete()
    assert desk.machine.place_count == 1
    desk.add(two, B, name="two")
    copy = Transactions(TransactionConfig(places_max=0))
    for record in desk.machine.records():
        copy.apply(record)
    assert copy.place_count == 2, "what was written is applied in any case"
