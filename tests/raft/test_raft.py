"""Elections and following, sentence by sentence (sections 5.1 to 5.4 of the paper)."""

import pytest

from kafkaesque.entry import HardState, LogStart, Voters
from kafkaesque.errors import NotLeader
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRejected,
    CoreMessage,
    Heartbeat,
    HeartbeatResponse,
    InstallRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.raft import Role
from tests.raft.replicas import (
    THREE,
    Replica,
    a_candidate,
    a_follower,
    a_leader,
    accepted,
    an_elected,
    append,
    batch,
    granted,
    of_kind,
    opened,
    vote_request,
    voters_mark,
)

A_LOG = [opened(0, 1), batch(1, 1), batch(2, 1)]


def heartbeat(source: int, term: int, commit: int = 0, matched: int = 0) -> Heartbeat:
    return Heartbeat(source=source, target=1, term=term, commit=commit, matched=matched)


# ── 5.1 terms ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("make", [a_candidate, a_leader], ids=["candidate", "leader"])
def test_a_higher_term_turns_any_replica_into_a_follower(make: type[Replica]) -> None:
    replica = make()
    ready = replica.step(heartbeat(2, 9))
    assert replica.raft.role is Role.FOLLOWER
    assert (replica.raft.term, replica.raft.leader) == (9, 2)
    assert ready.hard_state == HardState(term=9, vote=None)


@pytest.mark.parametrize(
    "stale", [heartbeat(2, 1), append(2, 1, prev_end=0)], ids=["heartbeat", "append"]
)
def test_a_deposed_leader_is_answered_with_the_current_term(stale: CoreMessage) -> None:
    replica = Replica(term=5)
    ready = replica.step(stale)
    (answer,) = ready.messages
    assert isinstance(answer, AppendRejected)
    assert (answer.target, answer.term) == (2, 5)
    assert replica.raft.leader is None
    assert ready.append == ()


def test_a_candidate_of_an_old_term_is_refused_with_the_current_term() -> None:
    replica = Replica(term=5)
    (answer,) = replica.step(vote_request(2, 4, end=99, last_term=4)).messages
    assert isinstance(answer, VoteResponse)
    assert (answer.is_granted, answer.term) == (False, 5)


def test_answers_to_an_earlier_term_are_ignored() -> None:
    leader = a_leader()
    end, commit = leader.raft.end, leader.raft.commit
    leader.propose(b"a")
    leader.sync()
    ready = leader.step(accepted(2, leader.raft.term - 1, end + 1))
    assert leader.raft.commit == commit
    assert ready.messages == ()


# ── 5.2 elections ────────────────────────────────────────────────────────────────────────────


def test_a_replica_starts_as_a_follower_and_waits_for_at_least_the_election_timeout() -> None:
    replica = Replica()
    assert replica.raft.role is Role.FOLLOWER
    assert replica.tick(9) == []
    assert replica.campaign() != []


def test_a_pre_vote_changes_no_term_and_saves_nothing() -> None:
    replica = Replica(term=3)
    sent = replica.campaign()
    assert [(m.target, m.term) for m in sent] == [(2, 4), (3, 4)]
    assert all(isinstance(m, VoteRequest) and m.is_pre for m in sent)
    assert (replica.raft.role, replica.raft.term) == (Role.PRE_CANDIDATE, 3)


def test_a_candidate_opens_a_new_term_and_votes_for_itself() -> None:
    replica = Replica(term=3)
    replica.campaign()
    ready = replica.step(granted(2, 4, is_pre=True))
    assert ready.hard_state == HardState(term=4, vote=1)
    assert [m.target for m in of_kind(ready, VoteRequest)] == [2, 3]


def test_pre_votes_for_an_earlier_attempt_do_not_count() -> None:
    replica = Replica(term=3)
    replica.campaign()
    replica.step(granted(2, 9, is_pre=True))
    assert replica.raft.role is Role.PRE_CANDIDATE


def test_a_majority_makes_a_leader_and_opens_its_term_with_a_mark() -> None:
    replica, ready = an_elected(A_LOG)
    assert (replica.raft.leader, replica.raft.term) == (1, 2)
    assert ready.append == (opened(3, 2),)


def test_a_single_voter_elects_itself_and_commits_when_its_disk_has_the_mark() -> None:
    replica = Replica(voters=Voters(voters=(1,)))
    replica.tick(20)
    assert replica.raft.role is Role.LEADER
    assert replica.raft.commit == 0
    assert replica.sync().commit == 1


def test_a_candidate_without_a_majority_tries_again() -> None:
    replica = a_candidate()
    term = replica.raft.term
    sent = replica.campaign()
    assert replica.raft.role is Role.PRE_CANDIDATE
    assert [m.term for m in sent] == [term + 1, term + 1]


def test_a_candidate_refused_by_a_majority_stops_asking() -> None:
    replica = a_candidate()
    replica.step(granted(2, replica.raft.term, yes=False))
    still_asks = replica.raft.role is Role.CANDIDATE
    assert still_asks
    replica.step(granted(3, replica.raft.term, yes=False))
    assert replica.raft.role is Role.FOLLOWER


def test_a_repeated_vote_counts_once() -> None:
    replica = a_candidate(voters=Voters(voters=(1, 2, 3, 4, 5)))
    for _ in range(3):
        replica.step(granted(2, replica.raft.term))
    assert replica.raft.role is Role.CANDIDATE


def test_a_candidate_follows_the_leader_of_its_term() -> None:
    replica = a_candidate()
    replica.step(append(2, replica.raft.term, prev_end=0, entries=(opened(0, 1),)))
    assert (replica.raft.role, replica.raft.leader) == (Role.FOLLOWER, 2)


def test_two_leaders_in_one_term_break_a_promise() -> None:
    leader = a_leader()
    with pytest.raises(AssertionError, match="two leaders"):
        leader.step(heartbeat(2, leader.raft.term))


@pytest.mark.requirement("LOG-4")
def test_a_vote_is_granted_once_per_term_and_is_in_the_hard_state() -> None:
    replica = Replica(term=1)
    ready = replica.step(vote_request(2, 2))
    assert ready.hard_state == HardState(term=2, vote=2)
    assert of_kind(ready, VoteResponse) == [
        VoteResponse(source=1, target=2, term=2, is_pre=False, is_granted=True)
    ]
    (refused,) = replica.step(vote_request(3, 2)).messages
    assert isinstance(refused, VoteResponse)
    assert not refused.is_granted
    (again,) = replica.step(vote_request(2, 2)).messages
    assert isinstance(again, VoteResponse)
    assert again.is_granted


def test_a_vote_granted_before_a_restart_still_binds() -> None:
    replica = Replica(term=2, vote=2)
    (answer,) = replica.step(vote_request(3, 2)).messages
    assert isinstance(answer, VoteResponse)
    assert not answer.is_granted


@pytest.mark.parametrize("is_pre", [False, True], ids=["vote", "pre-vote"])
def test_votes_are_refused_while_the_leader_is_alive(is_pre: bool) -> None:
    replica = a_follower(term=1)
    replica.tick(9)
    ready = replica.step(vote_request(3, 2, end=9, last_term=1, is_pre=is_pre))
    assert (ready.messages, replica.raft.term) == ((), 1)
    replica.tick(1)
    ready = replica.step(vote_request(3, 2, end=9, last_term=1, is_pre=is_pre))
    (answer,) = of_kind(ready, VoteResponse)
    assert isinstance(answer, VoteResponse)
    assert answer.is_granted


def test_an_election_requested_by_the_leader_is_not_refused_because_it_is_alive() -> None:
    replica = a_follower(term=1)
    (answer,) = replica.step(vote_request(3, 2, is_forced=True)).messages
    assert isinstance(answer, VoteResponse)
    assert answer.is_granted


def test_a_heartbeat_resets_the_election_timeout() -> None:
    replica = a_follower(term=1)
    for _ in range(10):
        replica.tick(9)
        replica.step(heartbeat(2, 1))
    assert replica.raft.role is Role.FOLLOWER


# ── 5.3 following ────────────────────────────────────────────────────────────────────────────


def test_new_entries_are_appended_and_acknowledged_only_when_durable() -> None:
    replica = a_follower()
    ready = replica.step(append(2, 1, prev_end=0, entries=tuple(A_LOG)))
    assert ready.append == tuple(A_LOG)
    assert ready.messages == ()
    (answer,) = replica.sync().messages
    assert answer == AppendAccepted(source=1, target=2, term=1, match=3, commit=0)


def test_entries_already_in_the_log_are_acknowledged_at_once_and_nothing_is_cut() -> None:
    replica = a_follower(A_LOG)
    ready = replica.step(append(2, 1, prev_end=0, entries=(A_LOG[0],)))
    assert (ready.append, ready.truncate) == ((), None)
    assert of_kind(ready, AppendAccepted)
    assert replica.raft.end == 3


def test_an_acknowledgement_covers_only_what_matches_the_leader() -> None:
    replica = a_follower(A_LOG)
    ready = replica.step(append(2, 1, prev_end=0, entries=(A_LOG[0],)))
    (answer,) = ready.messages
    assert isinstance(answer, AppendAccepted)
    assert answer.match == 1


def test_a_gap_is_rejected_with_the_end_of_the_log_as_a_hint() -> None:
    replica = a_follower(A_LOG)
    (answer,) = replica.step(append(2, 1, prev_end=9, prev_term=1)).messages
    assert isinstance(answer, AppendRejected)
    assert (answer.prev_end, answer.hint) == (9, 3)


def test_a_conflict_is_rejected_with_the_start_of_its_term_as_a_hint() -> None:
    replica = a_follower(
        [opened(0, 1), batch(1, 1), opened(2, 2), batch(3, 2), batch(4, 2)], term=3
    )
    (answer,) = replica.step(append(2, 3, prev_end=5, prev_term=1)).messages
    assert isinstance(answer, AppendRejected)
    assert (answer.prev_end, answer.hint) == (5, 2)


def test_conflicting_entries_and_all_that_follow_are_cut_and_replaced() -> None:
    replica = a_follower(A_LOG, term=2)
    new = opened(1, 2)
    ready = replica.step(append(2, 2, prev_end=1, prev_term=1, entries=(new,)))
    assert (ready.truncate, ready.append) == (1, (new,))
    assert replica.log.held == [A_LOG[0], new]


def test_the_commit_follows_the_leader_but_not_beyond_what_matched() -> None:
    replica = a_follower(A_LOG)
    ready = replica.step(append(2, 1, prev_end=0, entries=(A_LOG[0],), commit=3))
    assert ready.commit == 1
    ready = replica.step(heartbeat(2, 1, commit=3))
    assert (ready.commit, replica.raft.commit) == (None, 1)


def test_a_heartbeat_is_answered_with_the_known_commit() -> None:
    replica = a_follower()
    ready = replica.step(heartbeat(2, 1, commit=5))
    assert ready.messages == (HeartbeatResponse(source=1, target=2, term=1, commit=0),)


def test_committed_entries_are_never_compared_again() -> None:
    replica = a_follower(A_LOG)
    replica.step(append(2, 1, prev_end=3, prev_term=1, commit=3))
    ready = replica.step(append(2, 1, prev_end=1, prev_term=1, entries=(A_LOG[1],)))
    assert (ready.truncate, ready.append) == (None, ())
    assert of_kind(ready, AppendAccepted)


def test_a_new_leader_starts_with_the_commit_as_the_only_agreement() -> None:
    replica = a_follower(A_LOG)
    replica.step(append(2, 1, prev_end=3, prev_term=1, commit=2))
    replica.step(heartbeat(3, 2, commit=3))
    assert replica.raft.commit == 2


# ── 5.4 safety ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("last_term", "end", "is_granted"),
    [(1, 3, True), (1, 4, True), (2, 1, True), (1, 2, False), (0, 9, False)],
    ids=["equal", "longer", "newer-term", "shorter", "older-term"],
)
@pytest.mark.parametrize("is_pre", [False, True], ids=["vote", "pre-vote"])
def test_only_a_candidate_with_an_up_to_date_log_gets_the_vote(
    last_term: int, end: int, is_granted: bool, is_pre: bool
) -> None:
    replica = Replica(A_LOG, term=1)
    request = vote_request(2, 2, last_term=last_term, end=end, is_pre=is_pre)
    (answer,) = replica.step(request).messages
    assert isinstance(answer, VoteResponse)
    assert answer.is_granted is is_granted


# ── starting over, changes of voters, recovery ───────────────────────────────────────────────


def install(start: LogStart) -> InstallRequest:
    return InstallRequest(source=2, target=1, term=1, start=start)


def test_an_install_replaces_the_log_and_its_voters_and_commits_its_start() -> None:
    replica = a_follower()
    start = LogStart(offset=6, marks_before=2, prev_term=1, voters=Voters(voters=(1, 2, 4)))
    ready = replica.step(install(start))
    assert (ready.install, ready.commit, ready.messages) == (start, 8, ())
    assert replica.raft.voters == start.voters
    (answer,) = replica.sync().messages
    assert isinstance(answer, AppendAccepted)
    assert answer.match == 8


def test_an_install_within_the_log_discards_nothing() -> None:
    replica = a_follower(A_LOG)
    start = LogStart(offset=1, marks_before=1, prev_term=1, voters=THREE)
    ready = replica.step(install(start))
    assert (ready.install, ready.commit) == (None, 2)
    assert of_kind(ready, AppendAccepted)


def test_a_change_of_voters_applies_from_its_append_until_it_is_cut() -> None:
    replica = a_follower([opened(0, 1)])
    four = Voters(voters=(1, 2, 3, 4))
    replica.step(append(2, 1, prev_end=1, prev_term=1, entries=(voters_mark(1, 1, four),)))
    assert replica.raft.voters == four
    replica.step(append(3, 2, prev_end=1, prev_term=1, entries=(opened(1, 2),)))
    assert replica.raft.voters == THREE


def test_a_replica_that_is_not_a_voter_never_campaigns() -> None:
    replica = Replica(voters=Voters(voters=(2, 3), learners=(1,)))
    assert replica.campaign() == []


def test_timeout_now_starts_an_election_at_once_and_without_a_pre_vote() -> None:
    replica = a_follower(A_LOG)
    ready = replica.step(TimeoutNow(source=2, target=1, term=1))
    assert ready.hard_state == HardState(term=2, vote=1)
    requests = of_kind(ready, VoteRequest)
    assert all(isinstance(m, VoteRequest) and m.is_forced and not m.is_pre for m in requests)
    assert len(requests) == 2


def test_requests_to_a_follower_are_answered_with_the_leader() -> None:
    replica = a_follower()
    for request in (
        lambda: replica.raft.propose(b"a", 1),
        lambda: replica.raft.change_voters(THREE),
        lambda: replica.raft.transfer(2),
    ):
        with pytest.raises(NotLeader) as raised:
            request()
        assert raised.value.leader == 2


@pytest.mark.requirement("LOG-4")
def test_a_recovering_replica_neither_votes_nor_campaigns() -> None:
    replica = Replica(term=1, is_recovering=True)
    replica.campaign()
    for source in (2, 3):
        granted = VoteResponse(source=source, target=1, term=2, is_pre=True, is_granted=True)
        assert of_kind(replica.step(granted), VoteRequest) == []
    assert (replica.raft.role, replica.raft.term) == (Role.FOLLOWER, 1)
    term = replica.raft.term + 1
    for is_pre in (True, False):
        request = vote_request(2, term, end=9, last_term=1, is_pre=is_pre, is_forced=True)
        (answer,) = of_kind(replica.step(request), VoteResponse)
        assert isinstance(answer, VoteResponse)
        assert not answer.is_granted


def test_a_recovering_replica_without_a_leader_wakes_a_resting_one() -> None:
    replica = Replica(term=9, is_recovering=True)
    (call, _) = replica.campaign()
    assert isinstance(call, VoteRequest)
    leader = a_leader()
    leader.accepts(2, leader.raft.end)
    leader.raft.rest()
    leader.step(vote_request(2, call.term, end=call.end, last_term=0, is_pre=True))
    assert not leader.raft.is_resting


def test_leadership_is_not_transferred_to_a_recovering_replica() -> None:
    replica = Replica(term=1, is_recovering=True)
    replica.step(TimeoutNow(source=2, target=1, term=9))
    assert replica.raft.role is Role.FOLLOWER


def test_recovery_ends_when_a_commit_of_the_leaders_own_term_is_durable_here() -> None:
    replica = Replica(term=1, is_recovering=True)
    entries = (*A_LOG, opened(3, 9))
    assert not replica.step(append(2, 9, prev_end=0, entries=entries, commit=3)).is_recovered
    assert not replica.sync().is_recovered, "commit 3 is of an older term than the leader's"
    assert replica.step(heartbeat(2, 9, commit=4)).is_recovered
    assert not replica.raft.is_recovering


def test_a_replica_that_lacks_acknowledged_entries_leaves_the_term_and_loses_its_vote() -> None:
    replica = Replica(A_LOG, term=2)
    ready = replica.step(heartbeat(2, 2, commit=4, matched=4))
    assert ready.has_lost
    assert ready.hard_state == HardState(term=3, vote=None)
    (answer,) = ready.messages
    assert isinstance(answer, AppendRejected)
    assert (answer.target, answer.term) == (2, 3), "so that the leader counts nothing of it"
    assert replica.raft.is_recovering
    assert replica.raft.commit == 0
    assert not replica.step(heartbeat(2, 2, commit=4, matched=4)).has_lost, "of an old term"
    (refused,) = replica.step(vote_request(3, 9, end=9, last_term=2)).messages
    assert isinstance(refused, VoteResponse)
    assert not refused.is_granted


def test_a_replica_that_has_all_acknowledged_entries_carries_on() -> None:
    replica = Replica(A_LOG, term=2)
    for matched in (3, 0, 2):
        assert not replica.step(heartbeat(2, 2, matched=matched)).has_lost
    assert not replica.raft.is_recovering


def test_recovery_waits_for_the_disk() -> None:
    replica = Replica(term=1, is_recovering=True)
    entries = (*A_LOG, opened(3, 9))
    assert not replica.step(append(2, 9, prev_end=0, entries=entries, commit=4)).is_recovered
    assert replica.sync().is_recovered
