"""Lets the groups of a stopped broker go on although most of their voters are gone for good.

For an operator's command alone: whoever is called lost must never come back with its old disk. It
could still take itself for the only voter, and there would be two logs under one name. Nothing here
can find out whether that is so.

The broker's own copy of each such group becomes the group: it opens a new term and says that it is
the only voter. What it holds counts as committed from then on; what only the lost ones held is
gone. Where commits needed this broker too, nothing is. `docs/explanation/recovery.md` says more.
"""

from collections.abc import Collection

from kafkaesque.broker.store import Store
from kafkaesque.entry import Entry, TermOpened, Voters
from kafkaesque.log.journal_records import StateSaved
from kafkaesque.raft.quorum import is_majority
from kafkaesque.types import GroupId, NodeId


def forced_voters(now: Voters, node: NodeId, lost: Collection[NodeId]) -> Voters | None:
    """Return what the group must become on `node` to go on, None if it needs no force, or may not.

    A majority that is left elects a leader without our help, and a broker that is no member of the
    group has nothing to go on with. Others that are left learn from this one.
    """
    assert node not in lost, "whoever is asked is not lost"
    staying = [voter for voter in now.voters if voter not in lost]
    if node not in now.members or is_majority(staying, now.voters):
        return None
    learners = sorted(set(now.members) - set(lost) - {node})
    return Voters(voters=(node,), learners=tuple(learners), move=now.move)


def force_groups(store: Store, lost: Collection[NodeId]) -> list[GroupId]:
    """Force all groups of a stopped broker that need it; return them. Then close the store.

    A replica that lost synced data itself is left alone: it does not hold what it once said.
    Raises LogError for a log that cannot be read, before anything of that group has changed.
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
