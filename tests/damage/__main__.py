"""Runs the whole damage matrix and writes its results: `python -m tests.damage`."""

import logging
import sys
from itertools import product

from tests.damage.broker_files import BROKER_HARMS, play_broker
from tests.damage.cells import CELLS_PATH, COLUMNS, play, save, save_of_brokers
from tests.damage.matrix import Moment


def main() -> int:
    """Run everything; the exit code is 1 if a cell is silent."""
    logging.getLogger("kafkaesque").propagate = False
    found: dict[str, dict[str, str]] = {}
    faults: list[str] = []
    for column in COLUMNS:
        for (what, role), cell in play(column).items():
            found.setdefault(what, {})[column.name_of(role)] = cell.text
            faults += [f"{what}, {column.name_of(role)}: {fault}" for fault in cell.faults]
    save(found)
    of_brokers: dict[str, dict[str, str]] = {}
    for what, brokers, moment in product(BROKER_HARMS, (1, 3), Moment):
        cell = play_broker(what, brokers, moment)
        of_brokers.setdefault(what, {})[f"{brokers}, {moment.value}"] = cell.text
        faults += [f"{what}, {brokers}, {moment.value}: {fault}" for fault in cell.faults]
    save_of_brokers(of_brokers)
    sys.stdout.write("\n".join([f"wrote {CELLS_PATH}", *faults, ""]))
    return 1 if faults else 0


sys.exit(main())
