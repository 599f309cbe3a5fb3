"""Operations run in order, one at a time, and each waits only for what it asked for."""

from collections.abc import Callable

from kafkaesque.errors import DiskFull, LogError
from kafkaesque.log.operations import Operation, Operations, Wait


class Steps:
    """Operations whose needs the test meets by hand."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.rounds = 0
        self.rooms: list[Callable[[], None]] = []
        self.failures: list[LogError] = []
        self.operations = Operations(
            needs_round=self._count, needs_room=self.rooms.append, failed=self.failures.append
        )

    def _count(self) -> None:
        self.rounds += 1

    def begin(self, name: str, *waits: Wait) -> None:
        self.operations.begin(self._operation(name, waits))

    def round(self) -> None:
        self.operations.round_begins()
        self.operations.round_done()

    def _operation(self, name: str, waits: tuple[Wait, ...]) -> Operation:
        yield from waits
        self.done.append(name)


def test_an_operation_that_waits_for_nothing_is_done_at_once() -> None:
    steps = Steps()
    steps.begin("a")
    assert steps.done == ["a"]
    assert not steps.operations


def test_operations_behind_a_waiting_one_are_done_after_it() -> None:
    steps = Steps()
    steps.begin("a", Wait.ROUND, Wait.ROUND)
    steps.begin("b")
    steps.round()
    assert (steps.done, bool(steps.operations)) == ([], True)
    steps.round()
    assert (steps.done, steps.rounds) == (["a", "b"], 2)


def test_a_round_that_began_before_does_not_count() -> None:
    steps = Steps()
    steps.operations.round_begins()
    steps.begin("a", Wait.ROUND)
    steps.operations.round_done()
    assert steps.done == []
    steps.round()
    assert steps.done == ["a"]


def test_an_operation_that_waits_for_room_does_not_continue_with_a_round() -> None:
    steps = Steps()
    steps.begin("a", Wait.ROOM)
    steps.round()
    assert steps.done == []
    steps.rooms.pop()()
    assert (steps.done, steps.rounds) == (["a"], 0)


def test_a_late_notice_of_room_wakes_no_other_operation() -> None:
    steps = Steps()
    steps.begin("a", Wait.ROOM)
    room = steps.rooms.pop()
    room()
    steps.begin("b", Wait.ROUND)
    room()
    assert steps.done == ["a"]


def test_an_error_is_reported() -> None:
    steps = Steps()

    def fails() -> Operation:
        yield Wait.ROUND
        raise DiskFull("no room for the new start")

    steps.operations.begin(fails())
    steps.round()
    assert [str(failure) for failure in steps.failures] == ["no room for the new start"]
