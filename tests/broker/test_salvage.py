"""A lone broker that has lost its journal carries on from its segments."""

import pytest

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.broker.storage.aside import LEAP
from kafkaesque.broker.storage.identity import (
    FolderIdentity,
    KnownPeer,
    load_identity,
    save_identity,
)
from kafkaesque.broker.storage.salvage import has_journal, survey, write_journal
from kafkaesque.broker.storage.storage_errors import JournalLost
from kafkaesque.errors import LogError
from kafkaesque.log.journal import PATH
from kafkaesque.log.journal_rebuild import Found, find
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.sim.disk import PowerLost
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.brokers import BrokerNode
from tests.log.logs import TINY

VALUES = [b"%03d" % number for number in range(40)]
ME = FolderIdentity(
    cluster="c", node=1, directory=bytes(16), is_founder=True, has_begun=True, peers=()
)


def stopped() -> BrokerNode:
    """A stopped broker with two topics, of several segments and terms."""
    node = BrokerNode()
    save_identity(node.disk, ME)
    node.create("orders", 2)
    node.create("empty")
    for place, value in enumerate(VALUES):
        if place % 10 == 9:
            node.restart()
        assert node.produce("orders", value) == [Outcome.COMMITTED]
    node.broker.stop()
    node.disk.kill()
    return node


def lose_journal(node: BrokerNode, how: str) -> None:
    if how == "missing":
        node.disk.remove(PATH)
    else:
        file = node.disk.open(PATH)
        file.write(0, b"\xff" * file.size())
        node.disk.sync_now([file], [])
        file.close()
    node.disk.sync_now([], [""])


def orders(node: BrokerNode) -> str:
    (folder,) = [name for name in node.disk.list("") if name.startswith("orders.")]
    return f"{folder}/0"


def found_of(node: BrokerNode) -> Found:
    found = find(node.disk, orders(node))
    assert found is not None
    return found


def check_goes_on(node: BrokerNode) -> None:
    node.start()
    assert node.values("orders") == VALUES
    partition = node.broker.partition("orders", 0)
    assert partition.replica.raft.term > LEAP
    assert node.produce("orders", b"more") == [Outcome.COMMITTED]
    assert partition.high_watermark == len(VALUES) + 1
    assert node.produce("empty", b"first") == [Outcome.COMMITTED]
    assert node.create("later") == [None]
    node.restart()
    assert node.values("orders") == [*VALUES, b"more"]


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_lone_broker_carries_on_from_its_segments_in_a_term_above_all_of_theirs(how: str) -> None:
    node = stopped()
    assert has_journal(node.disk, TINY)
    lose_journal(node, how)
    before = set(node.disk.list(""))
    assert not has_journal(node.disk, TINY)
    found = survey(node.disk)
    assert set(node.disk.list("")) == before, "looking changes nothing"
    ends = {one.group: one.end for one in found.logs}
    assert ends[orders(node)] == len(VALUES)
    assert CATALOG_GROUP in ends
    assert found.term > LEAP
    assert all(one.last_term < found.term and not one.bad_bytes for one in found.logs)
    assert not any(one.has_holes for one in found.logs)
    assert len(found_of(node).terms) > 3
    write_journal(node.disk, TINY, found)
    assert (f"{PATH}.1.damaged" in node.disk.list("")) == (how == "damaged")
    check_goes_on(node)


def test_salvage_survives_a_power_loss_at_any_moment_and_can_start_over() -> None:
    node = stopped()
    lose_journal(node, "damaged")
    image = node.disk.image()
    operations = 0
    while True:  # ends: each round gets further
        operations += 1
        node.disk.restore(image)
        node.disk.crash_after = node.disk.operations + operations
        try:
            write_journal(node.disk, TINY, survey(node.disk))
        except PowerLost:
            node.disk.crash(CrashPolicy.TORN)
            node.disk.crash_after = None
            if not has_journal(node.disk, TINY):
                write_journal(node.disk, TINY, survey(node.disk))
            check_goes_on(node)
            node.disk.kill()
            continue
        break
    assert operations > 5


def test_a_damaged_batch_is_skipped_and_still_counts_as_damage() -> None:
    node = stopped()
    group = orders(node)
    (first, *_) = [name for name in node.disk.list(group) if name.endswith(".log")]
    whole = found_of(node)
    node.disk.flip_bit(f"{group}/{first}", 70, 1)
    found = found_of(node)
    assert found.bad_bytes > 60
    assert (found.end, found.terms[1:]) == (whole.end, whole.terms[1:])
    assert not found.has_holes, "otherwise the loss would go unnoticed"


@pytest.mark.parametrize(("byte", "bit"), [(2, 0), (7, 1), (12, 3), (15, 1), (15, 4)])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_flipped_bit_in_an_offset_or_a_term_misleads_nothing(
    place: int, byte: int, bit: int
) -> None:
    node = stopped()
    group = orders(node)
    logs = [name for name in node.disk.list(group) if name.endswith(".log")]
    whole = found_of(node)
    node.disk.flip_bit(
        f"{group}/{logs[0]}", batch_at(node, f"{group}/{logs[0]}", place) + byte, bit
    )
    found = found_of(node)
    assert (found.start, found.end) == (whole.start, whole.end)
    if place >= 0:  # the term of the last batch cannot be verified
        assert found.terms[-1] == whole.terms[-1]
    assert not found.has_holes


def batch_at(node: BrokerNode, path: str, place: int) -> int:
    file = node.disk.open(path)
    data = file.read(0, file.size())
    file.close()
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    return starts[place]


def test_a_broker_of_a_cluster_is_referred_to_the_others() -> None:
    node = stopped()
    peer = KnownPeer(node=2, host="h", port=1, directory=bytes(16))
    folder = load_identity(node.disk)
    assert folder is not None
    save_identity(
        node.disk,
        FolderIdentity(
            cluster="c", node=1, directory=bytes(16), is_founder=True, has_begun=True, peers=(peer,)
        ),
    )
    lose_journal(node, "missing")
    with pytest.raises(LogError, match="with broker 2: start it once with --rejoin"):
        survey(node.disk)


@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_refused_start_names_the_ways_out_and_changes_nothing(how: str) -> None:
    node = stopped()
    lose_journal(node, how)
    before = node.disk.list("")
    with pytest.raises(JournalLost, match=r"--rejoin.*kafkaesque log repair"):
        if how == "missing":
            load_identity(node.disk)
        node.start()
    assert node.disk.list("") == before
