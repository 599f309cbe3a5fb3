"""`kafkaesque` with a bug planted in it: `python -m tests.mutants.broker NAME serve …`.

For bugs that only real clients of real brokers reveal: those run in separate processes.
"""

import sys

from kafkaesque.cli.main import run
from tests.mutants.planting import EVERY


def main() -> int:
    """Run the command line after the mutant's name with that mutant in force."""
    name, *command = sys.argv[1:]
    with EVERY[name].planted():
        return run(command)


if __name__ == "__main__":
    sys.exit(main())
