"""Damage to a whole broker's files: it refuses to start, is refilled by others, or is unharmed."""

import pytest

from tests.damage.broker_files import BROKER_HARMS, play_broker
from tests.damage.cells import expected_of_brokers
from tests.damage.matrix import Moment

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains(
        "damage_found partition=cluster-metadata *",
        "refill_begun partition=cluster-metadata *",
        "refill_waits partition=cluster-metadata *",
        "journal_mended node=1 copy=first: *",
    ),
]


@pytest.mark.parametrize("moment", Moment)
@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize("what", BROKER_HARMS)
def test_damage_to_a_broker_is_noticed_as_the_table_says(
    what: str, brokers: int, moment: Moment
) -> None:
    cell = play_broker(what, brokers, moment)
    assert not cell.faults
    assert cell.text == expected_of_brokers()[what][f"{brokers}, {moment.value}"]
