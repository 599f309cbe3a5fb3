"""Reads of a replica whose disk is behind: data about to be cut is never served."""

import pytest

from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.entry import Entry, TermOpened
from kafkaesque.record.read import read_records
from kafkaesque.record.view import split_batches
from tests.broker.nodes import THREE, a_batch, append, entry
from tests.broker.partitions import PartitionNode, build


def read(node: PartitionNode) -> list[bytes | None]:
    data = node.partition.read_as_follower(0, 1 << 16)
    return [record.value for view in split_batches(data) for record in read_records(view)]


def test_a_follower_does_not_serve_data_that_is_about_to_be_cut() -> None:
    node = PartitionNode(THREE)
    end = node.replica.raft.end
    old = entry(end + 1, 1, a_batch(b"old", b"older", base=0, term=1))
    node.step(append(1, end, Entry(end, end + 1, 1, TermOpened()), old))
    assert read(node) == []
    node.holds_syncs = True
    mark = Entry(end + 1, end + 2, 2, TermOpened())
    new = entry(end + 2, 2, a_batch(b"new", base=0, term=2))
    node.step(append(2, end + 1, mark, new, prev_term=1, commit=end + 3))
    assert node.partition.high_watermark == 1
    assert read(node) == [], "the segments still hold the old data"
    node.holds_syncs = False
    node.sync()
    assert read(node) == [b"new"]


@pytest.mark.complains(
    "damage_found partition=orders offset=3 reason=*",
)
def test_a_batch_that_the_disk_returns_damaged_is_not_served() -> None:
    node = PartitionNode()
    for number in range(40):
        node.send(build(b"%d" % number * 20))
    first = bytes(node.partition.read(0, 1 << 12))
    (name, *_) = [name for name in node.disk.list(node.replica.group) if name.endswith(".log")]
    file = node.disk.open(f"{node.replica.group}/{name}")
    place = first.index(b"3" * 20)
    good = sum(view.size for view in split_batches(first) if view.base_offset < 3)
    file.write(place, b"4")
    file.close()
    assert bytes(node.partition.read(0, 1 << 12)) == first[:good]
    with pytest.raises(PartitionOffline, match="wrong checksum"):
        node.partition.read(3, 1 << 12)
    assert node.replica.error is None
    assert [one.offset for one in node.replica.damage.found] == [3]
