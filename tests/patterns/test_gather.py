"""When a scattered request is done, and which workers are missing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.errors import InvalidPattern, RequestFailed
from kafkaesque.patterns.gather import WORKERS_MAX, Gather

WORKERS = ("a", "b", "c", "d")
ANSWERS = st.lists(st.tuples(st.sampled_from([*WORKERS, "stranger"]), st.booleans()), max_size=20)


@given(ANSWERS, st.none() | st.integers(1, len(WORKERS)))
def test_every_worker_has_answered_failed_or_is_missing(
    answers: list[tuple[str, bool]], enough: int | None
) -> None:
    gather = Gather(WORKERS, enough)
    for worker, is_good in answers:
        was_done, before = gather.is_done, gather.missing
        said = b"yes" if is_good else RequestFailed(worker, "E", "no")
        is_taken = gather.take(worker, said)
        assert is_taken == (not was_done and worker in before)
        parts = (gather.answers.keys(), gather.failed.keys(), gather.missing)
        assert sorted(name for part in parts for name in part) == list(WORKERS)
    wanted = len(WORKERS) if enough is None else enough
    assert gather.is_done == (len(gather.answers) >= wanted or not gather.missing)
    assert len(gather.answers) <= wanted


def test_an_error_is_not_enough_but_ends_the_wait() -> None:
    gather = Gather(("a", "b"), enough=1)
    assert gather.take("a", RequestFailed("a", "E", "no"))
    assert not gather.is_done
    assert gather.take("b", None)
    assert gather.is_done


@pytest.mark.parametrize("enough", [0, 3])
def test_more_than_all_or_none_is_never_enough(enough: int) -> None:
    with pytest.raises(InvalidPattern):
        Gather(("a", "b"), enough)


@pytest.mark.parametrize("workers", [(), ("a", "a"), tuple(map(str, range(WORKERS_MAX + 1)))])
def test_workers_have_different_names(workers: tuple[str, ...]) -> None:
    with pytest.raises(InvalidPattern):
        Gather(workers)
