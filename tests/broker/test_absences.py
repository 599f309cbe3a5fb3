"""How long brokers have been away, as far as this leader can tell."""

from kafkaesque.broker.cluster.absences import Absences
from tests.log.logs import HandClock


def test_an_absence_lasts_from_the_first_look_without_to_the_first_look_with_a_broker() -> None:
    clock = HandClock()
    absences = Absences(1, clock)
    absences.look([1, 2, 3], [2])
    assert absences.is_live(1), "we are always there"
    assert absences.is_live(2)
    assert not absences.is_live(3)
    clock.ms += 500
    absences.look([1, 2, 3], [])
    clock.ms += 500
    assert (absences.absent_ms(2), absences.absent_ms(3)) == (500, 1000)
    absences.look([1, 2, 3], [3])
    assert (absences.absent_ms(2), absences.absent_ms(3)) == (500, 0)


def test_an_absence_that_was_interrupted_begins_anew() -> None:
    clock = HandClock()
    absences = Absences(1, clock)
    for reachable in ([], [2], []):
        absences.look([1, 2], reachable)
        clock.ms += 1000
    assert absences.absent_ms(2) == 1000


def test_who_does_not_lead_any_more_knows_of_no_absence() -> None:
    clock = HandClock()
    absences = Absences(1, clock)
    absences.look([1, 2], [])
    clock.ms += 1000
    absences.forget()
    assert absences.absent_ms(2) == 0


def test_who_is_no_broker_any_more_is_not_away() -> None:
    absences = Absences(1, HandClock())
    absences.look([1, 2], [])
    absences.look([1], [])
    assert absences.is_live(2)
