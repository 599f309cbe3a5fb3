"""The bytes in flight: who waits, who goes on, and that somebody always does."""

from kafkaesque.server.edge.budget import FREE_BYTES, RESUMED_BYTES, Budget


class AReader:
    """A reader that notes when it is let on."""

    def __init__(self, *, within: bool = False, held: int = FREE_BYTES + 1) -> None:
        self.is_within_frame = within
        self.held_bytes = held
        self.resumed = 0

    def resume(self) -> None:
        self.resumed += 1


def test_below_the_limit_everyone_goes_on() -> None:
    budget = Budget(100)
    budget.take(100)
    assert budget.admits(AReader())
    assert budget.waiting == 0


def test_over_the_limit_readers_wait_and_go_on_in_order() -> None:
    budget = Budget(RESUMED_BYTES)
    budget.take(RESUMED_BYTES + 10)
    first, second, third = readers = [AReader(), AReader(), AReader()]
    assert [budget.admits(one) for one in readers] == [False] * 3
    budget.give(10)
    assert [one.resumed for one in readers] == [1, 0, 0]
    budget.give(RESUMED_BYTES)
    assert [first.resumed, second.resumed, third.resumed] == [1, 1, 1]


def test_who_holds_little_is_never_kept_waiting() -> None:
    budget = Budget(100)
    budget.take(200)
    assert budget.admits(AReader(held=FREE_BYTES))
    assert budget.waiting == 0


def test_who_has_been_answered_waits_no_longer() -> None:
    budget = Budget(100)
    budget.take(200)
    reader = AReader()
    assert not budget.admits(reader)
    reader.held_bytes = 0
    assert budget.admits(reader)
    assert budget.waiting == 0


def test_one_request_at_a_time_is_received_to_its_end_over_the_limit() -> None:
    budget = Budget(100)
    budget.take(200)
    first, second = AReader(within=True), AReader(within=True)
    assert budget.admits(first)
    assert not budget.admits(second)
    assert budget.admits(first)
    first.is_within_frame = False
    assert not budget.admits(first)
    assert second.resumed == 1
    assert budget.admits(second)


def test_the_turn_passes_on_when_its_holder_goes() -> None:
    budget = Budget(100)
    budget.take(200)
    first, second = AReader(within=True), AReader(within=True)
    assert budget.admits(first)
    assert not budget.admits(second)
    budget.forget(first)
    assert second.resumed == 1


def test_one_who_waits_and_goes_is_not_let_on() -> None:
    budget = Budget(100)
    budget.take(200)
    gone = AReader()
    assert not budget.admits(gone)
    budget.forget(gone)
    budget.give(200)
    assert gone.resumed == 0
