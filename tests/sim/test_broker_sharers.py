"""Members of share groups on simulated clusters: their checks notice, and everything is done."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from kafkaesque.broker.queues.partition_shares import Done, Taken
from kafkaesque.entry import Entry
from kafkaesque.errors import KafkaesqueError, NotLeader
from kafkaesque.machines.machine import MachineRecord
from kafkaesque.machines.queues.queue_errors import InvalidRecordState
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.machines.queues.share_records import (
    AdoptedKey,
    AdoptedSaved,
    StartKey,
    StartSaved,
    to_record,
)
from kafkaesque.machines.queues.share_values import Ack, AckBatch, Acquired, ShareLimits
from kafkaesque.record.build import build_batch
from kafkaesque.record.record import Record
from kafkaesque.sim.broker_run import run_brokers
from kafkaesque.sim.broker_settings import BrokerSettings
from kafkaesque.sim.broker_sharer import batches
from kafkaesque.sim.checks import GroupChecks, Violation
from kafkaesque.sim.settings import NetworkFaults
from kafkaesque.sim.share_checks import ShareOracle, check_starts
from tests.machines.share_desk import GROUP, PLACE, accept, ack
from tests.mutants.planted_shares_broker import SHARE_BROKER_MUTANTS

STEPS = 6_000
SEEDS = (7, 19)
EXPECTED = (
    "shared records",
    "shared records redelivered",
    "shared records lost on the way",
    "share locks expired",
    "shares settled",
    "shares of unknown outcome",
    "share states adopted by another broker",
    "share writes of unknown outcome",
    "sharers died",
    "sharers left",
    "sharers refused: InvalidRecordState",
    "sharers refused: NotLeader",
)
SETTINGS = BrokerSettings(
    sharers=4,
    faults=("kills", "cuts", "pauses", "power_losses"),
    pause_mean=250,
    work_pause_max=100,
    network=NetworkFaults(delay_max=5, late_rate=0.01),
)
LIMITS = ShareLimits(lock_ms=100, delivery_max=3)


class Leader:
    """Gives and settles what the test says, right or wrong."""

    place = PLACE

    def __init__(self) -> None:
        self.term = 1
        self.start = 0
        self.refuses = False
        self.answers: list[Done] = []
        self.holders: Mapping[str, int] = {}

    def groups(self) -> list[SharePartition]:
        share = SharePartition(PLACE, GROUP, self.start, LIMITS, 0)
        share.holders = lambda: dict(self.holders)  # type: ignore[method-assign]
        return [share]

    def settle(self, group: str, member: str, acks: object, done: Done) -> None:
        if self.refuses:
            raise InvalidRecordState("")
        self.answers.append(done)


class Case:
    """An oracle, and a leader that it watches."""

    def __init__(self) -> None:
        self.counts: list[str] = []
        self.leader: Any = Leader()
        self.oracle = ShareOracle(self.counts.append, LIMITS)

    def gives(self, member: str, offset: int = 0, count: int = 1, now_ms: int = 0) -> None:
        value = b"%d" % offset
        batch = build_batch([Record(offset=offset, timestamp_ms=0, key=None, value=value)])
        taken = Taken(memoryview(batch), [Acquired(offset, offset, count)])
        self.oracle.took(self.leader, GROUP, member, taken, now_ms)

    def settles(self, member: str, kind: Ack, offset: int = 0) -> Callable[[object], None]:
        acks = [AckBatch(offset, offset, (kind,))]
        self.oracle.settle(self.leader, GROUP, member, acks, 0)
        return self.leader.answers.pop()  # type: ignore[no-any-return]

    def ends(self, offset: int = 0) -> None:
        self.oracle.accounted_for(GROUP, PLACE[1], {offset: b"%d" % offset})


@pytest.mark.parametrize("kind", [Ack.ACCEPT, Ack.REJECT])
def test_a_delivery_after_a_confirmed_acknowledgement_is_noticed(kind: Ack) -> None:
    case = Case()
    case.gives("a")
    case.settles("a", kind)(None)
    case.leader.term = 2
    with pytest.raises(Violation, match=f"delivered after {kind.name} was confirmed"):
        case.gives("b")


def test_an_acknowledgement_without_an_answer_may_hold_or_not() -> None:
    case = Case()
    case.gives("a")
    case.settles("a", Ack.ACCEPT)(NotLeader(None))
    case.ends()
    case.leader.term = 2
    case.gives("b")
    with pytest.raises(Violation, match="nobody settled"):
        case.ends()


def test_an_acknowledgement_that_is_confirmed_after_the_next_delivery_is_noticed() -> None:
    case = Case()
    case.gives("a")
    confirm = case.settles("a", Ack.ACCEPT)
    case.leader.term = 2
    case.gives("b")
    with pytest.raises(Violation, match="delivered before that held"):
        confirm(None)


def test_two_members_that_hold_one_record_are_noticed() -> None:
    case = Case()
    case.gives("a")
    with pytest.raises(Violation, match="a holds it"):
        case.gives("b", count=2, now_ms=LIMITS.lock_ms - 1)
    case.gives("b", count=2, now_ms=LIMITS.lock_ms)
    assert "share locks expired" in case.counts


def test_what_is_renewed_is_held_for_longer() -> None:
    case = Case()
    case.gives("a", now_ms=-50)
    case.settles("a", Ack.RENEW)
    with pytest.raises(Violation, match="a holds it"):
        case.gives("b", count=2, now_ms=LIMITS.lock_ms - 1)


def test_a_count_that_does_not_go_up_is_noticed() -> None:
    case = Case()
    case.gives("a")
    case.settles("a", Ack.RELEASE)
    with pytest.raises(Violation, match="delivery 1 is followed by 1"):
        case.gives("b")


def test_a_count_beyond_all_deliveries_is_noticed() -> None:
    case = Case()
    with pytest.raises(Violation, match="cannot be delivery 2"):
        case.gives("a", count=2)


def test_a_member_that_settles_what_it_does_not_hold_is_noticed() -> None:
    case = Case()
    case.gives("a")
    with pytest.raises(Violation, match="which it does not hold"):
        case.settles("b", Ack.RELEASE)


def test_a_start_beyond_what_nobody_settled_is_noticed() -> None:
    case = Case()
    case.gives("a")
    case.leader.start = 1
    with pytest.raises(Violation, match="is beyond 0"):
        case.settles("a", Ack.ACCEPT)


def test_a_refused_acknowledgement_settles_nothing() -> None:
    case = Case()
    case.gives("a")
    case.leader.refuses = True
    with pytest.raises(KafkaesqueError):
        case.settles("a", Ack.ACCEPT)
    with pytest.raises(Violation, match="nobody settled"):
        case.ends()


def test_a_record_that_was_given_up_is_accounted_for() -> None:
    case = Case()
    for count in range(1, LIMITS.delivery_max + 1):
        with pytest.raises(Violation, match="nobody settled" if count > 1 else "never got"):
            case.ends()
        case.gives("a", count=count, now_ms=count * LIMITS.lock_ms)
    case.ends()


def test_another_record_at_an_offset_is_another_one() -> None:
    case = Case()
    case.gives("a")
    case.settles("a", Ack.ACCEPT)(None)
    with pytest.raises(Violation, match="never got"):
        case.oracle.accounted_for(GROUP, PLACE[1], {0: b"another"})


def test_a_member_that_has_left_and_still_holds_something_is_noticed() -> None:
    case = Case()
    case.gives("a")
    case.oracle.released(case.leader, GROUP, "a")
    case.gives("b", count=2)
    case.leader.holders = {"b": 1}
    with pytest.raises(Violation, match="still holds"):
        case.oracle.released(case.leader, GROUP, "b")


# ── the log of the state ─────────────────────────────────────────────────────────────────────


def written(*batches_: list[MachineRecord]) -> GroupChecks:
    checks = GroupChecks("state", set())
    for at, batch in enumerate(batches_):
        records = [
            Record(offset=place, timestamp_ms=0, key=one.key, value=one.value)
            for place, one in enumerate(batch)
        ]
        checks.committed[at] = Entry(at, at + 1, 1, bytes(build_batch(records)))
    return checks


def start(offset: int, generation: int = 0) -> MachineRecord:
    return to_record(StartKey(*PLACE, GROUP), StartSaved(generation, offset, 0))


def adopted(first: int) -> MachineRecord:
    return to_record(AdoptedKey(*PLACE), AdoptedSaved(2, first))


def test_a_start_that_goes_back_is_noticed_unless_the_log_lost_its_end_or_it_was_set() -> None:
    check_starts(written([start(5)], [start(7)], [adopted(6), start(6)], [start(3, 1)]))
    with pytest.raises(Violation, match="went back from 7 to 6"):
        check_starts(written([start(5)], [start(7)], [start(6)]))
    with pytest.raises(Violation, match="went back from 7 to 5"):
        check_starts(written([start(7)], [adopted(6), start(5)]))


# ── whole clusters ───────────────────────────────────────────────────────────────────────────


def test_ranges_have_no_holes() -> None:
    assert batches([3, 4, 7], (Ack.ACCEPT,)) == [ack(3, 4, Ack.ACCEPT), accept(7)]
    kinds = (Ack.ACCEPT, Ack.RELEASE, Ack.REJECT)
    assert batches([3, 4, 7], kinds) == [ack(3, 4, *kinds[:2]), ack(7, 7, Ack.REJECT)]


@pytest.mark.simulation
def test_everything_happens_to_members_of_share_groups() -> None:
    """And every promise is kept meanwhile."""
    reports = [run_brokers(seed, STEPS, SETTINGS) for seed in SEEDS]
    counts = {name: sum(one.counts.get(name, 0) for one in reports) for name in EXPECTED}
    assert min(counts.values()) > 0, counts


FORGETFUL = BrokerSettings(
    brokers=1,
    voters=1,
    sharers=3,
    forgets=True,
    faults=("power_losses", "kills"),
    pause_mean=150,
    work_pause_max=100,
)


@pytest.mark.simulation
def test_what_takes_the_place_of_lost_records_is_delivered() -> None:
    reports = [run_brokers(seed, 800, FORGETFUL) for seed in range(2)]
    for name in ("ends of logs forgotten", "shares settled", "shared records redelivered"):
        assert sum(one.counts.get(name, 0) for one in reports) > 0, name


@pytest.mark.long
def test_seeds_notice_that_records_inherit_what_was_settled() -> None:
    name = "the state of a shared partition is kept for offsets that are used again"
    (mutant,) = [one for one in SHARE_BROKER_MUTANTS if one.name == name]
    with mutant.planted(), pytest.raises(Violation):
        for seed in range(20):
            run_brokers(seed, 1_500, FORGETFUL)
