"""Lets a stopped broker's groups continue although most of their voters are gone for good.

For an operator's command only: a broker declared lost must never come back with its old disk. It
could still take itself for the only voter, and there would be two logs under one name. Nothing here
can detect that.

The broker's own copy of each such group becomes the group: it opens a new term and declares itself
the only voter. What it holds then counts as committed; what only the lost brokers held is gone. If
every commit needed this broker too, nothing is gone. See `docs/explanation/recovery.md`.
"""

from collections.abc import Collection

from kafkaesque.broker.storage.store import Store
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.log.journal_records import StateSaved
from kafkaesque.raft.quorum import is_majority
from kafkaesque.types import GroupId, NodeId


def forced_voters(now: Voters, node: NodeId, lost: Collection[NodeId]) -> Voters | None:
    """Return the voters with which `node` must force a group; None if it need not or may not.

    A remaining majority elects a leader without our help, and a broker that is not a member of the
    group has nothing to continue with. Other remaining members learn from this one.
    """
    assert node not in lost, "the broker that is asked is not lost"
    staying = [voter for voter in now.voters if voter not in lost]
    if node not in now.members or is_majority(staying, now.voters):
        return None
    learners = sorted(set(now.members) - set(lost) - {node})
    return Voters(voters=(node,), learners=tuple(learners), move=now.move)


def force_groups(store: Store, lost: Collection[NodeId]) -> list[GroupId]:
    """Force all groups of a stopped broker that need it; return them. Close the store afterwards.

    A replica that itself lost synced data is left alone: it does not hold what it once
    acknowledged. Raises LogError for an unreadable log, before anything of that group has changed.
    """
    forced: list[GroupId] = []
    node = store.journal.node
    for group, state in sorted(store.journal.groups.items()):
        voters = forced_voters(state.marks.voters()[-1][1], node, lost)
        if voters is None or state.is_recovering:
            continue
        log = store.open_log(group)
        term = state.hard_state.term + 1
        store.journal.add(StateSaved(group=group, term=term, vote=node))
        log.append(
            (
                Entry(log.end, log.end + 1, term, TermOpened()),
                Entry(log.end + 1, log.end + 2, term, voters),
            )
        )
        forced.append(group)
    return forced
