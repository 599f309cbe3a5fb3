"""Damage in closed segments, one kind at a time: it is noted and never served."""

from collections.abc import Callable

import pytest

from kafkaesque.broker.replication.damage_notes import DamageNotes
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.config import ProducerConfig
from kafkaesque.errors import NotLeader
from kafkaesque.log.damage import Damage, load_damage, save_damage
from kafkaesque.log.errors import CorruptLog, OffsetOutOfRange
from kafkaesque.raft.messages import TimeoutNow, VoteRequest, VoteResponse
from kafkaesque.raft.raft import Role
from kafkaesque.record.read import read_records
from kafkaesque.record.view import HEADER, split_batches
from kafkaesque.types import Offset
from tests.broker.nodes import GROUP, THREE, append
from tests.broker.partitions import OFTEN, PartitionNode, build
from tests.heard import Heard

COUNT = 60
FIELDS = (
    "base offset",
    "length",
    "term",
    "magic",
    "crc",
    "attributes",
    "last offset delta",
    "base timestamp",
    "max timestamp",
    "producer id",
    "producer epoch",
    "base sequence",
    "record count",
)
SIZES = (8, 4, 4, 1, 4, 2, 4, 8, 8, 8, 2, 4, 4)
Harm = Callable[[PartitionNode], None]


def _flip(place: int) -> Harm:
    """Flip a bit of the second batch of the second segment."""

    def flip(node: PartitionNode) -> None:
        file = node.disk.open(node.segment(1))
        data = file.read(0, file.size())
        second = next(split_batches(data)).size
        file.write(second + place, bytes([data[second + place] ^ 2]))
        file.close()

    return flip


def _cut_out(node: PartitionNode) -> None:
    """Cut out the second batch of the second segment."""
    file = node.disk.open(node.segment(1))
    data = file.read(0, file.size())
    first, second, *_ = split_batches(data)
    rest = data[first.size + second.size :]
    file.write(first.size, rest)
    file.truncate(first.size + len(rest))
    file.close()


def _truncate(node: PartitionNode) -> None:
    file = node.disk.open(node.segment(1))
    file.truncate(file.size() // 2)
    file.close()


def _zero(node: PartitionNode) -> None:
    file = node.disk.open(node.segment(1))
    file.write(100, bytes(file.size() - 100))
    file.close()


def _swap(node: PartitionNode) -> None:
    """Swap the bytes of two segments."""
    files = [node.disk.open(node.segment(place)) for place in (1, 2)]
    datas = [file.read(0, file.size()) for file in files]
    for file, data in zip(files, reversed(datas), strict=True):
        file.truncate(0)
        file.write(0, data)
        file.close()


def _delete(node: PartitionNode) -> None:
    """Delete a whole segment with its indexes while the broker is stopped."""
    stem = node.segment(1).removesuffix(".log")
    for suffix in (".log", ".index", ".timeindex"):
        path = stem + suffix
        if path.split("/")[1] in node.disk.list(GROUP):
            node.disk.remove(path)


PLACES = {name: sum(SIZES[:at]) + SIZES[at] - 1 for at, name in enumerate(FIELDS)}
HARMS: dict[str, Harm] = {
    **{f"a bit in the {name}": _flip(place) for name, place in PLACES.items()},
    "a high bit in the base offset": _flip(2),
    "a bit in the records": _flip(HEADER.size + 3),
    "a batch cut out": _cut_out,
    "a truncated segment": _truncate,
    "zeros": _zero,
    "two segments swapped": _swap,
    "a segment deleted": _delete,
}
AT_START = (
    "a batch cut out",
    "a truncated segment",
    "zeros",
    "two segments swapped",
    "a segment deleted",
)
"""Damage that the seals reveal before any read."""


def filled(*, alone: bool, config: ProducerConfig = OFTEN) -> PartitionNode:
    """A leader whose log has several segments; the value of each record is its offset."""
    node = PartitionNode(config=config) if alone else PartitionNode(THREE, config=config)
    if not alone:
        node.elect()
    for number in range(COUNT):
        node.send(build(b"%d" % number))
        if not alone:
            node.accepts(2, node.replica.raft.end)
    assert node.partition.high_watermark == COUNT
    return node


def lead_again(node: PartitionNode) -> None:
    if len(node.replica.raft.voters.voters) > 1:
        node.elect()
        node.accepts(2, node.replica.raft.end)


def harm(node: PartitionNode, what: str) -> None:
    """Damage the log between two runs, so that no index or position is cached."""
    node.partition.producers.stop()
    node.restart(after=lambda: HARMS[what](node))
    node.lead()
    assert bool(node.replica.damage.found) is (what in AT_START)
    if what not in AT_START:
        lead_again(node)


def read_all(node: PartitionNode, first: Offset = 0) -> list[Offset]:
    """Read like a consumer up to the end or an error; each record must be at its old offset."""
    seen: list[Offset] = []
    offset = first
    while offset < COUNT:
        data = node.partition.read(offset, 1 << 10)
        for view in split_batches(data):
            for record in read_records(view):
                if record.offset >= offset:
                    assert record.value == b"%d" % record.offset
                    seen.append(record.offset)
        assert seen[-1] >= offset
        offset = seen[-1] + 1
    return seen


@pytest.mark.parametrize("what", HARMS)
@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_damaged_leader_of_three_steps_down_and_keeps_its_vote(what: str) -> None:
    node = filled(alone=False)
    harm(node, what)
    node.sent.clear()
    with pytest.raises(NotLeader):
        read_all(node)
    node.sync()
    raft = node.replica.raft
    assert raft.role is Role.FOLLOWER and node.replica.error is None
    handed_to = [m.target for m in node.sent if isinstance(m, TimeoutNow)]
    assert handed_to == ([] if what in AT_START else [2])
    assert node.replica.damage.found
    assert node.replica.log.end_offset == COUNT
    for _ in range(2):
        term = node.replica.raft.term
        node.tick(100)
        assert node.replica.raft.role is Role.FOLLOWER, "it does not ask for votes"
        assert node.replica.raft.term == term
        node.stop_and_start()
    raft = node.replica.raft
    request = VoteRequest(
        source=2,
        target=1,
        term=raft.term + 1,
        is_pre=False,
        is_forced=True,
        last_term=raft.term,
        end=raft.end,
    )
    node.step(request)
    (answer,) = [m for m in node.sent if isinstance(m, VoteResponse)]
    assert answer.is_granted


@pytest.mark.parametrize("what", HARMS)
@pytest.mark.complains("damage_found partition=orders offset=*")
def test_the_only_replica_serves_what_is_good_and_an_error_where_it_is_damaged(what: str) -> None:
    node = filled(alone=True)
    harm(node, what)
    behind = int(node.segment(3).split("/")[1].removesuffix(".log"))
    with pytest.raises(PartitionOffline):
        read_all(node)
    (damage, *_) = node.replica.damage.found
    assert read_until_error(node) == list(range(damage.offset)), "everything before the damage"
    with pytest.raises(PartitionOffline):
        node.partition.read(damage.offset, 1 << 10)
    assert read_all(node, behind) == list(range(behind, COUNT)), "the segments after the damage"
    outcomes: list[Outcome] = []
    node.partition.append(memoryview(build(b"more")), outcomes.append)
    node.sync()
    assert outcomes == [Outcome.COMMITTED], "it still accepts writes"


SELDOM = ProducerConfig(snapshot_bytes=1 << 30, snapshot_at_stop_bytes=1 << 30)
"""Damage that hides producers, which are only found by reading the whole log."""


@pytest.mark.parametrize("what", HARMS)
@pytest.mark.complains("damage_found partition=orders offset=*")
def test_the_only_replica_leads_even_if_it_cannot_rebuild_its_producers(what: str) -> None:
    node = filled(alone=True, config=SELDOM)
    node.restart(after=lambda: HARMS[what](node))
    node.lead()
    assert node.replica.error is None
    behind = int(node.segment(3).split("/")[1].removesuffix(".log"))
    assert read_all(node, behind) == list(range(behind, COUNT))
    assert node.send(build(b"more"))[1] == [Outcome.COMMITTED]


@pytest.mark.parametrize("what", HARMS)
@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_follower_that_cannot_rebuild_its_producers_keeps_its_vote(what: str) -> None:
    node = filled(alone=False, config=SELDOM)
    node.restart(after=lambda: HARMS[what](node))
    node.lead()
    raft = node.replica.raft
    node.step(append(raft.term + 1, raft.end, prev_term=raft.term, commit=raft.end))
    assert raft.commit == raft.end
    for _ in range(20):
        node.upkeep()
    assert (node.replica.error, node.replica.log.end_offset) == (None, COUNT)
    request = VoteRequest(
        source=2,
        target=1,
        term=raft.term + 1,
        is_pre=False,
        is_forced=True,
        last_term=raft.term,
        end=raft.end,
    )
    node.step(request)
    assert [m.is_granted for m in node.sent if isinstance(m, VoteResponse)] == [True]


def read_until_error(node: PartitionNode) -> list[Offset]:
    seen: list[Offset] = []
    while True:
        try:
            data = node.partition.read(len(seen), 1 << 10)
        except OffsetOutOfRange:
            raise
        except PartitionOffline:
            return seen
        seen += [r.offset for v in split_batches(data) for r in read_records(v)]


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_damaged_damage_note_still_counts_as_damage() -> None:
    node = filled(alone=False)
    folder = node.replica.log.segments.folder
    assert load_damage(node.disk, folder) == ()
    noted = (Damage(offset=3, reason="the batch has a wrong checksum"),)
    save_damage(node.disk, folder, noted)
    assert load_damage(node.disk, folder) == noted
    file = node.disk.open(f"{folder}/damage")
    file.write(file.size() - 1, b"!")
    file.close()
    (found,) = load_damage(node.disk, folder)
    assert "itself damaged" in found.reason
    node.replica.log.trim(5)
    node.sync()
    (found,) = DamageNotes("orders", node.replica.log, Heard()).found
    assert found.offset == node.replica.log.start.first_offset == 5


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_damaged_replica_whose_folder_was_removed_recovers_from_the_others() -> None:
    node = filled(alone=False)
    harm(node, "a batch cut out")
    with pytest.raises(NotLeader):
        read_all(node)

    def take_away() -> None:
        for name in node.disk.list(GROUP):
            node.disk.remove(f"{GROUP}/{name}")

    node.restart(after=take_away)
    assert node.replica.raft.is_recovering
    assert not node.replica.damage.found


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_a_damaged_offset_beyond_the_commit_is_not_taken_for_the_end_of_the_log() -> None:
    node = filled(alone=False)
    harm(node, "a high bit in the base offset")
    node.partition.append(memoryview(build(b"not committed")), lambda _: None)
    assert node.partition.high_watermark < node.replica.log.end_offset
    with pytest.raises(NotLeader):
        read_all(node)
    assert node.replica.damage.found


@pytest.mark.complains("damage_found partition=orders offset=*")
def test_damage_is_noted_in_its_segment_and_cleared_when_repaired() -> None:
    node = filled(alone=False)
    notes = node.replica.damage
    base = int(node.segment(2).split("/")[1].removesuffix(".log"))
    error = CorruptLog(node.segment(2), 0, "there is no batch")
    assert notes.place_of(error, None) == base
    assert notes.place_of(error, 3) == base, "the read continued from an earlier segment"
    assert notes.place_of(error, base + 1) == base + 1
    node.replica.damaged(error, 3)
    node.replica.damaged(CorruptLog(node.segment(0), 0, "there is no batch"), 1)
    notes.clear(base, base + 1)
    node.replica.mended()
    assert [one.offset for one in notes.found] == [1] and not node.replica.raft.may_lead
    notes.clear(0, base)
    node.replica.mended()
    assert node.replica.raft.may_lead
    assert load_damage(node.disk, node.replica.log.segments.folder) == ()
