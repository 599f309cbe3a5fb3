"""`kafkaesque cluster recover`: continue with what is left when most voters are lost for good."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from kafkaesque.broker.cluster.lost_brokers import save_lost
from kafkaesque.broker.storage.identity import FolderIdentity, load_identity
from kafkaesque.broker.storage.store import Store
from kafkaesque.broker.storage.unsafe_recovery import force_groups, forced_voters
from kafkaesque.cli.options import NOT_DONE, json_option, yes_option
from kafkaesque.cli.output import Output, Table, counted, shown
from kafkaesque.client.sentences import named_brokers
from kafkaesque.clock import SystemClock
from kafkaesque.config import LogConfig
from kafkaesque.errors import BadConfiguration, LogError
from kafkaesque.log.errors import DiskFailed
from kafkaesque.log.journal_records import GroupState
from kafkaesque.log.log_inspection import Damage, SeenBatch, look_at_journal, look_at_segment
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.machines.catalog.catalog_errors import UnknownBroker
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP
from kafkaesque.server.edge.event_log import EventLog
from kafkaesque.types import GroupId, NodeId, Offset, Term

_COLUMNS = ("group", "voters", "last term", "end")


@click.command(epilog="Example: kafkaesque cluster recover --data data --lost 1 --lost 3 --yes")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The data folder of the broker that continues; the broker must not run.",
)
@click.option(
    "--lost",
    type=click.IntRange(min=1),
    multiple=True,
    required=True,
    help="A broker that is lost for good; may be repeated.",
)
@yes_option
@json_option
def recover(*, data: Path, lost: Sequence[NodeId], is_sure: bool, is_json: bool) -> int:
    """Continue with one broker's copies when most voters are lost for good.

    Records that only the lost brokers had are lost. These brokers must never come back with their
    old disks; once this broker runs again it drains them, so that nothing waits for them. If
    several brokers are left, choose the one whose catalog has the highest term, then the highest
    end. Without --yes it only shows the groups that need it.
    """
    output = Output(is_json=is_json)
    try:
        disk = PosixDisk(data)
    except OSError as error:
        raise DiskFailed(f"cannot use {data}: {error.strerror}") from error
    try:
        disk.lock()
        identity = load_identity(disk)
        if identity is None:
            raise LogError(f"{data} is not a broker's data folder")
        if identity.node in lost:
            raise BadConfiguration(f"{data} is the folder of broker {identity.node} itself")
        _check_known(data, identity, lost)
        if not is_sure:
            rows = _preview(data, identity.node, lost)
            output.table(Table(kind="group", columns=_COLUMNS, rows=rows))
            output.not_done(
                f"{counted(len(rows), 'group')} to continue with broker {identity.node} alone"
            )
            return NOT_DONE
        forced = _force(disk, identity.node, lost)
    finally:
        disk.close()
    gone = sorted(set(lost))
    sentence = (
        f"broker {identity.node} continues alone with {counted(len(forced), 'group')}: start it; "
        f"it drains {named_brokers(gone)}, which must never be started with old data again"
    )
    output.done(sentence, broker=identity.node, groups=len(forced))
    return 0


def _check_known(data: Path, identity: FolderIdentity, lost: Sequence[NodeId]) -> None:
    """Refuse brokers that the folder does not know: their numbers must be typing errors."""
    known = {peer.node for peer in identity.peers}
    for _, state in _groups(data):
        known.update(state.marks.voters()[-1][1].members)
    for node in lost:
        if node not in known:
            others = shown(sorted(known - {identity.node})) or "none"
            raise UnknownBroker(
                f"there is no broker {node}; {data} knows of these others: {others}"
            )


def _groups(data: Path) -> Iterator[tuple[GroupId, GroupState]]:
    for seen in look_at_journal(data / "journal"):
        if isinstance(seen, Damage):
            raise LogError(f"{seen.path} is damaged at byte {seen.position}: {seen.reason}")
        yield seen.group, seen.state


def _preview(
    data: Path, node: NodeId, lost: Sequence[NodeId]
) -> list[tuple[GroupId, tuple[NodeId, ...], Term, Offset]]:
    """Return the groups to force, and always the catalog, without changing anything."""
    rows = []
    for group, state in _groups(data):
        voters = state.marks.voters()[-1][1]
        is_needed = forced_voters(voters, node, set(lost)) is not None
        if group == CATALOG_GROUP or (is_needed and not state.is_recovering):
            marks = state.marks.all()
            term = marks[-1].term if marks else state.marks.start.prev_term
            rows.append((group, voters.voters, term, _end(data / group)))
    return rows


def _end(folder: Path) -> Offset:
    """Return the offset after the last whole batch of a log."""
    end = 0
    newest = max(folder.glob("*.log"), default=None)
    for seen in () if newest is None else look_at_segment(newest):
        if isinstance(seen, SeenBatch):
            end = seen.view.base_offset + seen.view.last_offset_delta + 1
    return end


def _force(disk: PosixDisk, node: NodeId, lost: Sequence[NodeId]) -> list[GroupId]:
    failures: list[LogError] = []
    events = EventLog(SystemClock())
    store = Store.open(disk, LogConfig(), SystemClock(), node, failures.append, events)
    forced = force_groups(store, set(lost))
    store.close()
    if failures:
        raise failures[0]
    save_lost(disk, lost, events)  # last: a repeated run then finds the groups already forced
    return forced
