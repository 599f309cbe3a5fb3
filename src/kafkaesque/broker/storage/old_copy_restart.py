"""Recovers a broker that forgot promises because it runs on an old copy of its data folder.

It must not vote or acknowledge as if nothing had happened. So each of its replicas starts empty,
like one whose disk lost everything (`broker/storage/aside.py`), and the others refill it. The copy
cannot know in which terms it took part later. So it restarts far beyond its own terms and beyond
the catalog's term, as reported by the peer that detected the copy. Every broker follows the
catalog, and its term there grows at each such restart: so it counts all terms left behind this way.

- Groups with other voters restart when the folder is opened.
- The only voter of a group continues with what it has, since no broker has more, and reports that.
- The journal knows nothing of groups that came here after the copy was made. The catalog does, once
  it is current to this run: those groups restart, too. So does a group that has other replicas now,
  though the copy says that this broker was alone.
"""

from collections.abc import Mapping

from msgspec import Struct

from kafkaesque.broker.storage.aside import begun, distrust, put_aside, rename_all, unused_term
from kafkaesque.broker.storage.storage_errors import OldCopy
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.events import Events, LogNotRebuilt, LogRebuilt, OldCopyLacks, OldCopyTold
from kafkaesque.log.disk import Disk
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_rebuild import find
from kafkaesque.log.journal_records import CopyKept, MemoryDoubted, OldCopyFound
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import NO_TERM, GroupId


class Held(Struct, frozen=True, kw_only=True):
    """A group of which this node holds a replica according to the catalog."""

    voters: Voters
    """The voters of its log's start, as far as the catalog knows."""
    is_alone: bool
    """Whether no other broker holds a replica."""


def begin_again(journal: Journal, disk: Disk, events: Events) -> None:
    """Restart the replicas of an old copy; durable on return.

    Raises OldCopy if the copy says that no other broker votes on the catalog: the broker that found
    it is in the same cluster, so others may vote by now, and two catalogs would be fatal.
    """
    found = journal.old_copy
    assert found is not None
    peer = found.peer
    alone = {group for group in journal.groups if _voters(journal, group) == (journal.node,)}
    if CATALOG_GROUP in alone:
        raise OldCopy(peer, kept_catalog=True)
    others_hold = len(journal.groups) - len(alone)
    events.tell(OldCopyTold(peer=peer, groups=others_hold, alone=len(alone)))
    for group in alone:
        synced = journal.groups[group].synced
        offset = 0 if synced is None else synced.end_offset
        journal.add(CopyKept(group=group, offset=offset))
    journal.leap(found.run, found.round)
    term = unused_term([found.term, *(one.hard_state.term for one in journal.groups.values())])
    others = {g: journal.groups[g].marks.voters()[-1][1] for g in journal.groups if g not in alone}
    done = (MemoryDoubted(group="", term=term), OldCopyFound(group="", peer=0))
    put_aside(journal, disk, others, term, *done)


def settle_doubts(
    journal: Journal, disk: Disk, held: Mapping[GroupId, Held], events: Events
) -> None:
    """Restart the groups that only the catalog knows; durable on return."""
    term = journal.doubted_term
    shared = {group: one.voters for group, one in held.items() if not one.is_alone}
    unknown = {group: voters for group, voters in shared.items() if group not in journal.groups}
    for group, voters in unknown.items():
        # There is no known state to lose, and nothing is opened before all of this is durable.
        rename_all(disk, group)
        journal.add(begun(group, voters))
        distrust(journal, group, term)
    for group, one in held.items():
        if one.is_alone and group not in journal.groups:
            _go_on_alone(journal, disk, group, events)
    joined = {
        group: voters
        for group, voters in shared.items()
        if group not in unknown and _voters(journal, group) == (journal.node,)
    }
    put_aside(journal, disk, joined, term, MemoryDoubted(group="", term=NO_TERM))


def _go_on_alone(journal: Journal, disk: Disk, group: GroupId, events: Events) -> None:
    """Continue a log that no other broker holds from its segments, if it has any."""
    try:
        found = find(disk, group)
    except LogError as error:
        events.tell(LogNotRebuilt(partition=group, reason=str(error)))
        return
    if found is None:
        events.tell(OldCopyLacks(partition=group))
        return
    events.tell(LogRebuilt(partition=group, end=found.end, unreadable_bytes=found.bad_bytes))
    term = max(journal.doubted_term, found.last_term + 1)
    for record in found.records(Voters(voters=(journal.node,)), term):
        journal.add(record)


def _voters(journal: Journal, group: GroupId) -> tuple[int, ...]:
    return tuple(journal.groups[group].marks.voters()[-1][1].voters)
