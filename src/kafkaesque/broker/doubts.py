"""What a broker does that has forgotten something it promised: an old copy of its data folder.

It must not vote or acknowledge as if nothing had happened. So each of its replicas begins again as
one whose disk lost everything does (`broker/aside.py`), and the others refill it. In which terms it
took part since, the copy cannot know. So it begins far beyond its own terms and beyond the term of
the catalog, which the peer told that found it out. Every broker follows the catalog, and begins
again there, too: its term counts all that were ever left behind so.

- Groups that others vote in begin again when the folder is opened.
- The only voter of a group goes on with what is there, for nobody has more, and says so.
- Of groups that came here after the copy was made the journal knows nothing. The catalog does, once
  it is known up to this run: they begin again, too. So does a group that has other replicas now
  though the copy says that this broker was alone.
"""

import logging
from collections.abc import Mapping

from msgspec import Struct

from kafkaesque.broker.aside import begun, distrust, put_aside, rename_all, unused_term
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError, OldCopy
from kafkaesque.log.disk import Disk
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import CopyKept, MemoryDoubted, OldCopyFound
from kafkaesque.log.rebuilding import find
from kafkaesque.types import NO_TERM, GroupId

log = logging.getLogger(__name__)

CATALOG_GROUP: GroupId = "cluster-metadata"


class Held(Struct, frozen=True, kw_only=True):
    """A group of which the catalog says that this node holds a replica."""

    voters: Voters
    """Who votes where its log begins, as far as the catalog can tell."""
    is_alone: bool
    """Whether nobody else holds one."""


def begin_again(journal: Journal, disk: Disk) -> None:
    """Let the replicas of an old copy begin again; durable on return.

    Raises OldCopy where the copy says that nobody else votes on the catalog: the broker that found
    it is of the same cluster, so that others may do so by now, and two catalogs would be the end.
    """
    found = journal.old_copy
    assert found is not None
    peer = found.peer
    alone = {group for group in journal.groups if _voters(journal, group) == (journal.node,)}
    if CATALOG_GROUP in alone:
        raise OldCopy(peer, kept_catalog=True)
    log.error(
        "old_copy peer=%d groups=%d alone=%d: broker %d remembers more of this data folder than it "
        "holds; all that others hold, too, is fetched from them again, and what was acknowledged "
        "since the copy was made is missing where this broker is alone",
        peer,
        len(journal.groups) - len(alone),
        len(alone),
        peer,
    )
    for group in alone:
        synced = journal.groups[group].synced
        offset = 0 if synced is None else synced.end_offset
        journal.add(CopyKept(group=group, offset=offset))
    journal.leap(found.run, found.round)
    term = unused_term([found.term, *(one.hard_state.term for one in journal.groups.values())])
    others = {g: journal.groups[g].marks.voters()[-1][1] for g in journal.groups if g not in alone}
    done = (MemoryDoubted(group="", term=term), OldCopyFound(group="", peer=0))
    put_aside(journal, disk, others, term, *done)


def settle_doubts(journal: Journal, disk: Disk, held: Mapping[GroupId, Held]) -> None:
    """Let groups begin again of which only the catalog knows what they are; durable on return."""
    term = journal.doubted_term
    shared = {group: one.voters for group, one in held.items() if not one.is_alone}
    unknown = {group: voters for group, voters in shared.items() if group not in journal.groups}
    for group, voters in unknown.items():
        # Nothing is known that could be lost, and nothing is opened before all of this is durable.
        rename_all(disk, group)
        journal.add(begun(group, voters))
        distrust(journal, group, term)
    for group, one in held.items():
        if one.is_alone and group not in journal.groups:
            _go_on_alone(journal, disk, group)
    joined = {
        group: voters
        for group, voters in shared.items()
        if group not in unknown and _voters(journal, group) == (journal.node,)
    }
    put_aside(journal, disk, joined, term, MemoryDoubted(group="", term=NO_TERM))


def _go_on_alone(journal: Journal, disk: Disk, group: GroupId) -> None:
    """Let a log that nobody else holds go on from its segments, if it has any."""
    try:
        found = find(disk, group)
    except LogError as error:
        log.error("log_not_rebuilt partition=%s reason=%s", group, error)  # noqa: TRY400
        return
    if found is None:
        log.error("old_copy_lacks partition=%s: what it held cannot be fetched again", group)
        return
    log.warning(
        "log_rebuilt partition=%s end=%d unreadable_bytes=%d: it goes on from its segments",
        group,
        found.end,
        found.bad_bytes,
    )
    term = max(journal.doubted_term, found.last_term + 1)
    for record in found.records(Voters(voters=(journal.node,)), term):
        journal.add(record)


def _voters(journal: Journal, group: GroupId) -> tuple[int, ...]:
    return tuple(journal.groups[group].marks.voters()[-1][1].voters)
