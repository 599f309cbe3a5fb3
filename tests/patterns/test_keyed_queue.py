"""The queue of the workers: order per key, and no other waiting."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.patterns.keyed_queue import KeyedQueue

KEYS = st.sampled_from([b"a", b"b", None])


@given(st.lists(KEYS, max_size=60), st.integers(1, 5), st.randoms(use_true_random=False))
def test_each_key_keeps_its_order_and_never_runs_twice_at_once(
    keys: list[bytes | None], lanes: int, chance: random.Random
) -> None:
    queue: KeyedQueue[int] = KeyedQueue()
    for number, key in enumerate(keys):
        queue.put(key, number)
    running: list[tuple[bytes | None, int]] = []
    seen: dict[bytes | None, list[int]] = {}
    while len(queue) or running:
        while queue.ready and len(running) < lanes:
            key, number = queue.take()
            assert key is None or key not in [other for other, _ in running]
            seen.setdefault(key, []).append(number)
            running.append((key, number))
        assert running, "something waits, and nothing runs"
        key, _ = running.pop(chance.randrange(len(running)))
        queue.done(key)
    for key, numbers in seen.items():
        assert numbers == sorted(numbers) == [n for n, each in enumerate(keys) if each == key]


def test_one_slow_key_does_not_delay_the_others() -> None:
    queue: KeyedQueue[str] = KeyedQueue()
    queue.put(b"slow", "1")
    queue.put(b"slow", "2")
    queue.put(b"other", "3")
    assert queue.take() == (b"slow", "1")
    assert queue.take() == (b"other", "3")
    assert not queue.ready
    queue.done(b"slow")
    assert queue.take() == (b"slow", "2")
