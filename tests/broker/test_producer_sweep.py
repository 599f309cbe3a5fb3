"""The sweep visits all partitions in turn; a failure in one does not affect the others."""

from kafkaesque.broker.partition.producer_sweep import PARTITIONS_PER_TICK, ProducerSweep
from kafkaesque.errors import LogError
from kafkaesque.log.errors import DiskFailed
from kafkaesque.log.producer_snapshot import snapshot_offsets
from kafkaesque.sim.disk import DiskFaults
from tests.broker.nodes import GROUP
from tests.broker.partitions import PartitionNode, numbered


def a_sweep(*nodes: PartitionNode, all_max: int = 1000) -> tuple[ProducerSweep, list[LogError]]:
    failures: list[LogError] = []
    each = lambda: (node.partition for node in nodes)  # noqa: E731
    return ProducerSweep(each, failures.append, all_max), failures


def a_busy_node() -> PartitionNode:
    """A node with producer snapshots due."""
    node = PartitionNode()
    for sequence in range(10):
        node.send(numbered(sequence))
    return node


def step(sweep: ProducerSweep, *nodes: PartitionNode) -> None:
    """Let the sweep work, and then the disks."""
    sweep.step()
    for node in nodes:
        node.after_event()


def has_snapshot(node: PartitionNode) -> bool:
    return snapshot_offsets(node.disk, GROUP) != []


def test_one_step_gives_the_disk_at_most_one_write() -> None:
    nodes = [a_busy_node() for _ in range(3)]
    sweep, _ = a_sweep(*nodes)
    sweep.step()  # begins the first round
    for written in range(1, 4):
        step(sweep, *nodes)
        assert sum(map(has_snapshot, nodes)) == written


def test_every_partition_gets_its_turn() -> None:
    nodes = [PartitionNode() for _ in range(PARTITIONS_PER_TICK)]
    nodes.append(a_busy_node())
    sweep, _ = a_sweep(*nodes)
    for _ in range(3):
        step(sweep, *nodes)
    assert has_snapshot(nodes[-1])


def test_a_full_disk_is_skipped() -> None:
    full, good = a_busy_node(), a_busy_node()
    full.disk.faults = DiskFaults(page_bytes=64, full_at_bytes=1)
    sweep, failures = a_sweep(full, good)
    for _ in range(2):
        step(sweep, full, good)
    assert has_snapshot(good)
    assert failures == []


def test_a_failing_disk_is_reported() -> None:
    node = a_busy_node()
    node.disk.fail_next_sync()
    sweep, failures = a_sweep(node)
    for _ in range(4):  # to begin a round, to write, to begin the next, to learn of the failure
        step(sweep, node)
    assert [type(failure) for failure in failures] == [DiskFailed]


def test_a_clean_stop_writes_all_snapshots() -> None:
    nodes = [a_busy_node() for _ in range(3)]
    sweep, _ = a_sweep(*nodes)
    sweep.stop()
    assert all(map(has_snapshot, nodes))


def test_the_sweep_does_not_wait_for_the_disk() -> None:
    node = a_busy_node()
    sweep, _ = a_sweep(node)
    for _ in range(3):
        sweep.step()
    assert not has_snapshot(node), "the disk has not answered yet"
    node.after_event()
    assert has_snapshot(node)


def test_the_limit_holds_for_the_producers_of_all_partitions_together() -> None:
    nodes = [PartitionNode() for _ in range(3)]
    for producer_id in range(20):
        for node in nodes:
            node.send(numbered(0, producer_id=producer_id))
    sweep, _ = a_sweep(*nodes, all_max=30)
    for _ in range(12):
        step(sweep, *nodes)
    assert sweep.known == 30
    for node in nodes:
        node.send(numbered(1, producer_id=19))
        assert len(node.partition.producers) == 10, "the most recent producers are kept"
