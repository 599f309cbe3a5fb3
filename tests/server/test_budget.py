"""The limit on bytes in flight: who waits, who continues, and that one reader always does."""

from kafkaesque.server.edge.budget import FREE_BYTES, RESUMED_BYTES, Budget


class AReader:
    """A reader that counts how often it is resumed."""

    def __init__(self, *, within: bool = False, held: int = FREE_BYTES + 1) -> None:
        self.is_within_frame = within
        self.held_bytes = held
        self.resumed = 0

    def resume(self) -> None:
        self.resumed += 1


def test_below_the_limit_every_reader_continues() -> None:
    budget = Budget(100)
    budget.take(100)
    assert budget.admits(AReader())
    assert budget.waiting == 0


def test_over_the_limit_readers_wait_and_continue_in_order() -> None:
    budget = Budget(RESUMED_BYTES)
    budget.take(RESUMED_BYTES + 10)
    first, second, third = readers = [AReader(), AReader(), AReader()]
    assert [budget.admits(one) for one in readers] == [False] * 3
    budget.give(10)
    assert [one.resumed for one in readers] == [1, 0, 0]
    budget.give(RESUMED_BYTES)
    assert [first.resumed, second.resumed, third.resumed] == [1, 1, 1]


def test_a_reader_with_few_bytes_never_waits() -> None:
    budget = Budget(100)
    budget.take(200)
    assert budget.admits(AReader(held=FREE_BYTES))
    assert budget.waiting == 0


def test_an_answered_reader_waits_no_longer() -> None:
    budget = Budget(100)
    budget.take(200)
    reader = AReader()
    assert not budget.admits(reader)
    reader.held_bytes = 0
    assert budget.admits(reader)
    assert budget.waiting == 0


def test_over_the_limit_one_request_at_a_time_is_received_completely() -> None:
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


def test_the_turn_passes_on_when_its_holder_disconnects() -> None:
    budget = Budget(100)
    budget.take(200)
    first, second = AReader(within=True), AReader(within=True)
    assert budget.admits(first)
    assert not budget.admits(second)
    budget.forget(first)
    assert second.resumed == 1


def test_a_waiting_reader_that_disconnects_is_not_resumed() -> None:
    budget = Budget(100)
    budget.take(200)
    gone = AReader()
    assert not budget.admits(gone)
    budget.forget(gone)
    budget.give(200)
    assert gone.resumed == 0
