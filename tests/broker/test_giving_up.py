"""The only copy of a log carries on without what its disk lost: it gives up as little as it can."""

import pytest

from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.log.damage import load_damage
from kafkaesque.log.errors import OffsetOutOfRange
from kafkaesque.log.journal import Journal
from kafkaesque.log.log_salvage import Loss, Survey, give_up, load_given_up, survey
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from kafkaesque.sim.disk import PowerLost
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.types import Offset
from tests.broker.nodes import GROUP
from tests.broker.partitions import PartitionNode, build
from tests.broker.test_damage import COUNT, HARMS, Harm, filled, read_until_error
from tests.log.logs import TINY

ONE_BATCH = [what for what in HARMS if what.startswith(("a bit", "a high bit", "a batch"))]


def stopped_after(*harms: Harm) -> PartitionNode:
    """A stopped node whose disk is damaged."""
    node = filled(alone=True)
    node.partition.producers.stop()
    node.store.close()
    node.disk.kill()
    for harm in harms:
        harm(node)
    files = [node.disk.open(f"{GROUP}/{name}") for name in node.disk.list(GROUP)]
    node.disk.sync_now(files, [GROUP])
    return node


def looked(node: PartitionNode) -> Survey:
    journal = Journal.open(node.disk, TINY)
    found = survey(node.disk, GROUP, journal.groups[GROUP])
    journal.close()
    return found


def repair(node: PartitionNode) -> None:
    journal = Journal.open(node.disk, TINY)
    give_up(node.disk, journal, GROUP, survey(node.disk, GROUP, journal.groups[GROUP]))
    journal.close()


def lost(found: Survey) -> list[Offset]:
    return [offset for loss in found.losses for offset in range(loss.first, loss.end)]


def read_on(node: PartitionNode) -> list[Offset]:
    """Read to the end like a consumer that skips holes."""
    seen: list[Offset] = []
    offset = 0
    while offset < COUNT:
        data = node.partition.read(offset, 1 << 10)
        if not data:  # the hole is at the end, so the next records will come after it
            return seen
        for view in split_batches(data):
            for record in read_records(view):
                if offset <= record.offset < COUNT:
                    assert record.value == b"%d" % record.offset
                    seen.append(record.offset)
            offset = max(offset, view.end_offset)
    return seen


def serve(node: PartitionNode) -> None:
    node.start()
    node.lead()


def first_segment_gone(node: PartitionNode) -> None:
    node.disk.remove(node.segment(0))


def last_segment_short(node: PartitionNode) -> None:
    file = node.disk.open(node.segment(-1))
    file.truncate(file.size() - 10)
    file.close()


def last_segment_gone(node: PartitionNode) -> None:
    node.disk.remove(node.segment(-1))


ALL_HARMS = {
    **HARMS,
    "the first segment gone": first_segment_gone,
    "the last segment short": last_segment_short,
    "the last segment gone": last_segment_gone,
}


@pytest.mark.parametrize("what", ALL_HARMS)
def test_everything_good_keeps_its_offset_and_the_rest_is_skipped(what: str) -> None:
    node = stopped_after(ALL_HARMS[what])
    before = {name: node.disk.open(f"{GROUP}/{name}") for name in node.disk.list(GROUP)}
    bytes_before = {name: file.read(0, file.size()) for name, file in before.items()}
    found = looked(node)
    assert bytes_before == {
        name: node.disk.open(f"{GROUP}/{name}").read(0, 1 << 20) for name in node.disk.list(GROUP)
    }, "looking changes nothing"
    gone = lost(found)
    assert gone, "something is lost"
    if what in ONE_BATCH:
        assert len(gone) == 1, "one batch of one record was damaged"
    repair(node)
    assert looked(node).is_whole
    serve(node)
    assert read_on(node) == [offset for offset in range(COUNT) if offset not in gone]
    assert node.replica.damage.given_up == found.losses
    assert not node.replica.damage.found
    assert node.replica.log.end_offset == COUNT
    outcomes: list[Outcome] = []
    node.partition.append(memoryview(build(b"%d" % COUNT)), outcomes.append)
    node.sync()
    assert outcomes == [Outcome.COMMITTED]
    node.stop_and_start()
    assert read_on(node) == [offset for offset in range(COUNT) if offset not in gone]
    kept = [name for name in node.disk.list(GROUP) if name.endswith(".damaged")]
    assert all(
        node.disk.open(f"{GROUP}/{name}").read(0, 1 << 20)
        == bytes_before[name.rpartition(".")[0].rpartition(".")[0]]
        for name in kept
    ), "the damaged files are kept"


def test_a_sound_log_needs_no_repair() -> None:
    assert looked(stopped_after()).is_whole


@pytest.mark.parametrize(
    "what", ["a bit in the records", "a segment deleted", "the last segment short"]
)
def test_a_repair_interrupted_by_a_power_loss_can_be_repeated(what: str) -> None:
    operation = 0
    expected = lost(looked(stopped_after(ALL_HARMS[what])))
    while True:
        operation += 1
        node = stopped_after(ALL_HARMS[what])
        node.disk.crash_after = node.disk.operations + operation
        try:
            repair(node)
        except PowerLost:
            node.disk.crash(CrashPolicy.TORN)
        else:
            break
        repair(node)
        serve(node)
        assert read_on(node) == [offset for offset in range(COUNT) if offset not in expected]
        told = load_given_up(node.disk, GROUP)
        assert [at for loss in told for at in range(loss.first, loss.end)] == expected
    assert operation > 5


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_lone_copy_with_several_damaged_places_serves_everything_good() -> None:
    """Without `log repair`: an error at each damaged place, never "offset out of range"."""

    def flip(place: int) -> Harm:
        def harm(node: PartitionNode) -> None:
            file = node.disk.open(node.segment(place))
            file.write(70, b"!!!!!!!!")
            file.close()

        return harm

    node = stopped_after(flip(0), flip(2))
    gone = lost(looked(node))
    serve(node)
    assert read_until_error(node) == list(range(gone[0]))
    readable, refused = [], []
    for offset in range(COUNT):
        try:
            data = node.partition.read(offset, 1)
        except PartitionOffline:
            refused.append(offset)
        except OffsetOutOfRange:
            pytest.fail("a client would go elsewhere and hide the loss")
        else:
            assert next(split_batches(data)).base_offset == offset
            readable.append(offset)
    assert set(gone) <= set(refused)
    assert readable[-1] == COUNT - 1
    assert {one.offset for one in node.replica.damage.found} >= {gone[0]}
    node.partition.producers.stop()
    node.store.close()
    node.disk.kill()
    repair(node)
    assert load_damage(node.disk, GROUP) == ()
    serve(node)
    assert read_on(node) == [offset for offset in range(COUNT) if offset not in gone]


def test_given_up_records_are_remembered_and_given_up_once() -> None:
    node = stopped_after(HARMS["a bit in the records"])
    found = looked(node)
    repair(node)
    repair(node)
    assert load_given_up(node.disk, GROUP) == found.losses
    assert len([name for name in node.disk.list(GROUP) if name.endswith(".damaged")]) == 1
    (loss,) = found.losses
    assert isinstance(loss, Loss) and loss.records == 1 and loss.bytes > 60
