"""A query's batches: one decision for all transactions of a batch, and one driver at a time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaesque.coordinator_config import TransactionConfig
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.transactions.transaction_commands import (
    BatchDecided,
    Producer,
    RegisterDriver,
)
from kafkaesque.machines.transactions.transaction_errors import (
    ConcurrentTransactions,
    FencedDriver,
    InvalidProducerMapping,
    InvalidTransactionalId,
    InvalidTransactionState,
    OutdatedBatch,
    ProducerFenced,
    TooManyTransactions,
    TransactionError,
)
from kafkaesque.machines.transactions.transaction_records import (
    Sink,
    SinkKey,
    State,
    from_record,
    sink_to_record,
)
from tests.machines.batch_desk import QUERY, SINK, BatchDesk, named

DAY_MS = 24 * 3600 * 1000


def test_the_named_transactions_are_committed_and_the_batchs_others_aborted() -> None:
    desk = BatchDesk()
    driver = desk.register()
    chosen = {**desk.ready(7, driver, 0), **desk.ready(7, driver, 1)}
    spare = desk.ready(7, driver, 1, attempt=1)
    slow = desk.begin(7, driver, 0, attempt=1)
    decided = desk.commit(7, driver, chosen)
    assert decided == BatchDecided(transactional_ids=tuple(chosen), was_decided_before=False)
    commits = {producer.producer_id for producer in chosen.values()}
    aborts = {producer.producer_id for producer in spare.values()} | {slow.producer_id}
    assert desk.ends == dict.fromkeys(commits, True) | dict.fromkeys(aborts, False)


def test_the_decision_is_one_batch_of_records() -> None:
    desk = BatchDesk()
    driver = desk.register()
    chosen = desk.ready(0, driver, 0)
    desk.ready(0, driver, 1)
    before = len(desk.log)
    desk.decide(0, driver, chosen)
    keys = [from_record(record)[0] for record in desk.log[before:]]
    assert keys == [SinkKey(QUERY, SINK), named(0, driver, 0), named(0, driver, 1)]


def test_the_answer_waits_for_the_markers_of_all_partitions() -> None:
    desk = BatchDesk()
    driver = desk.register()
    chosen = desk.ready(0, driver)
    assert desk.decide(0, driver, chosen) is None
    with pytest.raises(ConcurrentTransactions):
        desk.decide(0, driver, chosen)
    desk.complete()
    assert desk.decide(0, driver, chosen) is not None


def test_the_first_decision_wins_and_a_later_one_learns_it() -> None:
    desk = BatchDesk()
    driver = desk.register()
    first = desk.ready(0, driver, 0)
    second = desk.ready(0, driver, 0, attempt=1)
    desk.commit(0, driver, first)
    answer = desk.decide(0, driver, second)
    assert answer == BatchDecided(transactional_ids=tuple(first), was_decided_before=True)
    assert desk.decision(0) == tuple(first)


def test_a_repeated_decision_counts_as_the_drivers_own() -> None:
    desk = BatchDesk()
    driver = desk.register()
    chosen = desk.ready(0, driver)
    desk.commit(0, driver, chosen)
    answer = desk.decide(0, driver, chosen)
    assert answer == BatchDecided(transactional_ids=tuple(chosen), was_decided_before=False)


def test_a_driver_that_comes_after_a_decision_finds_it_and_it_is_rolled_forward() -> None:
    desk = BatchDesk()
    driver = desk.register()
    chosen = desk.ready(3, driver)
    desk.decide(3, driver, chosen)
    desk.restart()  # before any marker was written
    driver = desk.register()
    assert desk.decision(3) == tuple(chosen)
    desk.complete()
    answer = desk.commit(3, driver, {})
    assert answer == BatchDecided(transactional_ids=tuple(chosen), was_decided_before=True)
    assert list(desk.ends.values()) == [True]


def test_a_new_driver_fences_the_previous_one_and_aborts_its_leftovers() -> None:
    desk = BatchDesk()
    old = desk.register()
    prepared = desk.ready(0, old, 0)
    open_ = desk.begin(0, old, 1)
    new = desk.register()
    assert new == old + 1
    with pytest.raises(FencedDriver):
        desk.decide(0, old, prepared)
    with pytest.raises(ProducerFenced):
        desk.add(open_, name=named(0, old, 1))
    with pytest.raises(ProducerFenced):
        desk.init(name=named(0, old, 2))
    desk.complete()
    assert set(desk.ends.values()) == {False}


def test_an_unregistered_driver_can_neither_decide_nor_begin() -> None:
    desk = BatchDesk()
    with pytest.raises(InvalidTransactionState):
        desk.decide(0, 1, {})
    driver = desk.register()
    with pytest.raises(InvalidTransactionState):
        desk.decide(0, driver + 1, {})
    with pytest.raises(InvalidTransactionState):
        desk.init(name=named(0, driver + 1))


def test_an_older_checkpoint_is_noticed() -> None:
    desk = BatchDesk()
    driver = desk.register()
    desk.commit(4, driver, {})
    desk.commit(5, driver, {})
    with pytest.raises(OutdatedBatch, match="an older checkpoint"):
        desk.decide(4, driver, {})
    with pytest.raises(OutdatedBatch):
        desk.decision(4)
    assert desk.decision(6) is None


def test_a_task_that_comes_after_the_decision_writes_nothing() -> None:
    desk = BatchDesk()
    driver = desk.register()
    came = desk.init(name=named(0, driver, 9))
    desk.commit(0, driver, desk.ready(0, driver))
    with pytest.raises(InvalidProducerMapping):
        desk.add(came, name=named(0, driver, 9))
    with pytest.raises(InvalidTransactionState):
        desk.init(name=named(0, driver, 9))


def test_a_decision_is_atomic() -> None:
    desk = BatchDesk()
    driver = desk.register()
    ready = desk.ready(0, driver, 0)
    open_ = {named(0, driver, 1): desk.begin(0, driver, 1)}
    foreign = desk.ready(1, driver, 0)
    gone = {named(0, driver, 5): Producer(1, 0)}
    other = {name: Producer(who.producer_id, who.epoch + 1) for name, who in ready.items()}
    before = len(desk.log)
    for wrong in (open_, foreign, gone, other):
        with pytest.raises(TransactionError):
            desk.decide(0, driver, {**ready, **wrong})
    assert len(desk.log) == before


def test_a_transaction_of_a_batch_is_not_committed_alone_but_can_be_aborted() -> None:
    desk = BatchDesk()
    driver = desk.register()
    name = named(0, driver)
    [producer] = desk.ready(0, driver).values()
    with pytest.raises(InvalidTransactionState, match="part of a batch"):
        desk.end(producer, is_v2=True, name=name)
    desk.end(producer, is_commit=False, is_v2=True, name=name)
    desk.complete()
    assert desk.machine.get(name) is None


def test_later_batches_leave_nothing_behind() -> None:
    desk = BatchDesk()
    driver = desk.register()
    sizes = set()
    for batch in range(50):
        chosen = {**desk.ready(batch, driver, 0), **desk.ready(batch, driver, 1)}
        desk.begin(batch, driver, 1, attempt=1)
        desk.pass_ms(1)
        desk.commit(batch, driver, chosen)
        sizes.add((len(desk.machine), desk.machine.open_count, len(list(desk.machine.records()))))
    assert sizes == {(0, 0, 1)}
    assert len(desk.machine._deadlines) <= 100  # memory only: nothing else shows it


def test_an_undecided_batch_is_aborted_after_days() -> None:
    desk = BatchDesk()
    driver = desk.register()
    desk.ready(0, driver)
    desk.pass_ms(0)
    desk.pass_ms(7 * DAY_MS - 1)
    assert desk.machine.open_count == 1
    desk.pass_ms(1)
    desk.complete()
    assert list(desk.ends.values()) == [False]
    assert desk.machine.open_count == 0


def test_a_deadline_of_an_attempt_does_not_hit_the_next_of_the_same_name() -> None:
    desk = BatchDesk()
    driver = desk.register()
    name = named(0, driver)
    [producer] = desk.ready(0, driver).values()
    desk.pass_ms(0)
    desk.pass_ms(6 * DAY_MS)
    desk.end(producer, is_commit=False, is_v2=True, name=name)
    desk.complete()
    desk.ready(0, driver)
    desk.pass_ms(0)
    desk.pass_ms(2 * DAY_MS)
    known = desk.machine.get(name)
    assert known is not None
    assert known.state is State.PREPARED


def test_a_sink_without_batches_for_long_is_forgotten() -> None:
    desk = BatchDesk()
    desk.commit(0, desk.register(), {})
    desk.pass_ms(90 * DAY_MS - 1)
    desk.carry_out(desk.machine.expire(desk.now))
    assert desk.decision(0) == ()
    desk.pass_ms(1)
    desk.carry_out(desk.machine.expire(desk.now))
    assert desk.decision(0) is None
    assert list(desk.machine.records()) == []


def test_names_and_numbers_of_sinks_are_limited() -> None:
    desk = BatchDesk(TransactionConfig(sinks_max=0))
    with pytest.raises(TooManyTransactions):
        desk.register()
    with pytest.raises(InvalidTransactionalId):
        desk.machine.register(RegisterDriver(query="a/b", sink="s"), lambda _: None, desk.now)


def test_the_record_of_a_sink_has_the_documented_format() -> None:
    value = Sink(driver_epoch=3, changed_ms=2, batch=7, decided_by=2, attempts=((0, 0), (1, 4)))
    record = sink_to_record(SinkKey("q", "s"), value)
    assert record.key.hex(" ") == "93 02 a1 71 a1 73"
    assert record.value is not None
    assert record.value.hex(" ") == "96 02 03 02 07 02 92 92 00 00 92 01 04"
    assert from_record(record) == (SinkKey("q", "s"), value)
    assert from_record(MachineRecord(record.key, None)) == (SinkKey("q", "s"), None)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["register", "begin", "ready", "decide", "complete", "restart", "restore"]),
        st.integers(0, 2),
        st.integers(0, 1),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(STEPS)
def test_a_batch_is_always_committed_as_first_decided_or_not_at_all(
    steps: list[tuple[str, int, int]],
) -> None:
    desk = BatchDesk()
    drivers = [desk.register()]
    prepared: dict[tuple[int, int], dict[str, Producer]] = {}
    decided: dict[int, set[int]] = {}
    attempt = 0
    for kind, batch, back in steps:
        attempt += 1
        driver = drivers[max(len(drivers) - 1 - back, 0)]
        mine = prepared.setdefault((batch, driver), {})
        try:
            match kind:
                case "register":
                    drivers.append(desk.register())
                case "begin":
                    desk.begin(batch, driver, 0, attempt)
                case "ready":
                    mine |= desk.ready(batch, driver, 0, attempt)
                case "decide":
                    before = desk.machine.open_count, len(desk.log)
                    answer = desk.decide(batch, driver, mine)
                    if len(desk.log) > before[1]:
                        assert batch not in decided, "the first decision stands"
                        decided[batch] = {who.producer_id for who in mine.values()}
                    if answer is not None:
                        assert answer.transactional_ids == desk.decision(batch)
                case "complete":
                    desk.complete()
                case "restart":
                    desk.restart()
                case _:
                    desk.restore()
        except TransactionError:
            continue
    desk.register()  # no driver will decide any more
    desk.complete()
    assert desk.machine.open_count == 0
    committed = {producer_id for producer_id, is_commit in desk.ends.items() if is_commit}
    assert committed == set().union(*decided.values())


def test_the_remembered_batches_of_all_sinks_are_limited_together() -> None:
    desk = BatchDesk(TransactionConfig(sink_attempts_max=2))
    driver = desk.register()
    desk.commit(0, driver, {**desk.ready(0, driver, 0), **desk.ready(0, driver, 1)})
    three = [desk.ready(1, driver, task) for task in range(3)]
    with pytest.raises(TooManyTransactions):
        desk.commit(1, driver, {**three[0], **three[1], **three[2]})
    desk.commit(1, driver, {**three[0], **three[1]})
