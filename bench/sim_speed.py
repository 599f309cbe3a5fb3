"""How many steps per second does the simulator run on one core, with all checks on?

Runs the first seeds of the whole stack (real Raft, real log, real recovery) one after another in
this process. The best of several rounds counts. Prints one JSON line.
"""

import json
import time

from kafkaesque.sim.run import run_seed

SEEDS = range(120)
ROUNDS = 3


def main() -> None:
    """Measure and print."""
    best = 0.0
    for _ in range(ROUNDS):
        start = time.process_time()
        steps = sum(run_seed(seed).steps for seed in SEEDS)
        best = max(best, steps / (time.process_time() - start))
    print(json.dumps({"figure": "sim-steps", "measured": round(best), "unit": "steps/s"}))


if __name__ == "__main__":
    main()
