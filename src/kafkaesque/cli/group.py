"""`kafkaesque group`: consumer groups and share groups, their offsets, lag and settings."""

from collections.abc import Mapping, Sequence
from typing import assert_never

import click

from kafkaesque.cli.main import Group
from kafkaesque.cli.options import (
    NOT_DONE,
    bootstrap_option,
    check_changes,
    json_option,
    pairs,
    yes_option,
)
from kafkaesque.cli.output import Output, Table, counted
from kafkaesque.cli.positions import (
    AtOffset,
    AtTime,
    Beginning,
    End,
    Position,
    PositionType,
    Shift,
)
from kafkaesque.client.admin import Admin
from kafkaesque.client.errors import Refused
from kafkaesque.client.groups import GroupInfo
from kafkaesque.client.settings import Kind
from kafkaesque.client.topics import EARLIEST, LATEST, NOT_FOUND, Place
from kafkaesque.errors import UnknownTopic
from kafkaesque.types import NodeId, Offset

_NO_SUCH_GROUP = "GROUP_ID_NOT_FOUND"


@click.group(cls=Group)
def group() -> None:
    """Inspect consumer groups and share groups, and change their offsets."""


@group.command("list", epilog="Example: kafkaesque group list")
@bootstrap_option
@json_option
def list_(*, bootstrap: str, is_json: bool) -> None:
    """List the groups.

    For each its name, state, kind and type: in classic groups a member assigns partitions, in
    consumer groups the broker does, and members of share groups read partitions together.
    """
    output = Output(is_json=is_json)
    missing: set[NodeId] = set()
    with Admin(bootstrap) as admin:
        found = admin.groups.list(missing)
    rows = [(one.group, one.state, one.protocol_type, one.type) for one in found]
    output.table(Table(kind="group", columns=("group", "state", "kind", "type"), rows=rows))
    output.missing(missing)


@group.command(epilog="Example: kafkaesque group describe billing")
@click.argument("group")
@bootstrap_option
@json_option
def describe(*, group: str, bootstrap: str, is_json: bool) -> None:
    """Show the members and the lag.

    For each partition the committed offset, the end, and how many records lie between. For a share
    group the first offset that is not done, how many are not done, and its own settings.
    """
    with Admin(bootstrap) as admin:
        info = admin.groups.describe(group)
        if info.is_share:
            _describe_share(admin, info, Output(is_json=is_json))
            return
        committed = admin.groups.offsets(group)
        read = {place for member in info.members for place in member.places}
        places = sorted(read | committed.keys())
        ends = _ends(admin, places)
    Output(is_json=is_json).tables(
        {"group": group, "state": info.state, "protocol": info.protocol},
        [_members(info), _standing(info, places, committed, ends)],
    )


@group.command(epilog="Example: kafkaesque group reset billing --topic orders --to '2 hours ago'")
@click.argument("group")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    help="Only this topic; may be repeated.  [default: all with offsets]",
)
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    type=click.IntRange(min=0),
    help="Only this partition of each topic; may be repeated.",
)
@click.option(
    "--to",
    required=True,
    type=PositionType(),
    help="earliest, latest, an offset, a time (ISO or '2 hours ago'), or a shift like -100.",
)
@yes_option
@bootstrap_option
@json_option
def reset(
    *,
    group: str,
    topics: Sequence[str],
    partitions: Sequence[int],
    to: Position,
    is_sure: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Move a group to other offsets.

    Refused while it has members. Offsets out of range are moved to the nearest end. Without --yes
    nothing is moved, and it only shows where the group would go.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        is_share = _is_share_and_idle(admin, group)
        committed = _starts(admin, group) if is_share else admin.groups.offsets(group)
        places = _places(admin, topics, partitions, committed)
        if not places:
            raise click.UsageError(f"group {group} has no offsets: give a --topic")
        targets = _targets(admin, places, to, committed)
        rows = [
            (topic, partition, committed.get((topic, partition)), targets[topic, partition])
            for topic, partition in places
        ]
        columns = ("topic", "partition", "committed", "new")
        if all(before == new for *_, before, new in rows):
            output.done(f"group {group} is there already", group=group, moved=False)
            return 0
        output.table(Table(kind="partition", columns=columns, rows=rows))
        if not is_sure:
            output.not_done(f"group {group} would move")
            return NOT_DONE
        if is_share:
            admin.share_groups.set_starts(group, targets)
        else:
            admin.groups.commit(group, targets)
    if not is_json:
        output.done(f"group {group} was moved")
    return 0


@group.command(epilog="Example: kafkaesque group alter jobs --set share.auto.offset.reset=earliest")
@click.argument("group")
@click.option(
    "--set",
    "put",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="Change a setting; may be repeated.",
)
@click.option(
    "--unset", "drop", multiple=True, metavar="NAME", help="Reset a setting to its default."
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Only check whether it is possible.")
@bootstrap_option
@json_option
def alter(
    *,
    group: str,
    put: Sequence[tuple[str, str]],
    drop: Sequence[str],
    is_dry_run: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Change settings of a group.

    The group need not exist yet: where a share group begins is decided when its first member comes.
    """
    check_changes(put, drop)
    with Admin(bootstrap) as admin:
        admin.settings.alter(Kind.GROUP, group, dict(put), drop, is_dry_run=is_dry_run)
    done = "settings could be changed" if is_dry_run else "settings changed"
    Output(is_json=is_json).done(f"group {group}: {done}", group=group, changed=not is_dry_run)
    return NOT_DONE if is_dry_run else 0


@group.command(epilog="Example: kafkaesque group delete billing --yes")
@click.argument("groups", nargs=-1, required=True)
@yes_option
@bootstrap_option
@json_option
def delete(*, groups: Sequence[str], is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Delete groups and their offsets.

    Refused while they have members. Without --yes nothing is deleted.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        found = [admin.groups.describe(name) for name in dict.fromkeys(groups)]
        if not is_sure:
            rows = [
                (one.group, one.state, len(one.members), len(_positions(admin, one)))
                for one in found
            ]
            columns = ("group", "state", "members", "offsets")
            output.table(Table(kind="group", columns=columns, rows=rows))
            output.not_done(f"{counted(len(rows), 'group')} to delete")
            return NOT_DONE
        for one in found:
            admin.groups.delete(one.group)
            output.done(f"group {one.group} was deleted", group=one.group, deleted=True)
    return 0


def _describe_share(admin: Admin, info: GroupInfo, output: Output) -> None:
    standing = admin.share_groups.standing(info.group)
    settings = admin.settings.changed(Kind.GROUP, info.group)
    read = {place for member in info.members for place in member.places}
    rows = []
    for place in sorted(read | standing.keys()):
        known = standing.get(place)
        readers = [member.client for member in info.members if place in member.places]
        start, lag = (None, None) if known is None else (known.start, known.lag)
        rows.append((*place, start, lag, readers or None))
    columns = ("topic", "partition", "start", "lag", "read by")
    output.tables(
        {"group": info.group, "state": info.state, "protocol": info.protocol},
        [
            _members(info),
            Table(kind="partition", columns=columns, rows=rows),
            Table(
                kind="setting",
                columns=("name", "value"),
                rows=[(one.name, one.value) for one in settings],
            ),
        ],
    )


def _starts(admin: Admin, group: str) -> dict[Place, Offset]:
    return {place: one.start for place, one in admin.share_groups.standing(group).items()}


def _positions(admin: Admin, info: GroupInfo) -> Mapping[Place, Offset]:
    return _starts(admin, info.group) if info.is_share else admin.groups.offsets(info.group)


def _members(info: GroupInfo) -> Table:
    rows = [
        (one.member, one.client, one.host, [f"{topic}-{number}" for topic, number in one.places])
        for one in info.members
    ]
    return Table(kind="member", columns=("member", "client", "host", "partitions"), rows=rows)


def _standing(
    info: GroupInfo,
    places: Sequence[Place],
    committed: Mapping[Place, Offset],
    ends: Mapping[Place, Offset],
) -> Table:
    readers = {place: member.client for member in info.members for place in member.places}
    rows = []
    for place in places:
        offset, end = committed.get(place), ends.get(place)
        lag = None if offset is None or end is None else max(0, end - offset)
        rows.append((*place, offset, end, lag, readers.get(place)))
    columns = ("topic", "partition", "committed", "end", "lag", "read by")
    return Table(kind="partition", columns=columns, rows=rows)


def _ends(admin: Admin, places: Sequence[Place]) -> dict[Place, Offset]:
    """Return the ends of the partitions that still exist: offsets outlive topics for a while."""
    kept = set(_existing(admin, {topic for topic, _ in places}))
    return admin.topics.offsets([place for place in places if place in kept], LATEST)


def _existing(admin: Admin, topics: set[str]) -> list[Place]:
    found: list[Place] = []
    for topic in sorted(topics):
        try:
            found += admin.topics.describe(topic).places
        except UnknownTopic:
            continue
    return found


def _is_share_and_idle(admin: Admin, name: str) -> bool:
    """Return whether it is a share group; raises Refused if it has members."""
    try:
        info = admin.groups.describe(name)
    except Refused as refused:
        if refused.code != _NO_SUCH_GROUP:
            raise
        return False  # its first offsets create it
    if info.members:
        raise Refused(
            f"group {name} has members ({len(info.members)}): stop them first", "NON_EMPTY_GROUP"
        )
    return info.is_share


def _places(
    admin: Admin,
    topics: Sequence[str],
    partitions: Sequence[int],
    committed: Mapping[Place, Offset],
) -> list[Place]:
    if topics:
        found = [place for topic in topics for place in admin.topics.describe(topic).places]
    else:
        existing = set(_existing(admin, {topic for topic, _ in committed}))
        found = [place for place in committed if place in existing]
    wanted = sorted(set(found))
    return [place for place in wanted if not partitions or place[1] in partitions]


def _targets(
    admin: Admin, places: Sequence[Place], to: Position, committed: Mapping[Place, Offset]
) -> dict[Place, Offset]:
    starts = admin.topics.offsets(places, EARLIEST)
    ends = admin.topics.offsets(places, LATEST)
    match to:
        case Beginning():
            return starts
        case End():
            return ends
        case AtOffset(offset):
            wanted = dict.fromkeys(places, offset)
        case AtTime(timestamp_ms):
            wanted = admin.topics.offsets(places, timestamp_ms)
            wanted = {p: ends[p] if o == NOT_FOUND else o for p, o in wanted.items()}
        case Shift(records):
            wanted = {place: committed.get(place, starts[place]) + records for place in places}
        case _:
            assert_never(to)
    return {place: min(max(wanted[place], starts[place]), ends[place]) for place in places}
