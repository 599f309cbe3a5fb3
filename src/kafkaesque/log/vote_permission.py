"""An operator's permission for replicas to vote although they may have lost acknowledged data."""

from collections.abc import Collection

from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError
from kafkaesque.log.disk import Disk
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import RecoverySet
from kafkaesque.types import GroupId


def trust(disk: Disk, config: LogConfig, groups: Collection[GroupId]) -> list[GroupId]:
    """Let replicas that wait to be refilled vote again; returns which those were.

    For an operator who knows that a majority of a group has lost power, so that no replica is left
    to catch up with: data that was not synced anywhere is then lost. The node must be stopped.
    """
    if not Journal.exists(disk):
        raise LogError(f"no journal in {disk.location()}: it is not a broker's data folder")
    journal = Journal.open(disk, config)
    trusted = [g for g in groups if g in journal.groups and journal.groups[g].is_recovering]
    for group in trusted:
        journal.add(RecoverySet(group=group, is_recovering=False))
    if trusted:
        journal.write_now()
    journal.close()
    return trusted
