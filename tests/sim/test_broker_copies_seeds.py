"""Machines that are restored from images of their disks, again and again."""

import pytest

from kafkaesque.sim.many import Failure, Kind, try_seed

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains(
        "old_copy peer=*: broker * remembers more of this data folder *",
        "old_copy_lacks *",
        "tail_lost partition=* offset=*: the disk has lost what was synced *",
    ),
]

STEPS = 6_000


@pytest.mark.parametrize("seed", [5, 9, 10])
def test_nothing_is_lost_to_an_old_copy_that_is_found_out(seed: int) -> None:
    result = try_seed(seed, STEPS, Kind.COPIES)
    assert not isinstance(result, Failure), result.trace
    assert result.counts["images restored"] > 0
