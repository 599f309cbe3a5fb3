"""A replica that may have lost what it acknowledged does not vote until it has caught up."""

import pytest

from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.log.journal import Journal
from kafkaesque.log.vote_permission import trust
from kafkaesque.raft.messages import AppendAccepted, VoteResponse
from kafkaesque.sim.inode import CrashPolicy
from kafkaesque.topic_settings import FlushPolicy
from tests.broker.nodes import ALONE, GROUP, THREE, Node, a_batch, append, entry, heartbeat
from tests.broker.test_store import vote_request
from tests.log.logs import TINY


def a_lazy_follower(voters: Voters = THREE, policy: FlushPolicy = FlushPolicy.OS) -> Node:
    """A follower that acknowledged two batches without syncing them."""
    node = Node(voters)
    node.replica.log.configure(TINY, policy=policy, flush_ms=50)
    node.sync()
    node.step(append(1, 0, Entry(0, 1, 1, TermOpened()), commit=1))
    for number in range(2):
        batch = a_batch(b"%d" % number, base=number, term=1)
        node.step(append(1, 1 + number, entry(1 + number, 1, batch), prev_term=1, commit=1))
    matches = [m.match for m in node.sent if isinstance(m, AppendAccepted)]
    assert matches[-1] == 3
    return node


def lose_power(node: Node, policy: CrashPolicy = CrashPolicy.DROP_UNSYNCED) -> None:
    node.disk.crash(policy)
    node.start()


def grants(node: Node, term: int = 9) -> list[bool]:
    node.sent.clear()
    node.step(vote_request(term))
    return [m.is_granted for m in node.sent if isinstance(m, VoteResponse)]


@pytest.mark.parametrize("policy", [FlushPolicy.OS, FlushPolicy.INTERVAL])
def test_a_lazy_replica_that_lost_power_does_not_vote(policy: FlushPolicy) -> None:
    node = a_lazy_follower(policy=policy)
    lose_power(node)
    assert node.replica.log.end < 3, "it may have forgotten"
    assert node.replica.raft.is_recovering
    assert node.replica.raft.term == 2, "a late acknowledgement must not count in its old term"
    assert grants(node) == [False]
    lose_power(node)
    assert grants(node, 10) == [False], "nor after another restart"


def test_a_replica_that_loses_power_again_before_it_has_caught_up_leaves_its_term_again() -> None:
    node = a_lazy_follower()
    lose_power(node)
    node.step(heartbeat(4))
    lose_power(node)
    assert node.replica.raft.term == 5, "what it acknowledged in term 4 must not count"


def test_a_replica_votes_again_when_it_has_all_that_a_later_leader_committed() -> None:
    node = a_lazy_follower()
    lose_power(node)
    end = node.replica.log.end
    values = [entry(1 + n, 1, a_batch(b"%d" % n, base=n, term=1)) for n in range(2)]
    mark = Entry(3, 4, 2, TermOpened())
    node.step(append(2, end, *values[end - 1 :], mark, prev_term=1, commit=3))
    assert node.replica.raft.is_recovering
    node.step(heartbeat(2, 4))
    assert not node.replica.raft.is_recovering
    assert node.values() == [b"0", b"1"]
    node.restart()
    assert grants(node) == [True]


def test_a_killed_process_keeps_its_vote() -> None:
    node = a_lazy_follower()
    node.disk.kill()
    node.start()
    assert not node.replica.raft.is_recovering
    assert grants(node) == [True]


def test_a_clean_stop_before_the_power_loss_keeps_the_vote() -> None:
    node = a_lazy_follower()
    node.restart(after=lambda: node.disk.crash(CrashPolicy.DROP_UNSYNCED))
    assert node.replica.log.end == 3
    assert grants(node) == [True]


def test_a_clean_stop_does_not_cover_the_next_run() -> None:
    node = a_lazy_follower()
    node.restart()
    lose_power(node)
    assert node.replica.raft.is_recovering


def test_with_the_policy_always_nothing_can_be_forgotten() -> None:
    node = a_lazy_follower(policy=FlushPolicy.ALWAYS)
    lose_power(node)
    assert node.replica.log.end == 3
    assert grants(node) == [True]


def test_a_new_policy_does_not_change_what_may_already_be_forgotten() -> None:
    node = a_lazy_follower()
    node.replica.log.configure(TINY, policy=FlushPolicy.ALWAYS, flush_ms=0)
    lose_power(node)  # before the sync that the new policy asks for
    assert node.replica.raft.is_recovering


def test_the_only_voter_keeps_leading() -> None:
    node = Node(ALONE)
    node.replica.log.configure(TINY, policy=FlushPolicy.OS, flush_ms=0)
    node.replica.campaign()
    node.sync()
    node.propose(b"forgotten")
    lose_power(node)
    node.replica.campaign()
    node.sync()
    assert node.replica.is_serving


def test_an_operator_can_trust_a_replica_that_may_have_forgotten() -> None:
    node = a_lazy_follower()
    lose_power(node)
    node.store.close()
    node.disk.kill()
    assert trust(node.disk, TINY, [GROUP, "no such group"]) == [GROUP]
    assert trust(node.disk, TINY, [GROUP]) == []
    journal = Journal.open(node.disk, TINY)
    assert not journal.groups[GROUP].is_recovering
    journal.close()
    node.start()
    assert grants(node) == [True]
