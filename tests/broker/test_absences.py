"""How long other brokers have been unreachable from this leader."""

from kafkaesque.broker.cluster.absences import Absences
from tests.log.logs import HandClock


def test_an_absence_lasts_from_the_first_missed_look_until_the_broker_is_seen() -> None:
    clock = HandClock()
    absences = Absences(1, clock)
    absences.look([1, 2, 3], [2])
    assert absences.is_live(1), "this broker is always live"
    assert absences.is_live(2)
    assert not absences.is_live(3)
    clock.ms += 500
    absences.look([1, 2, 3], [])
    clock.ms += 500
    assert (absences.absent_ms(2), absences.absent_ms(3)) == (500, 1000)
    absences.look([1, 2, 3], [3])
    assert (absences.absent_ms(2), absences.absent_ms(3)) == (500, 0)


def test_an_interrupted_absence_starts_over() -> None:
    clock = HandClock()
    absences = Absences(1, clock)
    for reachable in ([], [2], []):
        absences.look([1, 2], reachable)
        clock.ms += 1000
    assert absences.absent_ms(2) == 1000


def test_a_former_leader_forgets_all_absences() -> None:
    clock = HandClock()
    absences = Absences(1, clock)
    absences.look([1, 2], [])
    clock.ms += 1000
    absences.forget()
    assert absences.absent_ms(2) == 0


def test_a_removed_broker_is_not_absent() -> None:
    absences = Absences(1, HandClock())
    absences.look([1, 2], [])
    absences.look([1], [])
    assert absences.is_live(2)
