"""The life cycle of one id's transactions: what is allowed when, and who fences whom."""

import pytest
from msgspec.structs import replace

from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.machines.transactions.transaction import OWNER_CHARS_MAX, init
from kafkaesque.machines.transactions.transaction_commands import Init, Prepare, Producer
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    InvalidProducerMapping,
    InvalidTransactionState,
    ProducerFenced,
    ProducerIdNeeded,
    TooManyTransactions,
)
from kafkaesque.machines.transactions.transaction_records import EPOCH_LAST, State, to_record
from kafkaesque.machines.transactions.transactions import PLACES_MAX
from tests.machines.transaction_desk import NAME, TIMEOUT_MS, A, B, Desk


def exhausted() -> tuple[Desk, Producer]:
    """A desk whose producer has the last epoch of its id."""
    desk = Desk()
    desk.init()
    desk.machine.apply(to_record(NAME, replace(desk.known, epoch=EPOCH_LAST)))
    return desk, Producer(desk.known.producer_id, EPOCH_LAST)


def test_the_first_producer_gets_an_id_and_epoch_0() -> None:
    with pytest.raises(ProducerIdNeeded):
        init(None, Init(transactional_id=NAME, timeout_ms=1), 0)
    desk = Desk()
    assert desk.init().epoch == 0
    assert desk.is_in(State.EMPTY)


def test_each_new_producer_fences_the_previous_one() -> None:
    desk = Desk()
    old = desk.init()
    new = desk.init()
    assert new == Producer(old.producer_id, old.epoch + 1)
    with pytest.raises(ProducerFenced):
        desk.add(old)
    desk.add(new)


def test_a_new_producer_aborts_the_open_transaction_at_an_epoch_in_between() -> None:
    desk = Desk()
    old = desk.init()
    desk.add(old, A, B)
    new = desk.init()
    assert desk.markers == [(Producer(old.producer_id, old.epoch + 1), False)]
    assert new.epoch == old.epoch + 2
    with pytest.raises(ProducerFenced):
        desk.end(old)


def test_a_producer_that_recovers_from_an_error_gets_the_next_epoch_once() -> None:
    desk = Desk()
    first = desk.init()
    raised = desk.init(expected=first)
    assert raised.epoch == first.epoch + 1
    assert desk.init(expected=first) == raised, "the answer was lost, and it asks again"


def test_a_zombie_cannot_recover_with_an_old_epoch_beside_an_open_transaction() -> None:
    desk = Desk()
    zombie = desk.init()
    heir = desk.init()
    desk.add(heir)
    with pytest.raises(ProducerFenced):
        desk.init(expected=zombie)
    assert desk.is_in(State.ONGOING)


def test_another_producer_id_is_unknown() -> None:
    desk = Desk()
    producer = desk.init()
    with pytest.raises(InvalidProducerMapping):
        desk.add(Producer(producer.producer_id + 1, producer.epoch))
    with pytest.raises(InvalidProducerMapping):
        Desk().end(producer)


def test_only_added_partitions_may_be_written_to() -> None:
    desk = Desk()
    producer = desk.init()
    assert desk.missing(producer, A) == {A}
    desk.add(producer, A)
    assert desk.missing(producer, A, B) == {B}
    desk.end(producer)
    with pytest.raises(ConcurrentTransactions):
        desk.missing(producer, A)
    desk.complete()
    assert desk.missing(producer, A) == {A}


def test_the_next_transaction_waits_until_the_previous_one_is_complete() -> None:
    desk = Desk()
    producer = desk.init()
    assert desk.add(producer, A) == 1
    desk.end(producer)
    with pytest.raises(ConcurrentTransactions):
        desk.add(producer, B)
    desk.complete()
    assert desk.add(producer, B) == 2
    assert desk.known.places == (B,)


@pytest.mark.parametrize("is_commit", [True, False])
def test_b29_ending_twice_is_the_same_as_ending_once(*, is_commit: bool) -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer)
    desk.end(producer, is_commit=is_commit)
    with pytest.raises(ConcurrentTransactions):
        desk.end(producer, is_commit=is_commit)
    desk.complete()
    assert desk.end(producer, is_commit=is_commit) == producer
    assert len(desk.markers) == 1


@pytest.mark.parametrize("is_commit", [True, False])
def test_b29_ending_twice_with_v2_gives_the_same_epoch_twice(*, is_commit: bool) -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer)
    following = desk.end(producer, is_commit=is_commit, is_v2=True)
    assert following == Producer(producer.producer_id, producer.epoch + 1)
    assert desk.end(producer, is_commit=is_commit, is_v2=True) == following
    desk.complete()
    assert desk.end(producer, is_commit=is_commit, is_v2=True) == following
    assert desk.markers == [(following, is_commit)]


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("is_next_commit", [True, False])
def test_with_v2_the_end_of_the_next_transaction_waits_for_that_of_the_previous_one(
    *, is_commit: bool, is_next_commit: bool
) -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer)
    following = desk.end(producer, is_commit=is_commit, is_v2=True)
    with pytest.raises(ConcurrentTransactions):
        desk.end(following, is_commit=is_next_commit, is_v2=True)
    desk.complete()
    assert desk.end(following, is_commit=False, is_v2=True).epoch == following.epoch + 1


def test_a_committed_transaction_cannot_be_aborted_nor_the_other_way_round() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer)
    desk.end(producer, is_commit=True)
    with pytest.raises(InvalidTransactionState):
        desk.end(producer, is_commit=False)
    desk.complete()
    with pytest.raises(InvalidTransactionState):
        desk.end(producer, is_commit=False)


def test_a_transaction_that_was_not_begun_cannot_be_committed() -> None:
    desk = Desk()
    producer = desk.init()
    with pytest.raises(InvalidTransactionState):
        desk.end(producer)
    with pytest.raises(InvalidTransactionState):
        desk.end(producer, is_v2=True)


def test_with_v2_a_transaction_that_was_not_begun_can_be_aborted_which_raises_the_epoch() -> None:
    desk = Desk()
    producer = desk.init()
    following = desk.end(producer, is_commit=False, is_v2=True)
    assert following.epoch == producer.epoch + 1
    assert desk.end(producer, is_commit=False, is_v2=True) == following
    assert desk.machine.ending() == []


def test_b26_with_v2_a_late_end_never_reaches_the_next_transaction() -> None:
    desk = Desk()
    first = desk.init()
    desk.add(first)
    second = desk.end(first, is_commit=False, is_v2=True)
    desk.complete()
    desk.add(second)
    for is_commit in (True, False):
        with pytest.raises(ProducerFenced):
            desk.end(first, is_commit=is_commit, is_v2=True)
    with pytest.raises(ProducerFenced):
        desk.missing(first, A)
    assert desk.is_in(State.ONGOING)


def test_an_id_whose_epochs_are_used_up_is_replaced_when_a_producer_comes() -> None:
    desk, old = exhausted()
    new = desk.init()
    assert new.producer_id != old.producer_id
    assert new.epoch == 0


def test_with_v2_an_id_is_replaced_at_the_end_of_its_last_transaction() -> None:
    desk, old = exhausted()
    desk.add(old)
    following = desk.end(old, is_v2=True)
    assert following.producer_id != old.producer_id
    assert following.epoch == 0
    with pytest.raises(ConcurrentTransactions):
        desk.add(following)
    assert desk.end(old, is_v2=True) == following
    desk.complete()
    assert desk.markers == [(Producer(old.producer_id, EPOCH_LAST + 1), True)]
    assert desk.end(old, is_v2=True) == following
    desk.add(following)
    with pytest.raises(InvalidProducerMapping):
        desk.add(old)


def test_a_prepared_transaction_accepts_no_more_and_can_be_ended_by_another_process() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer, A)
    desk.prepare(producer)
    desk.prepare(producer)
    assert desk.is_in(State.PREPARED)
    assert desk.known.owner == "spark"
    assert desk.missing(producer, A) == {A}
    with pytest.raises(InvalidTransactionState):
        desk.add(producer, B)
    desk.pass_ms(100 * TIMEOUT_MS)
    assert desk.is_in(State.PREPARED), "it does not time out with its producer"
    desk.end(producer)
    desk.complete()
    assert desk.is_in(State.COMPLETE_COMMIT)


def test_a_transaction_has_a_limited_number_of_partitions() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer, *((b"x" * 16, index) for index in range(PLACES_MAX)))
    with pytest.raises(TooManyTransactions):
        desk.add(producer, A)


@pytest.mark.parametrize("is_prepared", [False, True])
def test_a_returning_producer_may_keep_its_prepared_transaction(is_prepared: bool) -> None:
    desk = Desk()
    writer = desk.init()
    desk.add(writer, A)
    if is_prepared:
        desk.prepare(writer)
    came = desk.keep()
    again = desk.keep()
    assert came.producer == Producer(writer.producer_id, writer.epoch + 1)
    assert came.kept == again.kept == writer, "it finds what it noted when it prepared"
    with pytest.raises(ProducerFenced):
        desk.end(writer)
    with pytest.raises(InvalidTransactionState):
        desk.add(again.producer, B)
    desk.end(again.producer, is_v2=True)
    desk.complete()
    assert desk.is_in(State.COMPLETE_COMMIT)
    assert desk.keep().kept is None


def test_returning_repeatedly_does_not_prolong_a_prepared_transaction() -> None:
    desk = Desk(TransactionConfig(prepared_ms_max=10_000))
    producer = desk.init()
    desk.add(producer, A)
    desk.prepare(producer)
    for _ in range(10):
        desk.pass_ms(999)
        desk.keep()
    assert desk.is_in(State.PREPARED)
    desk.pass_ms(10)
    assert desk.is_in(State.PREPARE_ABORT)


def test_a_two_phase_producer_has_days_for_its_transaction() -> None:
    desk = Desk(TransactionConfig(prepared_ms_max=10_000))
    producer = desk.keep().producer
    desk.add(producer, A)
    desk.pass_ms(0)
    desk.pass_ms(9_999)
    assert desk.is_in(State.ONGOING)
    desk.pass_ms(1)
    assert desk.is_in(State.PREPARE_ABORT)


def test_only_the_beginning_of_a_long_owner_is_kept() -> None:
    desk = Desk()
    producer = desk.init()
    desk.add(producer, A)
    command = Prepare(transactional_id=NAME, producer=producer, owner="x" * 100_000)
    desk.asked(lambda to: desk.machine.prepare(command, to, desk.now))
    assert desk.known.owner == "x" * OWNER_CHARS_MAX
