"""What do 1,000 idle Raft groups cost a process, in ticks and heartbeats?

Three nodes in this process, each a member of every group, are joined by lists instead of sockets.
The groups elect leaders, settle and go to rest; then the time that all three nodes need for ten
seconds' worth of ticks is measured and divided by three: the cost of one broker with 1,000 groups.
The reference is the same cluster with every group kept awake. Prints one JSON line.
"""

import json
import time
from collections.abc import Callable

from tests.raft.rosters import NODES, Cluster

GROUPS = 1_000
TICK_MS = 50
MEASURED_TICKS = 10_000 // TICK_MS
SETTLING_TICKS = 400


def main() -> None:
    """Settle, measure, print."""
    cluster = Cluster([f"group-{number}" for number in range(GROUPS)])
    cluster.run(SETTLING_TICKS, may_rest=False)
    awake = share(lambda: cluster.run(MEASURED_TICKS, may_rest=False))
    cluster.run(SETTLING_TICKS)
    asleep = share(lambda: cluster.run(MEASURED_TICKS))
    resting = sum(len(node.roster.resting) for node in cluster.nodes.values())
    line = {
        "figure": "idle-groups",
        "measured": round(asleep, 4),
        "unit": "% of a core",
        "ratio": round(asleep / awake, 5),
        "awake": round(awake, 2),
        "resting": resting,
    }
    print(json.dumps(line))


def share(run: Callable[[], None]) -> float:
    """Return the share of a core that one node takes, in per cent, at the rate of real ticks."""
    start = time.process_time()
    run()
    taken = time.process_time() - start
    return 100 * taken / len(NODES) / (MEASURED_TICKS * TICK_MS / 1000)


if __name__ == "__main__":
    main()
