"""Long work in slices: urgent work takes turns, background work waits for it and runs in order."""

from kafkaesque.slices import Sliced, Slices, whole


class Work:
    """Work of some slices that records each of them."""

    def __init__(self, done: list[str], name: str, slices: int) -> None:
        self.done = done
        self.name = name
        self.slices = slices

    def steps(self) -> Sliced[None]:
        for number in range(self.slices):
            self.done.append(f"{self.name}{number}")
            yield


def run_all(slices: Slices) -> None:
    while slices.has_work:
        slices.run()


def test_urgent_work_starts_at_once_and_takes_turns() -> None:
    slices, done = Slices(), list[str]()
    slices.begin(Work(done, "a", 3).steps())
    assert done == ["a0"]
    slices.begin(Work(done, "b", 2).steps())
    assert done == ["a0", "b0"]
    run_all(slices)
    assert done == ["a0", "b0", "a1", "b1", "a2"]


def test_background_work_waits_for_urgent_work_and_runs_one_after_the_other() -> None:
    slices, done = Slices(), list[str]()
    slices.queue(Work(done, "x", 2).steps())
    slices.queue(Work(done, "y", 1).steps())
    assert done == []
    slices.run()
    slices.begin(Work(done, "a", 2).steps())
    run_all(slices)
    assert done == ["x0", "a0", "a1", "x1", "y0"]


def test_cancelled_work_is_skipped() -> None:
    slices, done = Slices(), list[str]()
    given_up = Work(done, "x", 9).steps()
    slices.queue(given_up)
    slices.run()
    given_up.close()
    slices.queue(Work(done, "y", 1).steps())
    run_all(slices)
    assert done == ["x0", "y0"]


def test_the_driver_is_called_once_for_each_slice() -> None:
    slices, asked = Slices(), list[int]()
    slices.on_wanted = lambda: asked.append(1)
    slices.queue(Work([], "x", 2).steps())
    slices.queue(Work([], "y", 1).steps())
    assert len(asked) == 1
    ran = 0
    while len(asked) > ran:
        slices.run()
        ran += 1
    assert not slices.has_work


def test_the_driver_is_not_called_when_work_ends_in_its_first_slice() -> None:
    slices, asked = Slices(), list[int]()
    slices.on_wanted = lambda: asked.append(1)
    slices.begin(Work([], "a", 0).steps())
    assert asked == []


def test_work_run_at_once_returns_its_result() -> None:
    def count() -> Sliced[int]:
        yield
        yield
        return 3

    assert whole(count()) == 3
