"""The cells of the damage matrix: its columns, and what is expected in each.

`make docs` makes the tables of `docs/reference/damage.md` from the two files `*cells.json` here.
After a change in what notices damage, `python -m tests.damage` writes both; read the difference.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tests.damage.harms import ACTIVE, BESIDE, CLOSED, Harm
from tests.damage.matrix import Cell, Column, Moment, Role

CELLS_PATH = Path(__file__).parent / "cells.json"
BROKERS_PATH = Path(__file__).parent / "broker_cells.json"
HARMS = {**CLOSED, **ACTIVE, **BESIDE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Columns that run in one world."""

    is_compacted: bool
    roles: tuple[Role, ...]
    moment: Moment

    def name_of(self, role: Role) -> str:
        """Return the name of one column."""
        topic = "compacted" if self.is_compacted else "plain"
        return f"{topic}, {role.value}, {self.moment.value}"

    def __str__(self) -> str:
        return "-".join(
            [
                "compacted" if self.is_compacted else "plain",
                "alone" if Role.ALONE in self.roles else "three",
                self.moment.value,
            ]
        )


COLUMNS = tuple(
    Kind(is_compacted=is_compacted, roles=roles, moment=moment)
    for is_compacted in (False, True)
    for roles in ((Role.ALONE,), (Role.LEADER, Role.FOLLOWER))
    for moment in Moment
)

LATE = {"a bit in the base offset"}
"""In a compacted log a batch may seem to be in a hole beside its position until the scrub compares
it with the seal: a small read may return it there. Where the copy is the only one, that is not in
the table, but below it, as work that remains.
"""


def harms_of(kind: Kind) -> dict[str, Harm]:
    """Return the rows that run in a world."""
    is_bare = kind.is_compacted and kind.roles == (Role.ALONE,)
    return {what: harm for what, harm in HARMS.items() if not (is_bare and what in LATE)}


def play(kind: Kind) -> dict[tuple[str, Role], Cell]:
    """Run the columns of one world."""
    column = Column(harms_of(kind), kind.roles, kind.moment, is_compacted=kind.is_compacted)
    column.play()
    return column.cells


def expected() -> dict[str, dict[str, str]]:
    """Return each cell, by row and column."""
    found: dict[str, dict[str, str]] = json.loads(CELLS_PATH.read_text())
    return found


def save(found: dict[str, dict[str, str]]) -> None:
    """Write each cell."""
    CELLS_PATH.write_text(json.dumps(found, indent=1) + "\n")


def expected_of_brokers() -> dict[str, dict[str, str]]:
    """Return the results of damaged brokers, by row and by their number and the moment."""
    found: dict[str, dict[str, str]] = json.loads(BROKERS_PATH.read_text())
    return found


def save_of_brokers(found: dict[str, dict[str, str]]) -> None:
    """Write the results of damaged brokers."""
    BROKERS_PATH.write_text(json.dumps(found, indent=1) + "\n")
