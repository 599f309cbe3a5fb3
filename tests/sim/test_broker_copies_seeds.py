"""Machines that are restored from images of their disks, again and again."""

import pytest

from kafkaesque.sim.many import Kind
from tests.sim.seeds import play_seeds

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains(
        "old_copy peer=*: broker * remembers newer data than *",
        "old_copy_lacks *",
        "tail_lost partition=* offset=*: the disk lost synced *",
    ),
]


def test_nothing_is_lost_to_a_detected_old_copy() -> None:
    assert play_seeds(Kind.COPIES, [5, 10, 12])["images restored"] > 0
