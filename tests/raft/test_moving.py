"""What a move requires of the core: replicas added later, lagging learners, returning replicas."""

import pytest

from kafkaesque.entry import Voters
from kafkaesque.raft.leadership import InvalidChange
from kafkaesque.raft.messages import (
    AppendRequest,
    Heartbeat,
    HeartbeatResponse,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.raft import Role
from tests.raft.replicas import (
    THREE,
    Replica,
    a_follower,
    a_leader,
    append,
    batch,
    opened,
    vote_request,
    voters_mark,
)

NOBODY = Voters(voters=())
LEARNING = Voters(voters=(1, 2, 3), learners=(4,))
LEARNING_HERE = Voters(voters=(2, 3, 5), learners=(1,))


def a_newcomer(*, term: int = 0, is_recovering: bool = False) -> Replica:
    return Replica(voters=NOBODY, term=term, is_recovering=is_recovering)


def test_a_replica_added_later_never_asks_for_votes() -> None:
    newcomer = a_newcomer()
    assert newcomer.tick(100) == []
    newcomer.raft.campaign()
    assert newcomer.take().messages == ()
    newcomer.step(TimeoutNow(source=2, target=1, term=1))
    assert newcomer.raft.role is Role.FOLLOWER


def test_a_replica_added_later_learns_the_log_and_the_voters_from_its_leader() -> None:
    newcomer = a_newcomer()
    entries = (opened(0, 1), voters_mark(1, 1, LEARNING_HERE), batch(2, 1))
    newcomer.step(append(2, 1, prev_end=0, entries=entries, commit=2))
    newcomer.sync()
    assert newcomer.raft.voters == LEARNING_HERE
    assert newcomer.raft.commit == 2
    assert newcomer.tick(100) == [], "a learner does not ask for votes either"


def test_a_returning_replica_refuses_its_vote_until_it_has_what_was_committed() -> None:
    newcomer = a_newcomer(term=3, is_recovering=True)
    request = VoteRequest(
        source=2, target=1, term=4, last_term=2, end=9, is_pre=False, is_forced=True
    )
    (answer,) = newcomer.step(request).messages
    assert isinstance(answer, VoteResponse)
    assert not answer.is_granted


def test_a_returning_replica_votes_again_although_the_leader_is_always_ahead() -> None:
    newcomer = a_newcomer(term=3, is_recovering=True)
    entries = (opened(0, 5), batch(1, 5), batch(2, 5))
    newcomer.step(append(2, 5, prev_end=0, entries=entries, commit=2))
    newcomer.step(append(2, 5, prev_end=3, entries=(batch(3, 5),), commit=4))
    newcomer.log.sync(3)
    newcomer.raft.stable_at(3)
    assert newcomer.take().is_recovered, (
        "it has what was committed when it first heard of the commit"
    )


def test_a_replica_without_a_vote_does_not_report_a_commit() -> None:
    newcomer = a_newcomer(term=3, is_recovering=True)
    newcomer.step(append(2, 5, prev_end=0, entries=(opened(0, 4), batch(1, 4)), commit=2))
    newcomer.sync()
    (answer,) = newcomer.step(Heartbeat(source=2, target=1, term=5, commit=2)).messages
    assert isinstance(answer, HeartbeatResponse)
    assert answer.commit == 0


def test_a_leader_that_knows_only_earlier_moves_may_not_change_the_voters() -> None:
    leader = a_leader()
    leader.raft.change_voters(Voters(voters=(1, 2, 3), learners=(4,), move=2))
    leader.take()
    leader.sync()
    leader.accepts(2, leader.raft.end)
    with pytest.raises(InvalidChange, match="later move"):
        leader.raft.change_voters(Voters(voters=(1, 2, 3), learners=(5,), move=1))


def test_a_learner_without_allowance_is_sent_nothing_and_delays_no_commit() -> None:
    leader = a_leader()
    leader.raft.change_voters(LEARNING)
    leader.take()
    leader.sync()
    leader.accepts(2, leader.raft.end)
    assert leader.raft.leadership is not None
    leader.accepts(4, 1)
    leader.raft.leadership.progress[4].allowance = 0
    sent = leader.propose(b"value").messages
    assert {m.target for m in sent if isinstance(m, AppendRequest)} == {2, 3}
    assert leader.answers(4).messages == ()
    leader.sync()
    leader.accepts(2, leader.raft.end)
    assert leader.raft.commit == leader.raft.end


def test_sent_entries_use_up_a_learners_allowance() -> None:
    leader = a_leader()
    leader.raft.change_voters(LEARNING)
    leader.take()
    leader.sync()
    leader.accepts(2, leader.raft.end)
    assert leader.raft.leadership is not None
    progress = leader.raft.leadership.progress[4]
    leader.accepts(4, leader.raft.end)
    progress.allowance = 7
    leader.propose(b"value")
    assert progress.allowance == 2
    leader.propose(b"value")
    assert progress.allowance == -3
    assert leader.answers(4).messages == ()


def test_a_group_whose_log_was_trimmed_to_its_end_can_be_changed() -> None:
    replica = Replica(voters=THREE, term=1)
    assert replica.raft.voters_index == replica.raft.commit == replica.raft.end
    assert not replica.raft.is_changing, "the voters at the start of a log are committed"


def test_a_removed_replica_that_does_not_know_it_disturbs_no_other() -> None:
    follower = a_follower([opened(0, 1)], term=1, leader=2)
    asked = vote_request(9, 2, last_term=1, end=1, is_pre=True)
    assert follower.step(asked).messages == ()
    assert (follower.raft.leader, follower.raft.term) == (2, 1)
    leader = a_leader()
    asked = vote_request(9, leader.raft.term + 1, last_term=1, end=1, is_pre=True)
    assert leader.step(asked).messages == ()
    assert leader.raft.role is Role.LEADER
