"""A replica that starts over: only with the state that its leader offers."""

from contextlib import suppress

import msgspec
import pytest
from msgspec.structs import replace

from kafkaesque.broker.machine_hosting.machine_saver import MachineState
from kafkaesque.broker.machine_hosting.machine_snapshots import MachineSnapshots
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.entry import LogStart
from kafkaesque.log import snapshot
from kafkaesque.log.errors import CorruptLog
from kafkaesque.log.snapshot import MACHINE
from kafkaesque.raft.messages import (
    AppendAccepted,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    StateOffer,
    StatePiece,
    StateRequest,
)
from kafkaesque.record.crc import crc32c
from kafkaesque.sim.disk import CrashPolicy, PowerLost
from tests.broker.nodes import GROUP, THREE, Node, heartbeat
from tests.broker.partitions import PartitionNode, build, numbered
from tests.broker.test_machine_follower import Followed, following
from tests.broker.test_machine_host import SOON

STATE = msgspec.msgpack.encode([1, [[b"k%d" % number, b"new"] for number in range(9)]])
START = LogStart(offset=40, marks_before=1, prev_term=1, voters=THREE, visible_offset=40)
OFFER = StateOffer(kind="machine", size=len(STATE), crc=crc32c(STATE))
INSTALL = InstallRequest(source=2, target=1, term=1, start=START, state=OFFER)
PIECE_BYTES = 30


def a_piece(position: int, data: bytes = STATE) -> StatePiece:
    return StatePiece(
        source=2,
        target=1,
        term=1,
        offset=40,
        crc=OFFER.crc,
        position=position,
        data=data[position : position + PIECE_BYTES],
    )


def asked(node: Node) -> list[int]:
    """The positions from which pieces were requested."""
    return [m.position for m in node.sent if isinstance(m, StateRequest)]


def give_all(node: Node, data: bytes = STATE) -> None:
    for position in range(0, len(data), PIECE_BYTES):
        node.step(a_piece(position, data))


def behind() -> Followed:
    """A follower with one record, which is deleted later, and nothing that was written since."""
    followed = following()
    followed.write(1, "old", "word", commit=2)
    assert followed.copy.machine.words == {b"old": b"word"}
    followed.node.sent.clear()
    return followed


def test_pieces_are_requested_one_at_a_time_and_the_copy_continues_from_their_state() -> None:
    followed = behind()
    node = followed.node
    node.step(INSTALL)
    assert asked(node) == [0]
    node.step(a_piece(0))
    assert asked(node) == [0, PIECE_BYTES]
    give_all(node)
    assert node.replica.log.start == START
    assert node.replica.raft.commit == START.index
    assert followed.copy.applied == 40
    assert followed.copy.machine.words == {b"k%d" % n: b"new" for n in range(9)}
    assert [m.match for m in node.sent if isinstance(m, AppendAccepted)] == [START.index]
    assert followed.failures == []


def test_a_copy_that_started_over_follows_the_log_after_its_state() -> None:
    followed = behind()
    followed.node.step(INSTALL)
    give_all(followed.node)
    followed.write(START.index, "k0", "newer", commit=START.index + 1)
    assert followed.copy.machine.words[b"k0"] == b"newer"
    assert followed.copy.applied == 41
    followed.node.restart()
    followed.start()
    followed.node.step(heartbeat(1, START.index + 1))
    assert followed.copy.machine.words[b"k8"] == b"new"


def test_a_lost_piece_is_requested_again_with_the_next_offer() -> None:
    node = behind().node
    node.step(INSTALL)
    node.step(a_piece(0))
    node.step(INSTALL)
    assert asked(node) == [0, PIECE_BYTES], "the next piece may still be in flight"
    node.step(INSTALL)
    assert asked(node) == [0, PIECE_BYTES, PIECE_BYTES]
    node.step(a_piece(0))
    assert asked(node) == [0, PIECE_BYTES, PIECE_BYTES], "a duplicate piece changes nothing"


def test_a_state_with_a_wrong_checksum_is_refused() -> None:
    followed = behind()
    node = followed.node
    node.step(INSTALL)
    give_all(node, STATE[:-1] + b"?")
    assert node.replica.log.start.offset == 0
    assert snapshot.offsets(node.disk, GROUP, MACHINE) == []
    node.step(INSTALL)
    give_all(node)
    assert node.replica.log.start == START


def test_a_new_offer_replaces_the_one_in_progress() -> None:
    node = behind().node
    node.step(INSTALL)
    node.step(a_piece(0))
    later = replace(INSTALL, start=replace(START, offset=50, visible_offset=50))
    node.step(later)
    assert asked(node) == [0, PIECE_BYTES, 0]
    assert [name for name in node.disk.list(GROUP) if name.endswith(".part")] == [
        "00000000000000000050.machine.part"
    ]


def test_an_offer_of_another_kind_is_ignored() -> None:
    node = behind().node
    node.step(replace(INSTALL, state=replace(OFFER, kind="snapshot")))
    assert asked(node) == []


def test_a_replica_that_already_has_the_log_up_to_the_start_requests_nothing() -> None:
    node = behind().node
    start = node.replica.log.start_at(1)
    node.step(replace(INSTALL, start=start))
    assert asked(node) == []
    assert [m.match for m in node.sent if isinstance(m, AppendAccepted)] == [2]


@pytest.mark.parametrize("policy", CrashPolicy)
def test_wherever_power_is_lost_a_log_with_a_later_start_has_its_state(policy: CrashPolicy) -> None:
    starts: set[int] = set()
    for step in range(1, 40):
        followed = behind()
        node = followed.node
        node.disk.crash_after = node.disk.operations + step
        with suppress(PowerLost):
            node.step(INSTALL)
            give_all(node)
        node.disk.crash(policy)
        node.start()
        followed.start()
        start = node.replica.log.start.offset
        starts.add(start)
        assert followed.failures == [], f"power was lost at step {step}"
        if start:
            assert followed.copy.machine.words[b"k8"] == b"new"
        else:
            assert snapshot.offsets(node.disk, GROUP, MACHINE) == []
            assert not [name for name in node.disk.list(GROUP) if name.endswith(".part")]
            node.step(INSTALL)
            give_all(node)
        assert node.replica.log.start == START
    assert starts == {0, 40}


def test_a_leader_offers_its_newest_good_state_and_sends_it_in_pieces() -> None:
    node = Node(THREE)
    snapshots = MachineSnapshots(node.disk, GROUP, SOON)
    state = MachineState(node.replica, snapshots)
    node.elect()
    for number in range(4):
        node.propose(b"%d" % number)
        node.accepts(2, node.replica.raft.end)
    snapshot.write(node.disk, GROUP, 2, STATE, MACHINE)
    snapshot.write(node.disk, GROUP, 3, b"damaged", MACHINE)
    node.disk.flip_bit(f"{GROUP}/{3:020d}.machine", 15, 1)
    offered = state.offer()
    assert offered is not None
    assert offered == (node.replica.log.start_at(2), OFFER)
    node.sent.clear()
    request = StateRequest(source=3, target=1, term=1, offset=2, crc=OFFER.crc, position=5)
    node.step(request)
    (piece,) = node.sent
    assert isinstance(piece, StatePiece)
    assert (piece.target, piece.position, bytes(piece.data)) == (3, 5, STATE[5:])
    node.sent.clear()
    node.step(replace(request, crc=1))
    assert node.sent == [], "the older one is gone"


def test_a_log_with_a_later_start_and_no_state_is_damaged() -> None:
    followed = behind()
    followed.node.step(INSTALL)
    give_all(followed.node)
    node = followed.node
    node.disk.flip_bit(f"{GROUP}/{40:020d}.machine", 20, 1)
    with pytest.raises(CorruptLog):
        MachineSnapshots(node.disk, GROUP, SOON).load(40, 40)
    node.store.close()
    node.disk.kill()
    node.store = node._open_store()
    with pytest.raises(CorruptLog, match="the state at the start of the log is gone"):
        node.store.open_log(GROUP, has_machine=True)
    assert not node.store.journal.groups[GROUP].is_recovering, (
        "the log is not emptied without the operator"
    )


def test_machines_drop_their_log_behind_the_older_of_two_snapshots() -> None:
    followed = following()
    index = 1
    kept: list[tuple[int, list[int]]] = []
    for _ in range(3):
        for _ in range(5):
            followed.write(index, "k", "x" * 50, commit=index)
            index += 1
        followed.node.step(heartbeat(1, index))
        followed.tick()
        followed.tick()
        taken = snapshot.offsets(followed.node.disk, GROUP, MACHINE)
        kept.append((followed.node.replica.log.start.offset, taken))
    assert kept == [(0, [5]), (5, [5, 10]), (10, [10, 15])]


# ── deleted records ──────────────────────────────────────────────────────────────────────────


def test_a_follower_deletes_what_its_leader_deleted_once_it_knows_the_commit() -> None:
    followed = following()
    node = followed.node
    node.replica.log.has_own_start = False
    for index in range(1, 5):
        followed.write(index, "k", "v", commit=index)
    assert node.replica.high_watermark == 3
    node.step(replace(heartbeat(1, 4), low=4))
    assert node.replica.log.start.first_offset == 0, "the last of them may still be cut"
    node.step(replace(heartbeat(1, 4), low=2))
    assert (node.replica.log.start.first_offset, node.replica.log.low) == (2, 2)
    node.restart()
    assert node.replica.log.start.first_offset == 2


def alive(source: int, low: int = 0) -> HeartbeatResponse:
    return HeartbeatResponse(source=source, target=1, term=1, commit=3, low=low)


def a_leader_at_rest() -> Node:
    """The leader of a group in which all replicas have, and know, everything."""
    node = Node(THREE)
    node.elect()
    node.propose(b"a", b"b")
    for source in (2, 3):
        node.accepts(source, 3)
        node.step(alive(source))
    raft = node.replica.raft
    assert raft.leadership is not None
    assert raft.leadership.is_idle
    raft.rest()
    return node


def test_a_resting_group_wakes_up_to_announce_deleted_records() -> None:
    node = a_leader_at_rest()
    node.replica.log.trim(2)
    assert node.replica.raft.is_resting, "it is announced when it is durable"
    node.sync()
    assert not node.replica.raft.is_resting
    node.sent.clear()
    node.tick(2)
    assert {(m.target, m.low) for m in node.sent if isinstance(m, Heartbeat)} == {(2, 2), (3, 2)}


def test_a_group_rests_again_when_all_replicas_have_deleted_the_records() -> None:
    node = a_leader_at_rest()
    leadership = node.replica.raft.leadership
    assert leadership is not None
    node.replica.log.trim(2)
    node.sync()
    node.step(alive(2, low=2))
    assert not leadership.is_idle
    node.step(alive(3, low=2))
    assert leadership.is_idle


# ── producer state ───────────────────────────────────────────────────────────────────────────


def test_a_refilled_replica_knows_the_producers_of_records_it_never_had() -> None:
    leader = PartitionNode()
    for sequence in range(7):
        leader.send(numbered(sequence))
    assert leader.partition.trim(5)
    leader.sync()
    start, offer = leader.partition.producers.offer()
    assert offer is not None
    assert (start.offset, offer.kind) == (5, "snapshot")
    state = leader.partition.producers.piece(5, offer.crc, 0, 1 << 20)
    assert state is not None

    start = replace(start, voters=THREE)
    node = PartitionNode(THREE)
    node.step(replace(INSTALL, term=1, start=start, state=offer))
    node.step(replace(a_piece(0), offset=5, crc=offer.crc, data=state))
    assert node.replica.log.start == start
    node.elect()
    assert node.partition.first_offset == 5
    assert node.send(numbered(4)) == (4, [Outcome.COMMITTED]), "it is a retry of a deleted batch"
    assert node.send(numbered(5))[0] == 5


def test_without_producers_an_install_has_no_state() -> None:
    leader = PartitionNode()
    for _ in range(3):
        leader.send(build(b"of nobody"))
    leader.partition.trim(3)
    leader.sync()
    assert leader.partition.producers.offer()[1] is None


def test_an_offer_stays_the_same_while_it_is_fetched() -> None:
    leader = PartitionNode()
    for sequence in range(3):
        leader.send(numbered(sequence))
    leader.partition.trim(2)
    leader.sync()
    before = leader.partition.producers.offer()
    leader.send(numbered(3))
    assert leader.partition.producers.offer() == before
