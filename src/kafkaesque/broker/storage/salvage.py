"""Restores a broker whose journal is lost, when an operator asks for it. No file is deleted.

The journal held terms and votes, so the broker must not take part as if it knew them.

- In a cluster it *rejoins*: it starts like a broker that runs on an old copy of its folder
  (`broker/storage/old_copy_restart.py`), and knows of no group but the catalog, which the others
  send it.
- Alone it continues from its segments (`log/journal_rebuild.py`): no other broker can have voted.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from kafkaesque.broker.storage.aside import begun, distrust, rename_all, rename_one, unused_term
from kafkaesque.broker.storage.identity import FolderIdentity, load_identity
from kafkaesque.broker.storage.storage_errors import JournalLost
from kafkaesque.config import LogConfig
from kafkaesque.entry import Voters
from kafkaesque.errors import LogError
from kafkaesque.log.disk import Disk
from kafkaesque.log.errors import CorruptLog, ForeignFile
from kafkaesque.log.journal import PATH, Journal
from kafkaesque.log.journal_rebuild import Found, find
from kafkaesque.log.journal_records import MemoryDoubted
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.types import GroupId, NodeId, Term

_TOPIC_FOLDER = re.compile(r".+\.[0-9a-f]{32}")


class Remembered(Struct, array_like=True, frozen=True, kw_only=True):
    """What another broker knows of one that lost its journal."""

    run: int
    round: int
    term: Term
    """The informant's term in the catalog's group, which counts all terms ever left behind."""

    voters: tuple[NodeId, ...]
    """The voters of the catalog."""

    refusal: str = ""
    """Why the cluster refuses it; the other fields are then meaningless."""


def remembered(journal: Journal, node: NodeId) -> Remembered:
    """Return what a broker's journal knows of another broker."""
    heard = journal.heard.get(node)
    catalog = journal.groups[CATALOG_GROUP]
    return Remembered(
        run=0 if heard is None else heard.run,
        round=0 if heard is None else heard.round,
        term=catalog.hard_state.term,
        voters=tuple(catalog.marks.voters()[-1][1].voters),
    )


def open_journal(disk: Disk, config: LogConfig) -> Journal:
    """Open an earlier run's journal; raises JournalLost if it is unusable, or NewerFormat."""
    try:
        return Journal.open(disk, config)
    except (CorruptLog, ForeignFile) as error:
        raise JournalLost(str(error)) from error


def has_journal(disk: Disk, config: LogConfig) -> bool:
    """Whether there is a journal that a broker can start with."""
    if not Journal.exists(disk):
        return False
    try:
        open_journal(disk, config).close()
    except JournalLost:
        return False
    return True


# ── with others ──────────────────────────────────────────────────────────────────────────────


def rejoin(
    disk: Disk, config: LogConfig, folder: FolderIdentity, told: Sequence[Remembered]
) -> None:
    """Give a broker without a journal a new one, recovering in every group; durable on return.

    Raises LogError if the others cannot do without it.
    """
    voters = {node for one in told for node in one.voters}
    if voters == {folder.node}:
        raise LogError(
            "only this broker votes on the catalog, so the others cannot elect a leader to restore "
            "it: go on without this broker (kafkaesque cluster recover on another broker)"
        )
    groups = groups_on(disk)
    found = [find(disk, group) for group in groups]
    seen = [one.last_term for one in found if one is not None]
    term = unused_term([*seen, *(one.term for one in told)])
    _put_journal_aside(disk)
    if CATALOG_GROUP in groups:
        rename_all(disk, CATALOG_GROUP)
    journal = Journal(disk, config, folder.node)
    journal.leap(max(one.run for one in told), max(one.round for one in told))
    journal.add(begun(CATALOG_GROUP, Voters(voters=tuple(sorted(voters)))))
    distrust(journal, CATALOG_GROUP, term)
    journal.add(MemoryDoubted(group="", term=term))
    journal.write_now()
    journal.close()


# ── alone ────────────────────────────────────────────────────────────────────────────────────


class Salvage(Struct, frozen=True, kw_only=True):
    """The contents of a lone broker's new journal."""

    node: NodeId
    term: Term
    logs: tuple[Found, ...]


def survey(disk: Disk) -> Salvage:
    """Read all segments of a broker that lost its journal; changes nothing.

    Raises LogError if it has no identity, or is not alone.
    """
    folder = load_identity(disk, may_lack_journal=True)
    if folder is None:
        raise LogError(f"{disk.location()} holds no identity: it is not a broker's data folder")
    if folder.peers:
        others = ", ".join(str(peer.node) for peer in folder.peers)
        raise LogError(
            f"this broker is in a cluster with broker {others}: start it once with --rejoin"
        )
    logs = tuple(one for group in groups_on(disk) if (one := find(disk, group)) is not None)
    term = unused_term(one.last_term for one in logs)
    return Salvage(node=folder.node, term=term, logs=logs)


def write_journal(disk: Disk, config: LogConfig, found: Salvage) -> None:
    """Write a journal for a lone broker, to continue from its segments; durable on return."""
    if Journal.exists(disk):
        _put_journal_aside(disk)
    journal = Journal(disk, config, found.node)
    journal.leap()
    for log in found.logs:
        for record in log.records(Voters(voters=(found.node,)), found.term):
            journal.add(record)
    journal.write_now()
    journal.close()


def groups_on(disk: Disk) -> list[GroupId]:
    """Return the groups whose folders exist."""
    names = disk.list("")
    topics = [name for name in names if _TOPIC_FOLDER.fullmatch(name)]
    groups = [f"{name}/{inner}" for name in topics for inner in disk.list(name) if inner.isdigit()]
    return [CATALOG_GROUP, *groups] if CATALOG_GROUP in names else groups


def _put_journal_aside(disk: Disk) -> None:
    if PATH in disk.list(""):
        rename_one(disk, PATH)
