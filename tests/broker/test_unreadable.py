"""Undetected damage that the leader meets when it reads its log for a follower.

Decisions still hold: the core's state stays as intended, the other followers get what is new,
and the damage is noted.
"""

import pytest

from kafkaesque.broker.replication.watermark import Outcome
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.log.damage import load_damage
from kafkaesque.log.errors import CorruptLog
from kafkaesque.raft.messages import AppendAccepted, AppendRejected, AppendRequest
from kafkaesque.raft.raft import Role
from tests.broker.nodes import GROUP, THREE, Node, a_batch, append, entry
from tests.broker.partitions import PartitionNode, build
from tests.broker.test_damage import COUNT, HARMS, filled, read_all

pytestmark = pytest.mark.complains("damage_found partition=orders offset=*")

NEW = 4
"""A broker that will host the partition, too."""

UNSEEN = "a bit in the records"


def with_damage(*, alone: bool) -> PartitionNode:
    """A leader in whose second segment a bit has flipped since its election."""
    node = filled(alone=alone)
    HARMS[UNSEEN](node)
    return node


def add_learner(node: PartitionNode) -> list[Outcome]:
    voters = node.replica.raft.voters
    outcomes: list[Outcome] = []
    grown = Voters(voters=voters.voters, learners=(NEW,), move=voters.move + 1)
    node.replica.change_voters(grown, outcomes.append)
    node.after_event()
    return outcomes


def answers(node: PartitionNode, match: int) -> None:
    """The learner acknowledges everything before `match`."""
    term = node.replica.raft.term
    node.step(AppendAccepted(source=NEW, target=1, term=term, match=match, commit=0))


def refuses_all(node: PartitionNode) -> None:
    """The learner says that it has nothing."""
    last = [m for m in node.sent if isinstance(m, AppendRequest) and m.target == NEW][-1]
    term = node.replica.raft.term
    node.step(AppendRejected(source=NEW, target=1, term=term, prev_end=last.prev_end, hint=0))


def sent_up_to(node: PartitionNode) -> int:
    """How much of the log the learner was sent."""
    appends = [m for m in node.sent if isinstance(m, AppendRequest) and m.target == NEW]
    return max((entry.end for m in appends for entry in m.entries), default=0)


def test_a_change_of_voters_that_meets_damage_holds_and_the_leader_steps_down() -> None:
    node = with_damage(alone=False)
    raft = node.replica.raft
    end = raft.end
    add_learner(node)
    (damage,) = node.replica.damage.found
    assert node.disk.list("orders").count("damage") == 1, "it is known after a restart, too"
    assert 0 < damage.offset < COUNT
    assert raft.role is Role.FOLLOWER and not raft.may_lead and node.replica.error is None
    assert node.replica.log.end == raft.end == end + 1, "the change is in the log"
    node.tick(100)
    assert raft.role is Role.FOLLOWER


def test_a_batch_appended_while_a_learner_cannot_be_served_still_goes_to_the_others() -> None:
    node = filled(alone=False)
    leadership = node.replica.raft.leadership
    assert leadership is not None
    add_learner(node)
    for peer in THREE.voters[1:]:
        node.accepts(peer, node.replica.raft.end)
    HARMS[UNSEEN](node)
    progress = leadership.progress[NEW]
    progress.accepted(3, 0)
    progress.next = 3
    node.sent.clear()
    offset, _ = node.send(build(b"new"))
    assert offset == COUNT
    appends = [m for m in node.sent if isinstance(m, AppendRequest) and m.entries]
    assert {2, 3} <= {m.target for m in appends if m.entries[-1].end == node.replica.raft.end}
    assert node.replica.damage.found and node.replica.log.end_offset == COUNT + 1
    node.tick()
    node.accepts(2, node.replica.raft.end)


def test_the_only_copy_fills_another_up_to_its_damage_and_carries_on() -> None:
    node = with_damage(alone=True)
    outcomes = add_learner(node)
    assert outcomes == [Outcome.COMMITTED]
    refuses_all(node)
    for _ in range(50):
        answers(node, sent_up_to(node))
    (damage,) = node.replica.damage.found
    log = node.replica.log
    assert log.offset_at(sent_up_to(node)) == damage.offset, (
        "everything before the damage, and no more"
    )
    assert node.replica.is_serving
    assert node.send(build(b"%d" % COUNT))[1] == [Outcome.COMMITTED]
    node.tick(100)
    assert node.replica.is_serving
    behind = int(node.segment(3).split("/")[1].removesuffix(".log"))
    assert read_all(node, behind)[-1] == COUNT


def test_a_learner_that_could_not_be_served_is_tried_again_when_it_answers() -> None:
    node = with_damage(alone=True)
    add_learner(node)
    refuses_all(node)
    for _ in range(50):
        answers(node, sent_up_to(node))
    reached = sent_up_to(node)
    log, path = node.replica.log, node.segment(1)
    segment, _ = log.segments.span(node.replica.damage.found[0].offset)
    assert segment.path == path
    HARMS[UNSEEN](node)  # the bit has its old value again
    answers(node, reached)
    for _ in range(50):
        answers(node, sent_up_to(node))
    assert sent_up_to(node) == node.replica.raft.end


def test_an_unreadable_sector_ends_neither_the_tick_nor_the_append() -> None:
    node = filled(alone=True)
    file = node.disk.open(node.segment(1))
    size = file.size()
    file.close()
    node.disk.spoil(node.segment(1), size // 2)
    add_learner(node)
    refuses_all(node)
    for _ in range(50):
        answers(node, sent_up_to(node))
    node.tick(50)
    assert node.replica.damage.found and node.replica.error is None
    assert node.send(build(b"more"))[1] == [Outcome.COMMITTED]


# ── cuts ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("place", [3, 16, 26], ids=["base offset", "magic", "last offset delta"])
def test_a_follower_that_cannot_find_where_to_cut_stops_and_keeps_its_log(
    place: int,
) -> None:
    node = Node(THREE)
    node.step(append(1, 0, Entry(0, 1, 1, TermOpened())))
    for offset in range(6):
        batch = entry(offset + 1, 1, a_batch(b"%d" % offset, base=offset, term=1))
        node.step(append(1, offset + 1, batch, prev_term=1))
    node.sync()
    size = len(a_batch(b"0", base=0, term=1))
    node.disk.flip_bit(node.segment(0), size + place, 4)
    names = node.disk.list(GROUP)
    node.step(append(2, 4, Entry(4, 5, 2, TermOpened()), prev_term=1, commit=4))
    assert isinstance(node.replica.error, CorruptLog)
    (damage,) = load_damage(node.disk, GROUP)
    assert damage.offset <= 1
    assert {*node.disk.list(GROUP)} == {*names, "damage"}
    assert node.replica.log.segments.end_offset == 6
    known = node.store.journal.groups[GROUP].marks
    assert known.term_at(6) == 1, "the mark that was to follow the cut is not recorded"
    node.tick(30)
    node.step(append(2, 4, Entry(4, 5, 2, TermOpened()), prev_term=1, commit=5))
    node.sync()
    assert not any(
        isinstance(message, AppendAccepted) and message.term == 2 for message in node.sent
    )
