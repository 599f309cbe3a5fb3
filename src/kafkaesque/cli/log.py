"""`kafkaesque log`: log files, inspected without a broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

import click
import msgspec

from kafkaesque.cli.log_journal import repair_journal
from kafkaesque.cli.main import FAILED, Group
from kafkaesque.cli.options import NOT_DONE, json_option, yes_option
from kafkaesque.cli.output import Output, Table, counted, shown
from kafkaesque.cli.record_text import json_value
from kafkaesque.config import LogConfig
from kafkaesque.errors import KafkaesqueError, LogError
from kafkaesque.log.damage import load_damage
from kafkaesque.log.journal import Journal
from kafkaesque.log.journal_records import GroupState
from kafkaesque.log.log_inspection import (
    Damage,
    Seen,
    SeenBatch,
    SeenGroup,
    SeenIndex,
    look,
    look_at_journal,
)
from kafkaesque.log.log_salvage import give_up, survey
from kafkaesque.log.posix_disk import PosixDisk
from kafkaesque.log.verify import Verified, groups_in
from kafkaesque.log.verify import verify as verify_logs
from kafkaesque.log.vote_permission import trust as trust_groups
from kafkaesque.machines.catalog.group_names import is_folder_of
from kafkaesque.record.errors import BatchError
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import NO_PRODUCER_ID
from kafkaesque.types import GroupId

Facts = dict[str, object]

_OF_RECORDS = ("key", "value", "headers")
"""User data: shown in quotes, so that it cannot be mistaken for ours."""


@click.group(cls=Group)
def log() -> None:
    """Inspect log files without a broker."""


@log.command(epilog="Example: kafkaesque log dump data/cluster-metadata --records")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--records", "with_records", is_flag=True, help="Also print each record.")
@json_option
def dump(*, path: Path, with_records: bool, is_json: bool) -> int:
    """Print the contents of log files.

    PATH is a data folder, a partition's folder, or one segment file. Checksums and indexes are
    checked and nothing is changed; exit code 1 means damage.
    """
    damages = 0
    try:
        for seen in look(path):
            for facts in _lines(seen, with_records=with_records):
                damages += facts["kind"] == "damage"
                click.echo(_line(facts, is_json=is_json))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from error
    if damages and not is_json:
        click.echo(f"kafkaesque: {counted(damages, 'damaged place')}", err=True)
    return FAILED if damages else 0


@log.command(epilog="Example: kafkaesque log verify data")
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("groups", metavar="[GROUP]...", nargs=-1)
@json_option
def verify(*, data: Path, groups: tuple[str, ...], is_json: bool) -> int:
    """Read whole logs and check that they are undamaged.

    DATA is the data folder of a broker, which may be running. A GROUP is a partition as `log dump`
    names it; without one, all are read. It checks checksums, offsets and terms of all batches, and
    compares closed segments with their seals. Nothing is changed. Exit code 1 means damage.
    """
    damaged = count = 0
    try:
        known = groups_in(data)
        missing = sorted(set(groups).difference(known))
        if missing:
            raise click.ClickException(f"{data} holds no {', '.join(missing)}")
        for found in verify_logs(data, groups):
            count += 1
            damaged += bool(found.damage)
            for line in _verified(found, is_json=is_json):
                click.echo(line)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror}") from error
    except KafkaesqueError as error:
        raise click.ClickException(str(error)) from error
    if not is_json:
        said = f"{damaged} of {counted(count, 'partition')} damaged" if damaged else "no damage"
        click.echo(f"{counted(count, 'partition')} read: {said}")
    return FAILED if damaged else 0


def _verified(found: Verified, *, is_json: bool) -> Iterator[str]:
    """Yield the lines for one partition; as text, only damaged ones get more than one."""
    if is_json:
        yield json.dumps(msgspec.to_builtins(found), ensure_ascii=False, separators=(",", ":"))
        return
    size = f"{counted(found.segments, 'segment')}, {found.bytes} bytes"
    unsealed = f", {found.unsealed} not sealed yet" if found.unsealed else ""
    yield f"{shown(found.group)}: {'DAMAGED' if found.damage else 'whole'} ({size}{unsealed})"
    for place in found.damage:
        where = f"offset {place.offset}, byte {place.position} of {shown(place.file)}"
        yield f"  from {where}: {shown(place.reason)}"


@log.command(epilog="Example: kafkaesque log trust data orders.5f0c…/0")
@click.argument("data", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("groups", metavar="GROUP...", nargs=-1, required=True)
def trust(*, data: Path, groups: tuple[str, ...]) -> int:
    """Let replicas vote again although they may have lost records.

    DATA is the data folder of a stopped broker. A GROUP is a partition as `log dump` names it.
    After a power loss, a replica of a topic whose flush.policy is not always does not vote until
    it has caught up with a leader. If too many lost power at once for a leader to be elected, trust
    these replicas on a majority of their brokers: what none of them had synced is then lost.
    """
    try:
        disk = PosixDisk(data)
    except OSError as error:
        raise click.ClickException(f"cannot use {data}: {error.strerror}") from error
    try:
        disk.lock()
        trusted = trust_groups(disk, LogConfig(), groups)
    except KafkaesqueError as error:
        raise click.ClickException(str(error)) from error
    finally:
        disk.close()
    for group in groups:
        said = "votes again" if group in trusted else "needed no trust, or is not here"
        click.echo(f"{group}: {said}")
    return 0 if len(trusted) == len(groups) else FAILED


@log.command(epilog="Example: kafkaesque log repair --data data orders 0 --yes")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The data folder of the broker; it must not run.",
)
@click.argument("topic", required=False)
@click.argument("partition", type=click.IntRange(min=0), required=False)
@yes_option
@json_option
def repair(
    *, data: Path, topic: str | None, partition: int | None, is_sure: bool, is_json: bool
) -> int:
    """Give up what a partition's only copy has lost, or rebuild a lost journal.

    Good records keep their offsets, and lost ones become a hole that consumers skip. The damaged
    files are kept, with names that end in .damaged. Without --yes it only shows what would be given
    up. Damage that another broker has a good copy of is repaired from there automatically.

    Without TOPIC and PARTITION it repairs the journal of a broker that is alone: if it is damaged
    or missing, a new one is made from the segments, and all partitions continue in a term above
    any that they know. For a broker of a cluster, start it with --rejoin instead.
    """
    output = Output(is_json=is_json)
    if topic is not None and partition is None:
        raise click.UsageError("give PARTITION too, or neither to repair the journal")
    try:
        disk = PosixDisk(data)
    except OSError as error:
        raise click.ClickException(f"cannot use {data}: {error.strerror}") from error
    try:
        disk.lock()
        if topic is None or partition is None:
            return repair_journal(disk, output, is_sure=is_sure)
        group, state = _lone_group(data, topic, partition)
        found = survey(disk, group, state)
        if found.is_whole and not load_damage(disk, group):
            click.echo(f"{topic}-{partition}: nothing is damaged", err=True)
            return 0
        rows = [(one.first, one.end, one.records, one.bytes, one.file) for one in found.losses]
        columns = ("first", "end", "records", "bytes", "file")
        output.table(Table(kind="loss", columns=columns, rows=rows))
        records = counted(sum(one.records for one in found.losses), "record")
        if not is_sure:
            output.not_done(f"{records} of {topic}-{partition} to give up")
            return NOT_DONE
        journal = Journal.open(disk, LogConfig())
        give_up(disk, journal, group, found)
        journal.close()
    finally:
        disk.close()
    output.done(
        f"{topic}-{partition} continues without {records}", topic=topic, partition=partition
    )
    return 0


def _lone_group(data: Path, topic: str, partition: int) -> tuple[GroupId, GroupState]:
    """Find a partition that only this broker has a copy of; raises LogError."""
    found: list[SeenGroup] = []
    for seen in look_at_journal(data / "journal"):
        if isinstance(seen, Damage):
            raise LogError(f"{seen.path} is damaged at byte {seen.position}: {seen.reason}")
        folder, _, index = seen.group.rpartition("/")
        if is_folder_of(folder, topic) and index == str(partition):
            found.append(seen)
    if len(found) != 1:
        raise LogError(f"{data} holds {len(found)} partitions {partition} of a topic {topic}")
    (one,) = found
    others = set(one.state.marks.voters()[-1][1].members) - {one.node}
    if others:
        raise LogError(
            f"broker {shown(sorted(others))} also has a copy of {topic}-{partition}: start this "
            "broker, and it repairs its copy from there"
        )
    return one.group, one.state


def _line(facts: Facts, *, is_json: bool) -> str:
    if is_json:
        return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))
    kind, *rest = facts.items()
    return " ".join([shown(kind[1]), *(f"{name}={_text(name, value)}" for name, value in rest)])


def _text(name: str, value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if name in _OF_RECORDS else shown(value)


def _lines(seen: Seen, *, with_records: bool) -> Iterator[Facts]:
    match seen:
        case SeenBatch():
            yield _batch(seen)
            if with_records:
                yield from _records(seen)
        case SeenIndex():
            yield {"kind": "index", "file": str(seen.path), "entries": seen.entries}
        case SeenGroup():
            yield _group(seen)
        case Damage():
            yield {
                "kind": "damage",
                "file": str(seen.path),
                "position": seen.position,
                "reason": seen.reason,
            }
        case _:
            assert_never(seen)


def _batch(seen: SeenBatch) -> Facts:
    view = seen.view
    facts: Facts = {
        "kind": "batch",
        "file": str(seen.path),
        "position": seen.position,
        "bytes": view.size,
        "base_offset": view.base_offset,
        "last_offset": view.last_offset,
        "records": view.record_count,
        "term": view.term,
        "codec": view.codec.name.lower(),
        "base_timestamp_ms": view.base_timestamp_ms,
        "max_timestamp_ms": view.max_timestamp_ms,
    }
    if view.producer_id != NO_PRODUCER_ID:
        facts["producer_id"] = view.producer_id
        facts["producer_epoch"] = view.producer_epoch
        facts["base_sequence"] = view.base_sequence
    if view.is_transactional:
        facts["transactional"] = True
    if view.is_control:
        facts["control"] = True
    return facts


def _records(seen: SeenBatch) -> Iterator[Facts]:
    try:
        yield from map(_record, read_records(seen.view))
    except BatchError as error:
        yield {
            "kind": "damage",
            "file": str(seen.path),
            "position": seen.position,
            "reason": str(error),
        }


def _record(record: Record) -> Facts:
    return {
        "kind": "record",
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": json_value(record.key),
        "value": json_value(record.value),
        "headers": [[name, json_value(value)] for name, value in record.headers],
    }


def _group(seen: SeenGroup) -> Facts:
    state = seen.state
    start = state.marks.start
    return {
        "kind": "group",
        "group": seen.group,
        "node": seen.node,
        "term": state.hard_state.term,
        "vote": state.hard_state.vote,
        "start_offset": start.offset,
        "marks_before": start.marks_before,
        "marks": [f"{mark.index}@{mark.term}" for mark in state.marks.all()],
        "synced_to": None if state.synced is None else state.synced.end_offset,
        "recovering": state.is_recovering,
    }
