"""The fields of a Ready, and that each is returned once."""

from kafkaesque.entry import HardState, Voters
from kafkaesque.raft.messages import AppendAccepted, AppendRequest, VoteRequest
from kafkaesque.raft.ports import Ready
from tests.raft.replicas import (
    Replica,
    a_follower,
    a_leader,
    append,
    batch,
    granted,
    of_kind,
    opened,
    vote_request,
)

NOTHING = Ready(
    hard_state=None,
    install=None,
    truncate=None,
    append=(),
    messages=(),
    commit=None,
    is_recovered=False,
    has_lost=False,
)


def test_a_new_replica_has_nothing_to_do() -> None:
    assert Replica().take() == NOTHING


def test_a_ready_is_not_returned_twice() -> None:
    leader = a_leader()
    assert leader.propose(b"a") != NOTHING
    assert leader.take() == NOTHING


def test_the_hard_state_is_present_exactly_when_term_or_vote_changed() -> None:
    replica = Replica(term=1)
    assert replica.step(vote_request(2, 2)).hard_state == HardState(term=2, vote=2)
    assert replica.step(vote_request(2, 2)).hard_state is None
    assert replica.step(vote_request(3, 2)).hard_state is None


def test_a_vote_in_the_current_term_is_in_the_hard_state_too() -> None:
    replica = Replica(term=2)
    assert replica.step(vote_request(3, 2)).hard_state == HardState(term=2, vote=3)


def test_the_hard_state_and_the_messages_that_wait_for_it_come_together() -> None:
    replica = Replica(term=1)
    replica.campaign()
    ready = replica.step(granted(2, 2, is_pre=True))
    assert ready.hard_state is not None
    assert of_kind(ready, VoteRequest)


def test_a_leaders_entries_and_the_appends_that_carry_them_come_together() -> None:
    ready = a_leader().propose(b"a")
    assert ready.append == (batch(1, 1, b"a"),)
    assert len(of_kind(ready, AppendRequest)) == 2


def test_a_followers_acknowledgement_comes_with_stable_at_and_not_with_the_entries() -> None:
    follower = a_follower()
    ready = follower.step(append(2, 1, prev_end=0, entries=(opened(0, 1),)))
    assert (len(ready.append), ready.messages) == (1, ())
    assert of_kind(follower.sync(), AppendAccepted)


def test_a_cut_and_its_replacement_come_together_and_in_this_order() -> None:
    follower = a_follower([opened(0, 1), batch(1, 1), batch(2, 1)], term=2)
    ready = follower.step(append(2, 2, prev_end=1, prev_term=1, entries=(opened(1, 2),)))
    assert list(ready._fields)[2:5] == ["install", "truncate", "append"]
    assert (ready.truncate, ready.append) == (1, (opened(1, 2),))


def test_the_commit_is_present_exactly_when_it_moved() -> None:
    leader = Replica(voters=Voters(voters=(1,)))
    leader.tick(20)
    assert leader.sync().commit == 1
    assert leader.take().commit is None
    leader.propose(b"a")
    assert leader.sync().commit == 2
