"""The damage matrix: no cell is silent, no record is lost silently, and the table is true."""

from typing import Any

import pytest

from tests.damage.cells import COLUMNS, Kind, expected, harms_of, play
from tests.damage.matrix import Moment, Role

pytestmark = [
    pytest.mark.simulation,
    pytest.mark.complains(
        "damage_found partition=row-*",
        "repair_failed partition=row-*",
        "refill_begun partition=row-*",
        "refill_waits partition=row-*",
        "partition_offline partition=row-*",
        "seals_lost partition=row-*",
    ),
]


SHORT = Kind(is_compacted=False, roles=(Role.LEADER, Role.FOLLOWER), moment=Moment.START)


def worlds() -> list[Any]:
    """Return the columns; of those with three copies `make test` runs the plain, stopped ones."""
    is_long = [len(kind.roles) > 1 and kind != SHORT for kind in COLUMNS]
    marks = [[pytest.mark.long] if one else [] for one in is_long]
    return [
        pytest.param(kind, marks=mark, id=str(kind))
        for kind, mark in zip(COLUMNS, marks, strict=True)
    ]


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("kind", worlds())
def test_each_kind_of_damage_is_noticed_as_the_table_says(kind: Kind) -> None:
    table = expected()
    found = play(kind)
    assert {what for what, _ in found} == set(harms_of(kind))
    faults = {
        f"{what}, {kind.name_of(role)}": cell.faults
        for (what, role), cell in found.items()
        if cell.faults
    }
    assert not faults
    for (what, role), cell in found.items():
        said = table[what][kind.name_of(role)]
        if kind.is_compacted and ":" in said and cell.noticed:
            # Compaction reads too, and may come before a consumer or the scrub.
            said, shown = said.partition(": ")[2], cell.result
        else:
            shown = cell.text
        assert shown == said, f"{what}, {kind.name_of(role)}"
