"""Restarts a replica whose data must not count: its files are renamed.

Three things become durable in this order (`docs/adr/0008-damaged-replicas-leave-their-term.md`):
the replica is recovering, in a term in which it never voted or acknowledged; its files are renamed,
and none is deleted; its log starts empty.
"""

from collections.abc import Iterable, Mapping

from kafkaesque.entry import LogStart, Voters
from kafkaesque.errors import LogError
from kafkaesque.log.damage import DAMAGED_SUFFIX, next_serial
from kafkaesque.log.disk import Disk
from kafkaesque.log.disk_errors import disk_errors
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import (
    JournalRecord,
    LogStarted,
    RecoverySet,
    StateSaved,
    start_record,
)
from kafkaesque.types import NO_TERM, GroupId, Term

NOBODY = Voters(voters=())
"""The voters of a replica that starts later than its group: its leader sends the real ones."""

LEAP = 1 << 20
"""How far beyond its known terms a replica restarts that may have forgotten later ones. Each term
takes an election, so no group gets that far in the lifetime of an old copy of a folder."""

_TERM_MAX = (1 << 31) - 1
"""Kafka's clients use 32 bits for terms."""


def unused_term(terms: Iterable[Term]) -> Term:
    """Return a term beyond any in which a broker took part that knew only these and few more."""
    term = max(terms, default=NO_TERM) + LEAP
    if term + LEAP > _TERM_MAX:
        raise LogError(f"term {term} is too high: the broker cannot restart, empty its folder")
    return term


def distrust(journal: Journal, group: GroupId, least: Term = NO_TERM) -> None:
    """Let a replica not vote, and leave its term, with the next write of the journal.

    The next term is enough for a replica that knows all terms in which it took part.
    """
    term = max(journal.groups[group].hard_state.term + 1, least)
    journal.add(RecoverySet(group=group, is_recovering=True))
    journal.add(StateSaved(group=group, term=term, vote=None))


def put_aside(
    journal: Journal,
    disk: Disk,
    groups: Mapping[GroupId, Voters],
    least: Term = NO_TERM,
    *also: JournalRecord,
) -> None:
    """Restart groups' logs without deleting a byte; `also` is written when that is done.

    That the replicas must not vote is durable before any file is moved: they no longer have what
    they once acknowledged. They also leave their terms: a leader of such a term must not count
    acknowledgements of old data that are still in flight.
    """
    for group in groups:
        distrust(journal, group, least)
    if groups:
        journal.write_now()
    for group in groups:
        rename_all(disk, group)
    for group, voters in groups.items():
        journal.add(begun(group, voters))
    for record in also:
        journal.add(record)
    journal.write_now()


def begun(group: GroupId, voters: Voters) -> LogStarted:
    """Return the record that starts an empty log."""
    start = LogStart(offset=0, marks_before=0, prev_term=NO_TERM, voters=voters)
    return start_record(group, start, is_reset=True)


def rename_all(disk: Disk, group: GroupId) -> None:
    """Rename everything in a group's folder to names that are never read; durable on return."""
    with disk_errors(group):
        names = disk.list(group)
        serial = next_serial(names)
        fresh = [name for name in names if not name.endswith(DAMAGED_SUFFIX)]
        for name in fresh:
            disk.rename(f"{group}/{name}", f"{group}/{name}.{serial}{DAMAGED_SUFFIX}")
        if fresh:
            disk.sync_now([], [group])


def rename_one(disk: Disk, path: str) -> None:
    """Rename a file of the data folder to a name that is never read; durable on return."""
    with disk_errors(path):
        beside = [name for name in disk.list("") if name.startswith(f"{path}.")]
        disk.rename(path, f"{path}.{next_serial(beside)}{DAMAGED_SUFFIX}")
        disk.sync_now([], [""])
