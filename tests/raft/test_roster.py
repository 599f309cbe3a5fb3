"""Groups rest when everything is settled, and wake when their leader's node is not heard from."""

import random

import pytest

from kafkaesque.entry import HardState
from kafkaesque.raft.messages import Message
from kafkaesque.raft.raft import Raft, Role
from kafkaesque.raft.roster import Beat
from tests.raft.rosters import CONFIG, NODES, Cluster, Node

GROUPS = ("a", "b")
SETTLING_TICKS = 120


@pytest.fixture
def resting() -> Cluster:
    """A cluster in which every group has settled."""
    cluster = Cluster(GROUPS)
    cluster.run(SETTLING_TICKS)
    assert cluster.is_all_at_rest()
    cluster.sent.clear()
    return cluster


@pytest.mark.requirement("REP-3")
def test_nodes_with_resting_groups_send_only_beats(resting: Cluster) -> None:
    resting.run(20)
    assert resting.sent
    assert all(isinstance(message, Beat) for message in resting.sent)
    pairs = len(NODES) * (len(NODES) - 1)
    assert len(resting.sent) <= pairs * 20 // CONFIG.heartbeat_ticks


def test_beats_name_no_group_while_nothing_changes(resting: Cluster) -> None:
    resting.run(20)
    beats = [message for message in resting.sent if isinstance(message, Beat)]
    assert all(not beat.rested and not beat.woken for beat in beats[-6:])


def test_a_proposal_wakes_only_its_group_which_rests_again(resting: Cluster) -> None:
    resting.propose("a")
    resting.run(1)
    assert {g for node in resting.nodes.values() for g in node.roster.awake} == {"a"}
    resting.run(SETTLING_TICKS)
    assert resting.is_all_at_rest()
    assert {node.replicas["a"].commit for node in resting.nodes.values()} == {2}


@pytest.mark.requirement("REP-4")
def test_a_silent_leader_is_replaced(resting: Cluster) -> None:
    old = resting.leader("a")
    term = resting.nodes[old].replicas["a"].term
    resting.isolate(old)
    resting.run(4 * CONFIG.election_ticks)
    new = resting.leader("a")
    assert new != old
    assert resting.nodes[new].replicas["a"].term > term


def test_a_leader_whose_followers_fall_silent_wakes_and_steps_down(resting: Cluster) -> None:
    old = resting.leader("a")
    resting.isolate(old)
    resting.run(4 * CONFIG.election_ticks)
    assert resting.nodes[old].replicas["a"].role is not Role.LEADER


def test_a_leader_that_receives_but_cannot_send_wakes(resting: Cluster) -> None:
    leader = resting.leader("a")
    resting.cuts = {(leader, other) for other in NODES}
    resting.run(2 * CONFIG.election_ticks)
    assert "a" in resting.nodes[leader].roster.awake


@pytest.mark.requirement("REP-4")
def test_a_leader_that_restarts_faster_than_any_timeout_is_noticed(resting: Cluster) -> None:
    old = resting.leader("a")
    reborn = Node(old, 99, GROUPS)
    log = reborn.logs["a"] = resting.nodes[old].logs["a"]
    state = HardState(term=resting.nodes[old].replicas["a"].term, vote=old)
    raft = reborn.replicas["a"] = Raft(old, CONFIG, log, state, random.Random(1))
    raft.stable_at(log.end)
    reborn.roster.add("a", raft)
    resting.nodes[old] = reborn
    others = [node for number, node in resting.nodes.items() if number != old]
    assert all("a" in node.roster.resting for node in others)
    resting.run(3 * CONFIG.heartbeat_ticks)  # less than any timeout
    assert all("a" in node.roster.awake for node in others)
    resting.run(4 * CONFIG.election_ticks)
    assert resting.nodes[resting.leader("a")].replicas["a"].term > state.term


def test_a_stopped_replica_on_a_healthy_node_wakes_its_group(resting: Cluster) -> None:
    leader = resting.leader("a")
    resting.nodes[leader].roster.remove("a")
    resting.run(2 * CONFIG.heartbeat_ticks)
    followers = [node for number, node in resting.nodes.items() if number != leader]
    assert all("a" in node.roster.awake for node in followers)


def test_lost_changes_are_sent_again(resting: Cluster) -> None:
    leader = resting.leader("a")
    follower = next(node for node in NODES if node != leader)
    resting.cuts = {(leader, follower)}
    resting.nodes[leader].roster.wake("a")
    resting.run(CONFIG.heartbeat_ticks)
    resting.cuts = set()
    resting.run(SETTLING_TICKS)
    assert resting.is_all_at_rest()


def test_a_replica_that_is_behind_does_not_rest(resting: Cluster) -> None:
    leader = resting.leader("a")
    raft = resting.nodes[leader].replicas["a"]
    follower = next(node for node in NODES if node != leader)
    other = resting.nodes[follower]
    other.roster.wake("a")
    beat = Beat(
        source=leader,
        target=follower,
        session=leader,
        sequence=1 << 20,
        heard_session=follower,
        heard_sequence=1,
        holds=-1,
        since=-1,
        version=50,
        rested=(("a", raft.term, raft.commit + 1),),
        woken=(),
    )
    other.roster.receive(beat)
    assert "a" in other.roster.awake


def test_a_new_peer_is_reachable_after_a_round_trip_until_it_falls_silent() -> None:
    cluster = Cluster([])
    roster = cluster.nodes[1].roster
    roster.meet([2, 3])
    assert roster.reachable == frozenset()
    cluster.run(CONFIG.election_ticks)
    assert roster.reachable == {2, 3}
    cluster.isolate(3)
    cluster.run(CONFIG.election_ticks // 2)
    assert roster.reachable == {2, 3}
    cluster.run(2 * CONFIG.election_ticks)
    assert roster.reachable == {2}


def test_a_peer_that_receives_but_cannot_send_is_not_reachable() -> None:
    cluster = Cluster([])
    cluster.cuts.add((2, 1))
    cluster.nodes[1].roster.meet([2, 3])
    cluster.run(3 * CONFIG.election_ticks)
    assert cluster.nodes[1].roster.reachable == {3}


def test_a_silent_node_is_reported_once(resting: Cluster) -> None:
    lost: list[int] = []
    resting.nodes[1].roster.on_lost = lost.append
    resting.isolate(3)
    resting.run(4 * CONFIG.election_ticks)
    assert lost == [3]
    assert not resting.nodes[1].roster.is_reachable(3)
    assert resting.nodes[1].roster.is_reachable(2)
    resting.cuts.clear()
    resting.run(4)
    assert resting.nodes[1].roster.is_reachable(3)


def test_a_restarted_node_is_reported_however_fast_it_is(resting: Cluster) -> None:
    lost: list[int] = []
    resting.nodes[1].roster.on_lost = lost.append
    resting.nodes[3] = Node(3, 33, GROUPS)
    resting.run(2 * CONFIG.heartbeat_ticks)
    assert lost == [3]


def test_a_suspect_is_unreachable_until_its_next_beat(resting: Cluster) -> None:
    roster = resting.nodes[1].roster
    lost: list[int] = []
    roster.on_lost = lost.append
    roster.suspect(3)
    assert lost == [3]
    assert not roster.is_reachable(3)
    assert roster.awake, "groups that relied on it rest no more"
    resting.run(2 * CONFIG.heartbeat_ticks)
    assert roster.is_reachable(3)


def test_a_member_that_has_not_answered_since_a_rest_ended_keeps_its_group_awake(
    resting: Cluster,
) -> None:
    leader = resting.leader("a")
    mute = next(node for node in NODES if node != leader)
    resting.nodes[leader].roster.wake("a")
    vars(resting.nodes[mute].replicas["a"])["step"] = _ignore
    resting.run(3 * CONFIG.election_ticks)
    assert "a" in resting.nodes[leader].roster.awake


def test_a_group_has_ticks_during_a_transfer_until_it_times_out(
    resting: Cluster,
) -> None:
    leader = resting.leader("a")
    raft = resting.nodes[leader].replicas["a"]
    raft.wake()
    resting.run(CONFIG.election_ticks - 1)  # it is about to rest again
    raft.transfer(next(node for node in NODES if node != leader))
    raft.ready()  # and its message is lost
    resting.run(CONFIG.transfer_ticks + SETTLING_TICKS)
    assert raft.leadership is not None
    assert raft.leadership.transferee is None
    assert resting.is_all_at_rest()


def _ignore(_: Message) -> None:
    """Ignore all messages."""


def test_a_forgotten_node_gets_no_beats_and_its_groups_do_not_rest(resting: Cluster) -> None:
    node = resting.nodes[1]
    node.roster.forget([2, 3])
    assert not node.roster.reachable
    assert not node.roster.resting
    assert not any(node.roster.tick() for _ in range(CONFIG.heartbeat_ticks - 1))
