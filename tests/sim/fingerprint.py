"""The results of a run as a few lines of text: two equal runs have equal lines.

`python -m tests.sim.fingerprint 3 4` prints those of seeds 3 and 4, for another process to compare.
"""

import hashlib
import sys

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.sim.checks import digest
from kafkaesque.sim.mischief import Mischief
from kafkaesque.sim.run import make_peace
from kafkaesque.sim.world import World

STEPS = 800


def fingerprint(seed: int) -> list[str]:
    """Run a seed with its faults and recovery; describe its counts, its time and its logs."""
    world = World(seed)
    mischief = Mischief(world)
    mischief.begin()
    world.run(STEPS)
    mischief.stop()
    make_peace(world)
    lines = [
        f"seed {seed}: {world.steps} steps in {world.clock.time} ms, {world.network.sent} messages",
        f"counts {sorted(world.counts.items())}",
    ]
    for machine in world.nodes.values():
        for group, replica in sorted(machine.replicas.items()):
            lines.append(f"node {machine.node} {group}: {_log(replica)}")
    return lines


def _log(replica: Replica) -> str:
    entries = replica.log.entries(replica.log.start.index, 1 << 30)
    found = hashlib.sha256()
    for entry in entries:
        found.update(f"{entry.first} {entry.end} {entry.term} {digest(entry)!r}\n".encode())
    return f"{len(entries)} entries, {found.hexdigest()}"


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        sys.stdout.write("\n".join(fingerprint(int(argument))) + "\n")
