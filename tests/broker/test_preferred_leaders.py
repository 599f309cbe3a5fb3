"""Leadership returns to the preferred leader, also after a failed attempt."""

from kafkaesque.broker.replication.preferred_leaders import LOOKS_BEFORE_RETRY, GivingBack
from tests.broker.nodes import THREE, Node

PREFERRED = 2


def leading() -> Node:
    node = Node(THREE)
    node.elect()
    node.propose(b"x")
    node.accepts(PREFERRED, node.replica.raft.end)
    return node


def look(giving: GivingBack, node: Node, times: int = 1) -> int:
    return sum(giving.look([(node.replica, PREFERRED)]) for _ in range(times))


def test_a_group_is_transferred_to_its_preferred_leader_once_it_has_caught_up() -> None:
    node = leading()
    giving = GivingBack()
    node.propose(b"y")
    assert look(giving, node) == 0, "it lacks a record"
    node.accepts(PREFERRED, node.replica.raft.end)
    assert look(giving, node) == 1
    assert look(giving, node) == 0, "the transfer is in progress"


def test_a_preferred_leader_that_did_not_take_over_is_asked_again_even_if_the_group_rests() -> None:
    node = leading()
    giving = GivingBack()
    assert look(giving, node) == 1
    node.let_the_transfer_fail()
    assert look(giving, node, LOOKS_BEFORE_RETRY) == 0, "not at once"
    assert look(giving, node) == 1, "though the group has had no tick meanwhile"


def test_a_replica_that_reports_its_repair_is_asked_at_the_next_look() -> None:
    node = leading()
    giving = GivingBack()
    look(giving, node)
    node.let_the_transfer_fail()
    assert look(giving, node) == 0
    leadership = node.replica.raft.leadership
    assert leadership is not None
    leadership.failed_transfers.discard(PREFERRED)
    assert look(giving, node) == 1
