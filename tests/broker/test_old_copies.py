"""After a start, a broker exchanges votes only with peers that have reported what they remember."""

from kafkaesque.broker.cluster.old_copies import PATIENCE_LOOKS, OldCopyDetector
from kafkaesque.broker.replication.leader_table import LeadersTold, Life
from kafkaesque.types import NodeId
from tests.broker.brokers import BrokerNode

PEERS = (2, 3)
SESSION = 7


def new_lives() -> OldCopyDetector:
    """What a broker knows of its peers when it starts: nothing."""
    store = BrokerNode().broker._store
    return OldCopyDetector(SESSION, store.journal, store.flusher)


def word_of(peer: NodeId) -> LeadersTold:
    """The report of a peer that remembers nothing of this broker."""
    life = Life(run=1, opened=0, round=1, heard_run=0, heard_session=0, heard_round=0)
    return LeadersTold(
        source=peer,
        target=1,
        session=peer,
        heard_session=0,
        holds=0,
        since=0,
        version=0,
        facts=(),
        life=life,
    )


def test_no_votes_are_exchanged_before_all_peers_have_reported() -> None:
    lives = new_lives()
    lives.tick(PEERS)
    assert not any(map(lives.may_vote_with, PEERS))
    assert lives.takes(word_of(2))
    lives.tick(PEERS)
    assert not any(map(lives.may_vote_with, PEERS))
    assert lives.takes(word_of(3))
    lives.tick(PEERS)
    assert all(map(lives.may_vote_with, PEERS))


def test_a_peer_that_is_down_is_not_waited_for_and_no_votes_are_exchanged_with_it() -> None:
    lives = new_lives()
    assert lives.takes(word_of(2))
    for _ in range(PATIENCE_LOOKS):
        lives.tick(PEERS)
        assert not lives.may_vote_with(2)
    lives.tick(PEERS)
    assert [lives.may_vote_with(peer) for peer in PEERS] == [True, False]
    assert lives.takes(word_of(3))
    assert lives.may_vote_with(3)
