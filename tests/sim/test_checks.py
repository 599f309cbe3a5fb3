"""The checks themselves: each one notices the situation that it exists for.

Real replicas of node 1 are driven by the test, which plays their peers and can make them disagree.
"""

import pytest

from kafkaesque.entry import Entry, TermOpened
from kafkaesque.errors import LogError
from kafkaesque.sim.checks import GroupChecks, Violation, Watch
from kafkaesque.types import Index, NodeId, Term
from tests.broker.nodes import GROUP, Node, a_batch, append, entry, heartbeat

X = entry(1, 1, a_batch(b"x", base=0, term=1))
Y = entry(1, 1, a_batch(b"y", base=0, term=1))
Z = entry(2, 1, a_batch(b"z", base=1, term=1))


def opened(index: Index, term: Term) -> Entry:
    """The mark of a leader whose term begins at this index."""
    return Entry(index, index + 1, term, TermOpened())


def new_checks(damaged: frozenset[NodeId] = frozenset()) -> GroupChecks:
    return GroupChecks(GROUP, damaged)


def watched(checks: GroupChecks) -> tuple[Node, Watch]:
    node = Node()
    return node, Watch(node.replica, checks)


def holding(*entries: Entry) -> Node:
    """An unwatched follower with these entries, all of them committed."""
    node = Node()
    take(node, *entries)
    return node


def take(node: Node, *entries: Entry) -> None:
    """Let a leader of the entries' last term send them and commit them."""
    node.step(append(entries[-1].term, 0, *entries))
    node.step(heartbeat(entries[-1].term, commit=entries[-1].end))
    assert node.replica.raft.commit == entries[-1].end


def test_a_group_that_keeps_its_promises_passes() -> None:
    checks = new_checks()
    for _ in range(2):
        node, watch = watched(checks)
        take(node, opened(0, 1), X)
        watch.after_step()
        checks.holds_everything(node.replica)
    checks.acknowledge(0, [b"x"])
    checks.all_proven()
    assert checks.committed_end == 2


# ── Raft's own ───────────────────────────────────────────────────────────────────────────────


def test_election_safety_two_leaders_of_a_term() -> None:
    checks = new_checks()
    node, watch = watched(checks)
    node.elect()
    checks.leaders[node.replica.raft.term] = 2
    with pytest.raises(Violation, match="election safety: nodes 2 and 1 lead term 1"):
        watch.after_step()


def test_leader_append_only_a_leader_that_cuts_its_log() -> None:
    node, _ = watched(new_checks())
    node.elect()
    node.propose(b"x")
    with pytest.raises(Violation, match="leader append-only"):
        node.replica.log.truncate(node.replica.log.end - 1)


def test_log_matching_two_values_at_one_place() -> None:
    checks = new_checks()
    one, _ = watched(checks)
    one.step(append(1, 0, opened(0, 1), X))
    other, _ = watched(checks)
    with pytest.raises(Violation, match="log matching: two values at 1 of term 1"):
        other.step(append(1, 0, opened(0, 1), Y))


def test_log_matching_two_lengths_at_one_place() -> None:
    checks = new_checks()
    one, _ = watched(checks)
    one.step(append(1, 0, opened(0, 1), X))
    other, _ = watched(checks)
    longer = entry(1, 1, a_batch(b"x", b"x", base=0, term=1))
    with pytest.raises(Violation, match="log matching: two entries at 1 of term 1"):
        other.step(append(1, 0, opened(0, 1), longer))


def test_log_matching_one_entry_after_two_predecessors() -> None:
    checks = new_checks()
    one, _ = watched(checks)
    one.step(append(3, 0, opened(0, 1), opened(1, 3)))
    other, _ = watched(checks)
    with pytest.raises(Violation, match="log matching: two entries at 1 of term 3"):
        other.step(append(3, 0, opened(0, 2), opened(1, 3)))


def test_a_leader_of_an_old_term_need_not_hold_later_commits() -> None:
    checks = new_checks()
    follower, watch = watched(checks)
    take(follower, opened(0, 2))
    watch.after_step()
    late, _ = watched(checks)
    late.elect()
    leadership = late.replica.raft.leadership
    assert leadership is not None
    assert late.replica.raft.term == 1
    checks.led(late.replica, leadership)


def test_leader_completeness_a_leader_with_too_short_a_log() -> None:
    checks = new_checks()
    follower, watch = watched(checks)
    take(follower, opened(0, 1), X)
    watch.after_step()
    leader, watch = watched(checks)
    leader.elect()
    with pytest.raises(Violation, match=r"leader completeness: .* ends at 0, committed is 2"):
        watch.after_step()


def test_leader_completeness_a_leader_with_other_entries() -> None:
    checks = new_checks()
    follower, watch = watched(checks)
    take(follower, opened(0, 1), X)
    watch.after_step()
    leader = Node()
    leader.step(append(2, 0, opened(0, 2), entry(1, 2, a_batch(b"y", base=0, term=2))))
    leader.elect()
    leadership = leader.replica.raft.leadership
    assert leadership is not None
    with pytest.raises(Violation, match="committed entry 0 of term 1 is not in the log"):
        checks.led(leader.replica, leadership)


def test_state_machine_safety_two_entries_committed_at_one_place() -> None:
    checks = new_checks()
    one, watch = watched(checks)
    take(one, opened(0, 1))
    watch.after_step()
    other, watch = watched(checks)
    take(other, opened(0, 2))
    with pytest.raises(Violation, match="state machine safety: two entries committed at 0"):
        watch.after_step()


def test_state_machine_safety_two_values_committed_at_one_place() -> None:
    checks = new_checks()
    checks.committed_to(holding(opened(0, 1), X).replica, 0, 2)
    with pytest.raises(Violation, match="two values at index 1"):
        checks.committed_to(holding(opened(0, 1), Y).replica, 0, 2)


# ── the commit and the log under it ──────────────────────────────────────────────────────────


def test_a_cut_below_the_commit() -> None:
    node, watch = watched(new_checks())
    take(node, opened(0, 1), X)
    watch.after_step()
    with pytest.raises(Violation, match="a cut at 1 is below the commit 2"):
        node.replica.log.truncate(1)


def test_a_cut_above_the_commit_is_allowed() -> None:
    node, watch = watched(new_checks())
    node.step(append(1, 0, opened(0, 1), X))
    watch.after_step()
    node.step(append(2, 0, opened(0, 2)))
    watch.after_step()
    assert node.replica.log.end == 1


def test_a_commit_that_moves_back() -> None:
    node, watch = watched(new_checks())
    take(node, opened(0, 1), X)
    watch.after_step()
    node.replica.raft.commit = 1
    with pytest.raises(Violation, match="the commit went back from 2 to 1"):
        watch.after_step()


def test_a_commit_beyond_the_log() -> None:
    node, watch = watched(new_checks())
    take(node, opened(0, 1), X)
    node.replica.raft.commit = 5
    with pytest.raises(Violation, match="the log ends at 2, before its own commit 5"):
        watch.after_step()


def test_a_high_watermark_that_differs_from_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    node, watch = watched(new_checks())
    take(node, opened(0, 1), X)
    monkeypatch.setattr(node.replica, "_shown_commit", 2)
    monkeypatch.setattr(node.replica, "_shown_offset", 0)
    with pytest.raises(Violation, match="shown at 0, the commit is at 1"):
        watch.after_step()


def test_a_gap_in_the_committed_log() -> None:
    node = holding(opened(0, 1), X)
    with pytest.raises(Violation, match="offsets have a gap: committed up to 0, then 1"):
        new_checks().committed_to(node.replica, 1, 2)


def test_a_committed_entry_that_begins_inside_another_one() -> None:
    checks = new_checks()
    two = entry(1, 1, a_batch(b"x", b"x", base=0, term=1))
    checks.committed_to(holding(opened(0, 1), two).replica, 0, 3)
    shorter = holding(opened(0, 1), X, Z)
    with pytest.raises(Violation, match="entry 2 starts inside another committed one"):
        checks.committed_to(shorter.replica, 2, 3)


def test_a_committed_record_that_is_gone_from_the_disk() -> None:
    checks = new_checks()
    node = holding(opened(0, 1), X)
    checks.committed_to(node.replica, 0, 2)
    node.replica.log.segments.truncate(0)
    with pytest.raises(Violation, match=r"committed entr.* there is no batch here"):
        checks.holds_everything(node.replica)


def test_a_log_that_skips_a_committed_record_without_compaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checks = new_checks()
    node = holding(opened(0, 1), X, Z)
    checks.committed_to(node.replica, 0, 3)
    monkeypatch.setattr(node.replica.log, "entries", lambda *_: [opened(0, 1), Z])
    with pytest.raises(Violation, match="committed entry 1 is missing from the log"):
        checks.holds_everything(node.replica)
    checks.is_compacted = True
    checks.holds_everything(node.replica)


def test_a_batch_stored_at_another_offset_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    node = holding(opened(0, 1), X)
    moved = entry(1, 1, a_batch(b"x", base=7, term=1))
    monkeypatch.setattr(node.replica.log, "entries", lambda *_: [opened(0, 1), moved])
    with pytest.raises(Violation, match="the batch at index 1 says offset 7"):
        new_checks().committed_to(node.replica, 0, 2)


# ── what clients were answered ───────────────────────────────────────────────────────────────


def test_an_acknowledged_batch_that_is_not_committed() -> None:
    checks = new_checks()
    checks.acknowledge(0, [b"x"])
    with pytest.raises(Violation, match="offset 0 was acknowledged but is not committed"):
        checks.prove_acknowledged()


def test_an_acknowledged_batch_that_is_lost_in_the_end_even_where_a_disk_is_damaged() -> None:
    checks = new_checks(damaged=frozenset({1}))
    checks.acknowledge(0, [b"x"])
    checks.prove_acknowledged()  # perhaps only the damaged replica knew of the commit
    with pytest.raises(Violation, match="offset 0 was acknowledged and is lost"):
        checks.all_proven()


def test_a_batch_that_was_acknowledged_with_another_value() -> None:
    checks = new_checks()
    checks.committed_to(holding(opened(0, 1), X).replica, 0, 2)
    checks.acknowledge(0, [b"y"])
    with pytest.raises(Violation, match="offset 0 was acknowledged with another value"):
        checks.prove_acknowledged()


def test_a_record_that_compaction_changed() -> None:
    checks = new_checks()
    checks.committed_to(holding(opened(0, 1), X).replica, 0, 2)
    checks.is_compacted = True
    with pytest.raises(Violation, match="compaction changed a record at index 1"):
        checks.committed_to(holding(opened(0, 1), Y).replica, 0, 2)


def test_a_stopped_replica_is_ignored() -> None:
    node, watch = watched(new_checks())
    take(node, opened(0, 1), X)
    watch.after_step()
    node.replica.raft.commit = 0
    with pytest.raises(Violation, match="the commit went back"):
        watch.after_step()
    node.replica.stop(LogError("the node is down"))
    watch.after_step()


# ── what may be forgotten ────────────────────────────────────────────────────────────────────


def test_unsynced_data_may_be_forgotten_and_replaced() -> None:
    checks = new_checks()
    node, watch = watched(checks)
    take(node, opened(0, 1), X)
    watch.after_step()
    checks.acknowledge(0, [b"x"])
    checks.prove_acknowledged()
    after = holding(opened(0, 1))
    checks.forgot(after.replica, durable=1)
    assert (checks.committed_end, checks.promised) == (1, [])
    other, watch = watched(checks)
    take(other, opened(0, 1), opened(1, 2), entry(2, 2, a_batch(b"y", base=0, term=2)))
    watch.after_step()
    checks.acknowledge(0, [b"y"])
    checks.all_proven()


def test_synced_data_may_not_be_forgotten() -> None:
    checks = new_checks()
    node, watch = watched(checks)
    take(node, opened(0, 1), X)
    watch.after_step()
    with pytest.raises(Violation, match="took synced records: 2 is cut to 1"):
        checks.forgot(holding(opened(0, 1)).replica, durable=2)
