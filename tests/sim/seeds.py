"""Runs seeds of one world. What a single seed does depends on every step that the code takes."""

from collections import Counter
from collections.abc import Iterable

from kafkaesque.sim.many import Failure, Kind, try_seed

STEPS = 6_000


def play_seeds(world: Kind, seeds: Iterable[int]) -> Counter[str]:
    """Run seeds that must not fail; return how often each thing happened in all of them."""
    counts = Counter[str]()
    for seed in seeds:
        result = try_seed(seed, STEPS, world)
        assert not isinstance(result, Failure), result.trace
        counts.update(result.counts)
    return counts
