"""How long does a rebalance of ten members over 1,000 partitions take, and which members stop?

Nine members share a topic of 1,000 partitions, then a tenth joins. One machine in this process runs
all of them, and they send heartbeats as often as the broker requires; time is the model's, so
`measured` is how long members wait until every partition is read by its new owner, at the worst
moment to join. `revoked` counts partitions taken from a member that keeps them, which must be none.
`cpu_ms` is the processor time of the coordinator. Prints one JSON line.
"""

import json
import time

from tests.machines.consumer_desk import ConsumerDesk, Reader

MEMBERS = 10
PARTITIONS = 1_000
STEP_MS = 50
STEPS_MAX = 1_000


def main() -> None:
    """Let one more join, measure, print."""
    desk = ConsumerDesk(orders=PARTITIONS)
    readers = [Reader(f"r{number}") for number in range(MEMBERS - 1)]
    desk.settle(*readers)
    before = [reader.owned for reader in readers]
    late = Reader("late")
    # The others have sent heartbeats just before it joins, so they learn of it as late as possible.
    due = {reader.member_id: desk.now_ms + desk.config.consumer_heartbeat_ms for reader in readers}
    due["late"] = desk.now_ms
    history: list[list[frozenset[tuple[bytes, int]]]] = [[] for _ in readers]
    begin_ms, begin_cpu = desk.now_ms, time.process_time()
    for _ in range(STEPS_MAX):
        for reader in (late, *readers):
            if desk.now_ms >= due[reader.member_id]:
                was_reading = reader.owned
                desk.send(reader)
                reader.obey()
                # A member that has revoked partitions reports it at once, not at its next turn.
                wait_ms = (
                    0 if was_reading - reader.owned else desk.config.consumer_hasty_heartbeat_ms
                )
                due[reader.member_id] = desk.now_ms + wait_ms
        for reads, reader in zip(history, readers, strict=True):
            reads.append(reader.owned)
        if desk.consumers.state == "Stable":
            break
        desk.pass_ms(STEP_MS)
    cpu_ms = 1000 * (time.process_time() - begin_cpu)
    revoked = sum(
        len((old & reads[-1]) - one)
        for old, reads in zip(before, history, strict=True)
        for one in reads
    )
    assert len(late.owned) == PARTITIONS // MEMBERS
    line = {
        "figure": "consumer-rebalance",
        "measured": (desk.now_ms - begin_ms) / 1000,
        "unit": "s",
        "revoked": revoked,
        "cpu_ms": round(cpu_ms, 1),
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
