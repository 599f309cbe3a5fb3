"""The process that Spark forks its Python workers from, with our tasks' modules preloaded.

Spark starts one per kind of worker and names the kind; only workers that run tasks read and write
records. A worker that starts with everything loaded saves a second, and shares the memory of the
others. `session` sets it.
"""

import sys

from pyspark.daemon import manager

from kafkaesque.spark.worker_preload import warm

_OF_TASKS = "pyspark.worker"


def main() -> None:
    """Load the modules, then run Spark's own process."""
    if sys.argv[1:2] == [_OF_TASKS]:
        warm()
    manager()


if __name__ == "__main__":
    main()
