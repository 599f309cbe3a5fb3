"""What a leader does: replication, commitment, changes of voters, transfers."""

import pytest

from kafkaesque.config import RaftConfig
from kafkaesque.entry import Entry, Voters
from kafkaesque.errors import ChangeInProgress, LeaderNotReady
from kafkaesque.raft.leadership import InvalidChange
from kafkaesque.raft.messages import (
    AppendRejected,
    AppendRequest,
    Heartbeat,
    InstallRequest,
    Message,
    TimeoutNow,
)
from kafkaesque.raft.ports import Ready
from kafkaesque.raft.raft import Role
from tests.raft.replicas import (
    THREE,
    Replica,
    a_leader,
    accepted,
    an_elected,
    batch,
    of_kind,
    opened,
)

FOUR = Voters(voters=(1, 2, 3, 4))


def rejected(source: int, term: int, prev_end: int, hint: int) -> AppendRejected:
    return AppendRejected(source=source, target=1, term=term, prev_end=prev_end, hint=hint)


def appends(messages: Ready | list[Message], target: int) -> list[AppendRequest]:
    sent = messages.messages if isinstance(messages, Ready) else messages
    return [m for m in sent if isinstance(m, AppendRequest) and m.target == target]


# ── heartbeats and the quorum ────────────────────────────────────────────────────────────────


def test_heartbeats_go_to_all_followers_every_heartbeat_ticks() -> None:
    leader = a_leader()
    assert leader.tick(1) == []
    leader.propose(b"a")
    leader.accepts(2, 2)
    counted = {2: 2, 3: 1}
    assert leader.tick(1) == [
        Heartbeat(source=1, target=peer, term=1, commit=1, matched=matched)
        for peer, matched in counted.items()
    ]


def test_a_leader_without_answers_steps_down_within_two_timeouts() -> None:
    leader = a_leader()
    leader.tick(20)
    assert leader.raft.role is Role.FOLLOWER
    assert leader.raft.leader is None
    assert leader.raft.term == 1


def test_a_leader_with_answers_from_a_majority_stays() -> None:
    leader = a_leader()
    for _ in range(10):
        leader.tick(5)
        leader.answers(3)
    assert leader.raft.role is Role.LEADER


def test_answers_of_learners_do_not_keep_a_leader_in_office() -> None:
    leader = a_leader(voters=Voters(voters=(1, 2, 3), learners=(4, 5)))
    for _ in range(4):
        leader.tick(5)
        leader.answers(4)
        leader.answers(5)
    assert leader.raft.role is Role.FOLLOWER


# ── replication ──────────────────────────────────────────────────────────────────────────────


def test_a_batch_goes_to_the_log_and_to_the_followers_at_once() -> None:
    leader = a_leader()
    ready = leader.propose(b"a", 3)
    new = batch(1, 1, b"a", 3)
    assert ready.append == (new,)
    assert [m.entries for peer in (2, 3) for m in appends(ready, peer)] == [(new,), (new,)]
    assert ready.commit is None


def test_several_proposals_before_one_ready_go_out_together() -> None:
    leader = a_leader()
    assert [leader.raft.propose(b"a", 2), leader.raft.propose(b"b", 1)] == [1, 3]
    ready = leader.take()
    assert [entry.first for entry in ready.append] == [1, 3]
    (request,) = appends(ready, 2)
    assert request.entries == ready.append


def test_appends_are_pipelined_up_to_the_window() -> None:
    leader = a_leader(config=RaftConfig(inflight_max=2))
    sent = [len(appends(leader.propose(b"x"), 2)) for _ in range(4)]
    assert sent == [1, 1, 0, 0]
    (request,) = appends(leader.accepts(2, 2), 2)
    assert [entry.first for entry in request.entries] == [3, 4]


def test_one_append_carries_about_append_bytes_max() -> None:
    leader = a_leader(config=RaftConfig(append_bytes_max=100, inflight_max=1))
    for _ in range(6):
        leader.propose(b"x" * 40)
    (request,) = appends(leader.accepts(2, 2), 2)
    assert len(request.entries) == 3, "the limit is reached by the third batch of 40 bytes"


def test_a_batch_larger_than_the_limit_is_still_sent_alone() -> None:
    leader = a_leader(config=RaftConfig(append_bytes_max=10))
    (request,) = appends(leader.propose(b"x" * 500), 2)
    assert len(request.entries) == 1


def test_an_unprobed_follower_gets_one_append_until_it_answers() -> None:
    leader, _ = an_elected()
    assert leader.raft.leadership is not None
    leader.sync()
    leader.accepts(2, 1)
    ready = leader.propose(b"a")
    assert len(appends(ready, 2)) == 1
    assert appends(ready, 3) == [], "its probe has not been answered"


def test_a_heartbeat_answer_resends_what_may_have_been_lost() -> None:
    leader, _ = an_elected()
    (request,) = appends(leader.answers(3), 3)
    assert request.entries == (opened(0, 1),)


def test_a_heartbeat_answer_resends_nothing_that_is_still_queued() -> None:
    leader, _ = an_elected()
    waiting = {3}
    leader.raft.is_sending = waiting.__contains__
    assert appends(leader.answers(3), 3) == []
    assert len(appends(leader.answers(2), 2)) == 1
    waiting.clear()
    assert len(appends(leader.answers(3), 3)) == 1


def test_a_rejection_is_followed_by_a_probe_at_the_hint() -> None:
    log = [opened(0, 1), *(batch(index, 1) for index in range(1, 9))]
    leader, _ = an_elected(log)
    (request,) = appends(leader.step(rejected(2, 2, 9, 4)), 2)
    assert (request.prev_end, request.prev_term) == (4, 1)


def test_the_leader_probes_only_at_boundaries_of_its_entries() -> None:
    log = [opened(0, 1), batch(1, 1, count=4), batch(5, 1, count=4)]
    leader, _ = an_elected(log)
    (request,) = appends(leader.step(rejected(2, 2, 9, 7)), 2)
    assert request.prev_end == 5


def test_a_rejection_of_an_older_probe_is_ignored() -> None:
    log = [opened(0, 1), *(batch(index, 1) for index in range(1, 9))]
    leader, _ = an_elected(log)
    leader.step(rejected(2, 2, 9, 4))
    assert leader.step(rejected(2, 2, 9, 4)).messages == ()
    leader.accepts(3, 10)
    assert leader.step(rejected(3, 2, 9, 2)).messages == (), "it has matched beyond that"


def test_a_follower_with_a_diverging_log_is_matched_in_few_round_trips() -> None:
    # Logs of 60 entries that diverge at 20: a trip for each of the follower's terms, not each entry
    common = [opened(0, 1), *(batch(index, 1) for index in range(1, 20))]
    mine = [*common, opened(20, 5), *(batch(index, 5) for index in range(21, 60))]
    theirs = [*common, opened(20, 2), *(batch(index, 2) for index in range(21, 60))]
    leader, ready = an_elected(mine)
    follower = Replica(theirs, node=2, term=5)
    trips = 0
    messages = [m for m in ready.messages if m.target == 2]
    while messages and trips < 10:
        trips += 1
        answers = [
            a for m in messages for a in (*follower.step(m).messages, *follower.sync().messages)
        ]
        messages = [m for a in answers for m in leader.step(a).messages if m.target == 2]
    assert follower.log.held == leader.log.held
    assert trips <= 3


def test_a_follower_that_needs_trimmed_entries_gets_an_install() -> None:
    log = [opened(0, 1), *(batch(index, 1) for index in range(1, 9))]
    leader = a_leader(log)
    leader.log.trim(6)
    leader.raft.change_voters(FOUR)
    leader.take()
    ready = leader.step(rejected(4, 2, 9, 0))
    assert of_kind(ready, InstallRequest) == [
        InstallRequest(source=1, target=4, term=2, start=leader.log.start)
    ]


def test_at_a_hole_the_leader_first_probes_behind_it_and_crosses_it_only_when_refused() -> None:
    log = [opened(0, 1), *(batch(index, 1) for index in range(1, 9))]
    leader = a_leader(log)
    leader.log.compact(4, 7)
    leader.raft.change_voters(FOUR)
    leader.take()
    (probe,) = appends(leader.step(rejected(4, 2, 9, 4)), 4)
    assert (probe.prev_end, probe.entries[0].first) == (7, 7)
    (crossing,) = appends(leader.step(rejected(4, 2, 7, 4)), 4)
    assert (crossing.prev_end, crossing.entries[0].first) == (4, 7)


# ── commitment ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("LOG-4")
def test_a_batch_is_committed_when_a_majority_has_it_durably() -> None:
    leader = a_leader()
    leader.propose(b"a")
    assert leader.accepts(2, 2).commit is None, "the leader's own disk has not answered"
    assert leader.sync().commit == 2


def heard_of(ready: Ready) -> list[tuple[int, int]]:
    return [(m.target, m.commit) for m in ready.messages if isinstance(m, Heartbeat)]


def test_followers_learn_of_a_commit_with_the_next_heartbeat() -> None:
    leader = a_leader()
    leader.propose(b"a")
    leader.sync()
    assert heard_of(leader.accepts(2, 2)) == []


def test_a_group_that_announces_commits_notifies_each_follower_once_and_when_it_has_all() -> None:
    leader = a_leader()
    leader.raft.announces_commits = True
    leader.propose(b"a")
    leader.sync()
    assert heard_of(leader.accepts(2, 2)) == [(2, 2)], "the other does not have it yet"
    assert heard_of(leader.accepts(2, 2)) == []
    assert heard_of(leader.accepts(3, 2)) == [(3, 2)]


def test_a_commit_by_the_leaders_own_disk_is_announced_as_well() -> None:
    leader = a_leader()
    leader.raft.announces_commits = True
    leader.propose(b"a")
    leader.accepts(2, 2)
    leader.accepts(3, 2)
    leader.propose(b"b")
    leader.accepts(2, 3)
    assert heard_of(leader.sync()) == [(2, 3)]


def test_the_leaders_own_disk_counts_like_any_other() -> None:
    leader = a_leader()
    leader.propose(b"a")
    leader.accepts(2, 2)
    assert leader.accepts(3, 2).commit == 2, "two followers are a majority without it"


def test_entries_of_an_old_term_are_committed_only_together_with_one_of_the_new_term() -> None:
    leader, _ = an_elected([opened(0, 1), batch(1, 1)])
    leader.sync()
    assert leader.accepts(2, 2).commit is None
    assert leader.accepts(2, 3).commit == 3


def test_learners_do_not_count_for_a_commit() -> None:
    leader = a_leader(voters=Voters(voters=(1, 2, 3), learners=(4, 5)))
    leader.propose(b"a")
    leader.sync()
    leader.accepts(4, 2)
    assert leader.accepts(5, 2).commit is None
    assert leader.accepts(3, 2).commit == 2


def test_answers_of_unknown_nodes_change_nothing() -> None:
    leader = a_leader()
    leader.propose(b"a")
    leader.sync()
    assert leader.step(accepted(9, 1, 2)).commit is None


def test_a_leader_is_idle_when_all_replicas_have_everything_and_know_the_commit() -> None:
    leader = a_leader()
    leadership = leader.raft.leadership
    assert leadership is not None
    assert not leadership.is_idle
    leader.accepts(2, 1, commit=1)
    leader.accepts(3, 1, commit=1)
    assert leadership.is_idle
    leader.propose(b"a")
    assert not leadership.is_idle


# ── what a leader refuses ────────────────────────────────────────────────────────────────────


def test_a_leader_serves_only_after_an_entry_of_its_own_term_is_committed() -> None:
    leader, _ = an_elected([opened(0, 1), batch(1, 1)])
    with pytest.raises(LeaderNotReady):
        leader.raft.propose(b"a", 1)
    with pytest.raises(LeaderNotReady):
        leader.raft.change_voters(FOUR)
    assert leader.take().append == ()


def test_only_one_change_of_voters_runs_at_a_time() -> None:
    leader = a_leader()
    leader.raft.change_voters(FOUR)
    with pytest.raises(ChangeInProgress):
        leader.raft.change_voters(THREE)
    leader.take()
    leader.sync()
    leader.accepts(2, 2)
    leader.accepts(3, 2)
    leader.raft.change_voters(THREE)


@pytest.mark.parametrize(
    "voters",
    [Voters(voters=(1, 2, 4)), Voters(voters=(1,)), Voters(voters=(1, 2, 3, 4, 5))],
    ids=["exchange", "two-go", "two-come"],
)
def test_only_one_voter_is_added_or_removed_at_a_time(voters: Voters) -> None:
    leader = a_leader()
    with pytest.raises(InvalidChange):
        leader.raft.change_voters(voters)
    assert leader.raft.voters == THREE


def test_a_group_is_never_left_without_voters() -> None:
    leader = Replica(voters=Voters(voters=(1,)))
    leader.tick(20)
    leader.sync()
    with pytest.raises(InvalidChange):
        leader.raft.change_voters(Voters(voters=()))


@pytest.mark.parametrize("target", [1, 4, 9], ids=["itself", "learner", "stranger"])
def test_leadership_is_transferred_only_to_another_voter(target: int) -> None:
    leader = a_leader(voters=Voters(voters=(1, 2, 3), learners=(4,)))
    with pytest.raises(InvalidChange):
        leader.raft.transfer(target)


# ── changes of voters ────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("REP-1")
def test_a_new_voter_counts_from_the_moment_its_change_is_appended() -> None:
    leader = a_leader()
    leader.raft.change_voters(FOUR)
    assert len(appends(leader.take(), 4)) == 1
    leader.sync()
    assert leader.accepts(2, 2).commit is None, "two of four are no majority"
    assert leader.accepts(3, 2).commit == 2


def test_a_removed_voter_is_sent_nothing_more_and_does_not_count() -> None:
    leader = a_leader()
    leader.raft.change_voters(Voters(voters=(1, 2)))
    assert appends(leader.take(), 3) == []
    leader.sync()
    assert leader.accepts(3, 2).commit is None
    assert leader.accepts(2, 2).commit == 2


def test_a_removed_leader_steps_down_when_its_removal_is_committed() -> None:
    leader = a_leader()
    leader.raft.change_voters(Voters(voters=(2, 3)))
    leader.take()
    leader.sync()
    leader.accepts(2, 2)
    still_leads = leader.raft.role is Role.LEADER
    assert still_leads, "it does not count itself any more"
    assert leader.accepts(3, 2).commit == 2
    assert leader.raft.role is Role.FOLLOWER
    assert leader.campaign() == []


# ── transfer of leadership ───────────────────────────────────────────────────────────────────


@pytest.mark.requirement("REP-4")
def test_a_target_that_has_everything_is_asked_to_campaign_at_once() -> None:
    leader = a_leader()
    leader.raft.transfer(3)
    assert leader.take().messages == (TimeoutNow(source=1, target=3, term=1),)


def test_a_target_that_lags_is_asked_when_it_has_caught_up() -> None:
    leader = a_leader()
    leader.propose(b"a")
    leader.raft.transfer(3)
    assert leader.take().messages == ()
    assert of_kind(leader.accepts(3, 2), TimeoutNow)


def test_during_a_transfer_proposals_are_refused_until_it_times_out() -> None:
    leader = a_leader(config=RaftConfig(transfer_ticks=4))
    leader.raft.transfer(3)
    for refused in (
        lambda: leader.raft.propose(b"a", 1),
        lambda: leader.raft.change_voters(FOUR),
        lambda: leader.raft.transfer(2),
    ):
        with pytest.raises(ChangeInProgress):
            refused()
    leader.tick(3)
    with pytest.raises(ChangeInProgress):
        leader.raft.propose(b"a", 1)
    leader.tick(1)
    assert leader.propose(b"a").append == (Entry(1, 2, 1, b"a"),)
