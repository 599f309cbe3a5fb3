"""The damage matrix: no cell is silent, nobody misses a record unawares, and the table is true."""

import pytest

from tests.damage.cells import COLUMNS, Kind, expected, harms_of, play

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


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("kind", COLUMNS, ids=str)
def test_what_notices_each_kind_of_damage_is_what_the_table_says(kind: Kind) -> None:
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
            # Compaction reads, too, and may come before a consumer or the scrub.
            said, shown = said.partition(": ")[2], cell.result
        else:
            shown = cell.text
        assert shown == said, f"{what}, {kind.name_of(role)}"
