"""The process that Spark forks its Python workers from, with what our tasks need in it already.

Spark starts one for every kind of worker, and names the kind; only those that run tasks read and
write records. A worker that begins with everything loaded takes no second to begin, and shares
the memory of all others. `session` sets it.
"""

import sys

from pyspark.daemon import manager

from kafkaesque.spark.warming import warm

_OF_TASKS = "pyspark.worker"


def main() -> None:
    """Load what is needed, then do what Spark's own process does."""
    if sys.argv[1:2] == [_OF_TASKS]:
        warm()
    manager()


if __name__ == "__main__":
    main()
