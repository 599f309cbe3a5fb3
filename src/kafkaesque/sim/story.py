"""A cluster that loses its leader in the middle of a write, narrated step by step.

Everything reported comes from the run, and the last line appears only if it is true.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kafkaesque.broker.replication.replica import Replica
from kafkaesque.config import LogConfig
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.sim.checks import Violation
from kafkaesque.sim.inode import DiskFaults
from kafkaesque.sim.node import SimNode
from kafkaesque.sim.run import check_end, make_peace
from kafkaesque.sim.settings import NetworkFaults, Settings
from kafkaesque.sim.world import World
from kafkaesque.types import Offset

GROUP = "group-0"
_STEPS_MAX = 100_000
_WRITES = 200
_READ_BYTES = 1 << 16
_INDENT = " " * 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of the story."""

    acknowledged: int
    lost: int
    """Acknowledged batches that at least one broker lacks at the end."""

    unknown: int
    committed_records: int
    elections: int
    steps: int


def tell(seed: int, say: Callable[[str], None]) -> Verdict:
    """Run the story and report each step; raises Violation if an invariant breaks."""
    world = World(seed, _settings())
    checks = world.checks[GROUP]
    say("Three brokers start with empty disks. No leader is set.")
    leader = _wait_for_leader(world)
    say(f"{_time(world)}  broker {leader.raft.node} is elected and opens term {leader.raft.term},")
    say(f"{_INDENT}and serves clients now that this is on a majority's disks")
    _wait(world, lambda: checks.acknowledged >= _WRITES)
    say(f"{_time(world)}  {checks.acknowledged} batches acknowledged, each synced by a majority")
    fallen = world.nodes[leader.raft.node]
    _lose_power_while_writing(world, fallen)
    say(f"{_time(world)}  the power fails on broker {fallen.node} in the middle of a write;")
    say(f"{_INDENT}unsynced data is lost or torn")
    before = world.clock.time
    second = _wait_for_leader(world)
    waited = world.clock.time - before
    term = second.raft.term
    say(f"{_time(world)}  broker {second.raft.node} takes over in term {term}, after {waited} ms")
    _wait(world, lambda: checks.acknowledged >= 2 * _WRITES)
    say(f"{_time(world)}  {checks.acknowledged} batches acknowledged")
    world.start(fallen)
    back = fallen.replicas[GROUP]
    kept = back.log.end_offset
    say(f"{_time(world)}  broker {fallen.node} is back with the {kept} records that its disk kept")
    make_peace(world)
    check_end(world)
    lost = count_lost(world)
    if not lost:
        say(f"{_time(world)}  it has caught up: all three hold {back.log.end_offset} records")
    return Verdict(
        acknowledged=checks.acknowledged,
        lost=lost,
        unknown=world.counts.get("unknown", 0),
        committed_records=back.high_watermark,
        elections=len(checks.leaders),
        steps=world.steps,
    )


def count_lost(world: World) -> int:
    """Count the acknowledged batches that some broker lacks, by reading every broker's segments.

    It relies only on acknowledgements and the disks' content, so it is a second opinion on the
    checks. Only for worlds without trimming and compaction.
    """
    promised = world.checks[GROUP].promised
    lost: set[Offset] = set()
    for machine in world.nodes.values():
        replica = machine.replicas.get(GROUP)
        held = {} if replica is None else values_on_disk(replica)
        for offset, sent in promised:
            expected = {offset + place: value for place, value in enumerate(sent)}
            if not expected.items() <= held.items():
                lost.add(offset)
    return len(lost)


def values_on_disk(replica: Replica) -> dict[Offset, bytes | None]:
    """Return every value in a replica's segments, by offset."""
    segments = replica.log.segments
    found: dict[Offset, bytes | None] = {}
    offset = segments.first_base
    while offset < segments.end_offset:
        data = segments.read(offset, _READ_BYTES)
        if not data:
            break
        for view in split_batches(data):
            found |= {record.offset: record.value for record in read_records(view)}
            offset = view.base_offset + view.last_offset_delta + 1
    return found


def _settings() -> Settings:
    return Settings(
        nodes=3,
        log=LogConfig(segment_bytes_max=4000, index_interval_bytes=200),
        disk=DiskFaults(page_bytes=64),
        network=NetworkFaults(delay_max=3),
    )


def _lose_power_while_writing(world: World, machine: SimNode) -> None:
    machine.disk.crash_after = machine.disk.operations + 3
    _wait(world, lambda: not machine.is_up)


def _wait_for_leader(world: World) -> Replica:
    def is_led() -> bool:
        leader = world.leader(GROUP)
        leadership = None if leader is None else leader.raft.leadership
        return leadership is not None and leadership.may_serve

    _wait(world, is_led)
    leader = world.leader(GROUP)
    assert leader is not None
    return leader


def _wait(world: World, is_done: Callable[[], bool]) -> None:
    if not world.run_until(is_done, _STEPS_MAX):
        raise Violation("the cluster makes no progress")


def _time(world: World) -> str:
    return f"{world.clock.time / 1000:6.3f} s"
