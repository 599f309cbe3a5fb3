"""Random transactions of several producers, with crashes, checked against the answers they got."""

import random
from collections.abc import Sequence
from enum import Enum, auto

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkaesque.errors import KafkaesqueError
from kafkaesque.machines.transactions.transaction_commands import Ended, Producer
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.transactional import TIMEOUT_MS, House, Writer, transactional
from tests.mutants.mutation import Mutant
from tests.mutants.planted_transactions import TRANSACTION_MUTANTS

WRITERS = 3
STORIES_MAX = 25


class Step(Enum):
    """The next step of a producer, or the next fault of the broker."""

    WRITE_0 = auto()
    WRITE_1 = auto()
    COMMIT = auto()
    ABORT = auto()
    COME_ANEW = auto()
    ZOMBIE = auto()
    """The producer that was replaced last is still alive and goes on."""
    TIME_OUT = auto()
    CRASH = auto()
    CRASH_AFTER_ASKING = auto()
    TICK = auto()


class Truth(Enum):
    """What a producer knows about how its transaction ended."""

    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    UNKNOWN = auto()


class Tale:
    """One producer's transactions: what it wrote in each, and how each ended."""

    def __init__(self, house: House, name: str, *, is_v2: bool) -> None:
        self.house = house
        self.writer = Writer(house, name, is_v2=is_v2)
        self.zombie: Producer | None = None
        self.values: list[list[bytes]] = [[]]
        self.truths: list[Truth] = [Truth.OPEN]

    def write(self, index: int) -> None:
        if not self.writer.is_v2 and isinstance(self.writer.add(index), KafkaesqueError):
            self.close(Truth.ABORTED)
            return
        value = f"{self.writer.name} {len(self.values)} {len(self.values[-1])}".encode()
        result = self.writer.write(index, value)
        if isinstance(result, KafkaesqueError):
            self.close(Truth.ABORTED)  # it is fenced: only a timeout does that here
        else:
            self.values[-1].append(value)

    def end(self, *, is_commit: bool) -> None:
        if not self.values[-1]:
            return
        answer = self.writer.end(is_commit=is_commit)
        wanted = Truth.COMMITTED if is_commit else Truth.ABORTED
        if isinstance(answer, Ended):
            self.close(wanted, comes_anew=False)
        else:
            self.close(Truth.UNKNOWN if answer is None else Truth.ABORTED)

    def rise(self) -> None:
        """Write and commit as the replaced producer; neither may take effect."""
        if self.zombie is None:
            return
        end = self.house.partition().high_watermark
        for sequence in (0, self.writer.sequences[0]):
            # An apparent duplicate may be answered as one: it is not written either.
            self.writer.send(0, transactional(sequence, b"of a zombie", producer=self.zombie))
        assert self.house.partition().high_watermark == end
        assert isinstance(self.writer.try_to_end(self.zombie), KafkaesqueError)

    def close(self, truth: Truth, *, comes_anew: bool = True) -> None:
        self.truths[-1] = truth
        self.values.append([])
        self.truths.append(Truth.OPEN)
        if comes_anew:
            self.house.tick(2)  # a new coordinator finds out what it has to complete
            self.zombie = self.writer.producer
            self.writer.init()


def play(tales: list[Tale], house: House, step: Step, who: int) -> None:
    tale = tales[who]
    match step:
        case Step.WRITE_0 | Step.WRITE_1:
            tale.write(0 if step is Step.WRITE_0 else 1)
        case Step.COMMIT | Step.ABORT:
            tale.end(is_commit=step is Step.COMMIT)
        case Step.COME_ANEW:
            tale.close(Truth.ABORTED)
        case Step.ZOMBIE:
            tale.rise()
        case Step.TIME_OUT:
            house.clock.ms += TIMEOUT_MS
            house.tick(2)
        case Step.CRASH:
            house.crash(CrashPolicy.TORN)
        case Step.CRASH_AFTER_ASKING:
            if tale.values[-1]:
                house.holds_syncs = True
                tale.writer.try_to_end(tale.writer.producer)
                house.holds_syncs = False
                house.crash(CrashPolicy.TORN)
                tale.close(Truth.UNKNOWN)
        case Step.TICK:
            house.tick()


def check(tales: list[Tale], seen: list[bytes | None]) -> None:
    assert len(set(seen)) == len(seen), "no record is read twice"
    assert b"of a zombie" not in seen
    for tale in tales:
        for values, truth in zip(tale.values, tale.truths, strict=True):
            found = [value in seen for value in values]
            assert all(found) or not any(found), "a transaction is visible completely or not at all"
            if values and truth is Truth.COMMITTED:
                assert all(found), "a committed transaction is visible"
            if truth is Truth.ABORTED:
                assert not any(found), "an aborted transaction is not visible"


def tell(steps: Sequence[tuple[Step, int]]) -> None:
    """Play a story to its end, and check what readers see."""
    house = House()
    tales = [Tale(house, f"t{who}", is_v2=who > 0) for who in range(WRITERS)]
    for step, who in steps:
        play(tales, house, step, who)
        for index in (0, 1):
            partition = house.partition(index)
            assert partition.stable_offset <= partition.high_watermark
        seen = set(house.reading(0) + house.reading(1))
        assert not any(seen.intersection(tale.values[-1]) for tale in tales), (
            "the transaction is open"
        )
    house.tick()
    house.clock.ms += TIMEOUT_MS
    house.tick(3)
    for index in (0, 1):
        partition = house.partition(index)
        assert partition.stable_offset == partition.high_watermark, "no transaction stays undecided"
    for tale in tales:
        tale.truths[-1] = Truth.ABORTED if tale.truths[-1] is Truth.OPEN else tale.truths[-1]
    check(tales, house.reading(0) + house.reading(1))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(Step), st.integers(0, WRITERS - 1)), max_size=40))
def test_every_transaction_is_visible_completely_or_not_at_all(
    steps: list[tuple[Step, int]],
) -> None:
    tell(steps)


@pytest.mark.parametrize("mutant", TRANSACTION_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_is_noticed(mutant: Mutant) -> None:
    with mutant.planted():
        for seed in range(STORIES_MAX):
            chance = random.Random(seed)
            steps = [(chance.choice(list(Step)), chance.randrange(WRITERS)) for _ in range(60)]
            try:
                tell(steps)
            except (AssertionError, IndexError, KeyError):
                return
    pytest.fail(f"not noticed in {STORIES_MAX} stories: {mutant.name}")
