"""How a replica begins again when what it holds must not count: its files get other names.

Three things become durable in this order (`docs/adr/0008-damaged-replicas-leave-their-term.md`):
the replica is recovering, in a term in which it never voted or acknowledged; its files have other
names, and not one is deleted; its log begins with nothing.
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
"""Who votes where a replica begins later than its group: it learns that from its leader."""

LEAP = 1 << 20
"""How far beyond the terms that it knows one begins who may have forgotten later ones. Each term
takes an election, so that no group gets so far while an old copy of a folder lies around."""

_TERM_MAX = (1 << 31) - 1
"""Kafka's clients count terms in 32 bits."""


def unused_term(terms: Iterable[Term]) -> Term:
    """Return a term in which nobody took part who knew no other terms than these, and few more."""
    term = max(terms, default=NO_TERM) + LEAP
    if term + LEAP > _TERM_MAX:
        raise LogError(f"term {term} is too high: the broker cannot begin again, empty its folder")
    return term


def distrust(journal: Journal, group: GroupId, least: Term = NO_TERM) -> None:
    """Let a replica not vote, and leave its term, with the next write of the journal.

    The next term is enough for one who knows all in which it took part.
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
    """Begin groups' logs anew without deleting a byte; `also` is written when that is done.

    That the replicas must not vote is durable before anything is moved: they no longer have what
    they once acknowledged. They also leave their terms: acknowledgements of old data that are still
    on their way must not be counted by a leader of such a term.
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
    """Return the record by which a log begins with nothing."""
    start = LogStart(offset=0, marks_before=0, prev_term=NO_TERM, voters=voters)
    return start_record(group, start, is_reset=True)


def rename_all(disk: Disk, group: GroupId) -> None:
    """Give everything in the folder of a group a name that nobody looks for; durable on return."""
    with disk_errors(group):
        names = disk.list(group)
        serial = next_serial(names)
        fresh = [name for name in names if not name.endswith(DAMAGED_SUFFIX)]
        for name in fresh:
            disk.rename(f"{group}/{name}", f"{group}/{name}.{serial}{DAMAGED_SUFFIX}")
        if fresh:
            disk.sync_now([], [group])


def rename_one(disk: Disk, path: str) -> None:
    """Give a file of the data folder a name that nobody looks for; durable on return."""
    with disk_errors(path):
        beside = [name for name in disk.list("") if name.startswith(f"{path}.")]
        disk.rename(path, f"{path}.{next_serial(beside)}{DAMAGED_SUFFIX}")
        disk.sync_now([], [""])
