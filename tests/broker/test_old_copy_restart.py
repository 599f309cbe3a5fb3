"""What becomes of the replicas of an old copy when its folder is opened."""

import pytest

from kafkaesque.broker.storage.aside import LEAP, unused_term
from kafkaesque.broker.storage.old_copy_restart import Held
from kafkaesque.broker.storage.storage_errors import OldCopy
from kafkaesque.broker.storage.store import Store
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.log.journal_records import OldCopyFound
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from tests.broker.brokers import BrokerNode
from tests.log.logs import TINY

pytestmark = pytest.mark.complains(
    "old_copy peer=*: broker * remembers newer data than *", "old_copy_lacks *"
)


def reopened(node: BrokerNode) -> Store:
    node.disk.kill()
    return Store.open(node.disk, TINY, node.clock, 1, node.failures.append, node.heard)


def test_the_only_voter_of_the_catalog_is_refused_for_others_may_vote_on_it_by_now() -> None:
    node = BrokerNode()
    journal = node.broker._store.journal
    journal.add(OldCopyFound(group="", peer=2, run=9, round=9, term=9))
    journal.write_now()
    for _ in range(2):
        with pytest.raises(OldCopy, match="an old copy: broker 2"):
            reopened(node)


def test_terms_that_clients_cannot_count_are_refused() -> None:
    assert unused_term([3, 7]) == 7 + LEAP
    with pytest.raises(LogError, match="too high"):
        unused_term([(1 << 31) - LEAP])


def test_runs_and_rounds_go_on_beyond_what_the_peer_remembers() -> None:
    node = BrokerNode()
    store = node.broker._store
    store.create_log("orders/0", Voters(voters=(1, 2, 3)))
    store.forget(CATALOG_GROUP)
    store.journal.add(OldCopyFound(group="", peer=2, run=1 << 30, round=1 << 50, term=5 * LEAP))
    store.journal.write_now()
    journal = reopened(node).journal
    assert journal.run > 1 << 30
    assert journal.opened_round > 1 << 50
    assert journal.doubted_term == journal.groups["orders/0"].hard_state.term == 6 * LEAP
    assert journal.groups["orders/0"].is_recovering


def test_what_only_the_catalog_knows_begins_recovering_and_only_once() -> None:
    node = BrokerNode()
    store = node.broker._store
    store.forget(CATALOG_GROUP)
    store.journal.add(OldCopyFound(group="", peer=2))
    store.journal.write_now()
    store = reopened(node)
    voters = Voters(voters=(1, 2, 3))
    store.settle({"later/0": Held(voters=voters, is_alone=False)})
    assert store.journal.groups["later/0"].is_recovering
    store.settle({"fresh/0": Held(voters=voters, is_alone=False)})
    assert "fresh/0" not in store.journal.groups


def test_a_group_that_was_held_alone_and_has_other_voters_by_now_begins_recovering() -> None:
    node = BrokerNode()
    store = node.broker._store
    store.create_log("orders/0", Voters(voters=(1,)))
    store.create_log("alone/0", Voters(voters=(1,)))
    store.forget(CATALOG_GROUP)
    store.journal.add(OldCopyFound(group="", peer=2))
    store.journal.write_now()
    store = reopened(node)
    store.settle(
        {
            "orders/0": Held(voters=Voters(voters=(1, 2, 3)), is_alone=False),
            "alone/0": Held(voters=Voters(voters=(1,)), is_alone=True),
        }
    )
    groups = store.journal.groups
    assert groups["orders/0"].is_recovering and not groups["alone/0"].is_recovering
    assert groups["orders/0"].marks.voters()[-1][1].voters == (1, 2, 3)
