"""How the replicas of an old copy start when its folder is opened."""

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


def test_an_old_copy_is_refused_if_it_was_the_only_voter_of_the_catalog() -> None:
    node = BrokerNode()
    journal = node.broker._store.journal
    journal.add(OldCopyFound(group="", peer=2, run=9, round=9, term=9))
    journal.write_now()
    for _ in range(2):
        with pytest.raises(OldCopy, match="an old copy: broker 2"):
            reopened(node)


def test_terms_beyond_what_clients_can_count_are_refused() -> None:
    assert unused_term([3, 7]) == 7 + LEAP
    with pytest.raises(LogError, match="too high"):
        unused_term([(1 << 31) - LEAP])


def test_runs_and_rounds_continue_above_those_the_peer_remembers() -> None:
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


def test_a_group_known_only_to_the_catalog_starts_recovering_once() -> None:
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


def test_a_group_formerly_held_alone_that_has_other_voters_now_starts_recovering() -> None:
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
