"""An operator's word that replicas may vote which may have forgotten what they acknowledged."""

from collections.abc import Collection

from kafkaesque.config import LogConfig
from kafkaesque.errors import LogError
from kafkaesque.log.disk import Disk
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import RecoverySet
from kafkaesque.types import GroupId


def trust(disk: Disk, config: LogConfig, groups: Collection[GroupId]) -> list[GroupId]:
    """Let replicas vote again that wait to be refilled; returns which those were.

    For one who knows that a majority of a group has lost power, so that nobody is left whom they
    could catch up with: what was not synced anywhere is then lost. The node must be stopped.
    """
    if not Journal.exists(disk):
        raise LogError(f"there is no journal in {disk.location()}: it is no broker's data folder")
    journal = Journal.open(disk, config)
    trusted = [g for g in groups if g in journal.groups and journal.groups[g].is_recovering]
    for group in trusted:
        journal.add(RecoverySet(group=group, is_recovering=False))
    if trusted:
        journal.write_now()
    journal.close()
    return trusted
