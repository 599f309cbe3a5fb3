"""A replica carries out the core's decisions on a real log."""

import pytest

from kafkaesque.broker.replication.replica import HELD_MESSAGES_MAX
from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.errors import NotLeader
from kafkaesque.log.errors import DiskFailed
from kafkaesque.raft.messages import (
    AppendAccepted,
    AppendRequest,
    Heartbeat,
    Message,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from kafkaesque.raft.raft import Role
from kafkaesque.record.view import BatchView
from kafkaesque.sim.inode import CrashPolicy
from tests.broker.nodes import (
    ALONE,
    GROUP,
    THREE,
    Node,
    a_batch,
    append,
    entry,
    heartbeat,
)

OPENED = Entry(0, 1, 1, TermOpened())


def vote_request(term: int, source: int = 2) -> VoteRequest:
    return VoteRequest(
        source=source,
        target=1,
        term=term,
        last_term=0,
        end=0,
        is_pre=False,
        is_forced=False,
    )


def kinds(messages: list[Message]) -> list[type[Message]]:
    return [type(message) for message in messages]


def a_leader_alone() -> Node:
    node = Node(ALONE)
    node.tick(20)
    return node


def a_follower() -> Node:
    """A node that holds the mark of term 1 and one batch of two records, both committed."""
    node = Node()
    batch = a_batch(b"a", b"b", term=1)
    node.step(append(1, 0, OPENED, entry(1, 1, batch), commit=3))
    node.sent.clear()
    return node


@pytest.mark.requirement("REP-1")
def test_proposals_get_dense_offsets_whatever_marks_are_between_them() -> None:
    node = a_leader_alone()
    first, _ = node.propose(b"a", b"b")
    node.replica.change_voters(Voters(voters=(1,), learners=(7,)), lambda _: None)
    node.after_event()
    second, _ = node.propose(b"c")
    assert (first, second) == (0, 2)
    assert node.values() == [b"a", b"b", b"c"]
    assert node.replica.high_watermark == 3


def test_a_proposal_is_stamped_with_its_offset_and_the_leaders_term() -> None:
    node = a_leader_alone()
    node.propose(b"a")
    batch = a_batch(b"b", b"c")
    node.replica.propose(batch, lambda _: None)
    view = BatchView(batch)
    assert (view.base_offset, view.term) == (1, 1)
    view.check_crc()


@pytest.mark.requirement("LOG-4")
def test_a_producer_is_answered_only_when_the_disk_has_the_batch() -> None:
    node = Node(ALONE, holds_syncs=True)
    node.sync()
    node.tick(20)
    node.sync()
    _, outcomes = node.propose(b"a")
    assert outcomes == []
    assert node.replica.high_watermark == 0
    node.sync()
    assert outcomes == [Outcome.COMMITTED]
    assert node.replica.high_watermark == 1


@pytest.mark.requirement("REP-2")
def test_a_batch_is_committed_by_two_of_three() -> None:
    node = Node()
    node.elect()
    _, outcomes = node.propose(b"a")
    assert outcomes == []
    node.accepts(3, 2)
    assert outcomes == [Outcome.COMMITTED]


@pytest.mark.requirement("LOG-4")
def test_messages_wait_until_the_hard_state_is_durable() -> None:
    node = Node(holds_syncs=True)
    node.sync()
    node.step(vote_request(4))
    assert node.sent == []
    node.sync()
    assert node.sent == [VoteResponse(source=1, target=2, term=4, is_pre=False, is_granted=True)]


def test_later_messages_queue_behind_waiting_ones() -> None:
    node = Node(holds_syncs=True)
    node.sync()
    node.step(vote_request(4))
    node.step(vote_request(4, source=3))
    node.sync()
    assert [message.target for message in node.sent] == [2, 3]


def test_messages_that_pile_up_behind_a_slow_disk_are_dropped_oldest_first() -> None:
    node = Node(holds_syncs=True)
    node.sync()
    for _ in range(HELD_MESSAGES_MAX + 1):
        node.step(vote_request(4))
    node.sync()
    assert len(node.sent) == HELD_MESSAGES_MAX


@pytest.mark.requirement("LOG-4")
def test_a_granted_vote_survives_a_power_loss() -> None:
    node = Node()
    node.step(vote_request(4))
    assert node.sent
    node.disk.crash(CrashPolicy.TORN)
    node.start()
    assert (node.replica.raft.term, node.replica.raft.vote) == (4, 2)


def test_a_follower_acknowledges_when_its_disk_has_the_entries() -> None:
    node = Node(holds_syncs=True)
    node.sync()
    node.step(heartbeat(1))
    node.sync()
    node.sent.clear()
    node.step(append(1, 0, OPENED, entry(1, 1, a_batch(b"a", term=1))))
    assert node.sent == []
    node.sync()
    assert node.sent[-1] == AppendAccepted(source=1, target=2, term=1, match=2, commit=0)


@pytest.mark.requirement("LOG-4")
def test_what_was_acknowledged_survives_a_power_loss() -> None:
    node = a_follower()
    node.disk.crash(CrashPolicy.TORN)
    node.start()
    assert node.values() == [b"a", b"b"]


def test_when_leadership_is_lost_the_outcome_is_unknown_and_not_failed() -> None:
    node = Node()
    node.elect()
    _, outcomes = node.propose(b"a")
    node.step(heartbeat(9))
    assert outcomes == [Outcome.UNKNOWN]


def test_a_batch_that_the_next_leader_commits_stays_unknown_to_the_old_one() -> None:
    node = Node()
    node.elect()
    _, outcomes = node.propose(b"a")
    node.step(append(9, 2, Entry(2, 3, 9, TermOpened()), prev_term=1, commit=3))
    assert node.replica.high_watermark == 1
    assert outcomes == [Outcome.UNKNOWN]


@pytest.mark.requirement("REP-2")
def test_a_follower_replaces_entries_that_its_leader_does_not_have() -> None:
    node = Node()
    node.elect()
    node.propose(b"lost")
    kept = a_batch(b"kept", term=2)
    node.step(append(2, 1, Entry(1, 2, 2, TermOpened()), entry(2, 2, kept), prev_term=1, commit=3))
    assert node.values() == [b"kept"]
    assert node.replica.high_watermark == 1


def damaged_batches() -> dict[str, Entry]:
    good = a_batch(b"a", b"b", term=1)
    flipped = bytearray(good)
    flipped[-1] ^= 1
    return {
        "checksum": entry(1, 1, flipped),
        "term": entry(1, 1, a_batch(b"a", b"b", term=7)),
        "length": Entry(1, 3, 1, bytes(good) + b"more"),
        "count": Entry(1, 9, 1, bytes(good)),
        "torn": Entry(1, 3, 1, bytes(good)[:-3]),
    }


@pytest.mark.parametrize("what", list(damaged_batches()))
def test_a_damaged_batch_from_a_peer_is_refused_and_not_acknowledged(what: str) -> None:
    node = Node()
    node.step(heartbeat(1))
    node.sent.clear()
    node.step(append(1, 0, OPENED, damaged_batches()[what]))
    assert (node.sent, node.values(), node.replica.raft.end) == ([], [], 0)


@pytest.mark.requirement("LOG-4")
@pytest.mark.complains(
    "damage_found partition=orders offset=0 reason=*",
)
def test_a_leader_that_finds_its_own_data_damaged_sends_none_of_it_and_steps_down() -> None:
    node = Node()
    node.elect()
    _, outcomes = node.propose(b"a")
    node.disk.flip_bit(node.segment(0), 65, 3)
    node.sent.clear()
    node.accepts(3, 1)
    assert node.replica.raft.role is Role.FOLLOWER
    assert [one.offset for one in node.replica.damage.found] == [0]
    assert outcomes == [Outcome.UNKNOWN]
    assert node.sent == []


def test_after_a_failed_sync_the_store_reports_it_and_nothing_is_acknowledged() -> None:
    node = Node(ALONE)
    node.tick(20)
    node.disk.fail_next_sync()
    _, outcomes = node.propose(b"a")
    assert [type(failure) for failure in node.failures] == [DiskFailed]
    _, later = node.propose(b"b")
    assert (outcomes, later) == ([], [])


def test_a_stopped_replica_ignores_all_messages() -> None:
    node = Node()
    node.elect()
    _, outcomes = node.propose(b"a")
    node.replica.stop(DiskFailed("the disk is gone"))
    node.sent.clear()
    assert outcomes == [Outcome.UNKNOWN]
    node.tick(30)
    node.step(vote_request(9))
    assert node.sent == []
    for request in (
        lambda: node.propose(b"b"),
        lambda: node.replica.transfer(2),
        lambda: node.replica.change_voters(THREE, lambda _: None),
    ):
        with pytest.raises(NotLeader):
            request()


def test_a_transfer_reaches_the_target() -> None:
    node = Node()
    node.elect()
    node.replica.transfer(2)
    node.after_event()
    assert kinds(node.sent)[-1] is TimeoutNow


def test_a_change_of_voters_waits_for_the_commit_like_a_batch() -> None:
    node = Node()
    node.elect()
    outcomes: list[Outcome] = []
    node.replica.change_voters(Voters(voters=(1, 2, 3, 4)), outcomes.append)
    node.after_event()
    assert AppendRequest in kinds([m for m in node.sent if m.target == 4])
    node.accepts(2, 2)
    assert outcomes == []
    node.accepts(3, 2)
    assert outcomes == [Outcome.COMMITTED]
    assert node.replica.group == GROUP


def test_a_removed_voter_is_out_of_sync_at_once() -> None:
    node = Node()
    node.elect()
    node.accepts(3, node.replica.raft.end)
    node.replica.look_in_sync()
    assert node.replica.in_sync is not None
    assert node.replica.in_sync.nodes == (1, 2, 3)
    told: list[tuple[int, ...]] = []
    in_sync = node.replica.in_sync
    node.replica.on_in_sync = lambda: told.append(in_sync.nodes)
    node.replica.change_voters(Voters(voters=(1, 2)), lambda _: None)
    assert told == [(1, 2)]


@pytest.mark.complains("tail_lost partition=orders offset=*")
def test_a_replica_that_lost_its_tail_remembers_it_after_a_restart() -> None:
    node = Node(THREE)
    opened = Entry(0, 1, 1, TermOpened())
    node.step(append(1, 0, opened, entry(1, 1, a_batch(b"a", term=1)), commit=1))
    node.step(Heartbeat(source=2, target=1, term=1, commit=1, low=0, matched=9))
    assert node.replica.raft.is_recovering
    node.restart()
    assert node.replica.raft.is_recovering
