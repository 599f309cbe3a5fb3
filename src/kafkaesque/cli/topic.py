"""`kafkaesque topic`: list, create, describe, change and delete topics."""

from collections.abc import Mapping, Sequence

import click

from kafkaesque.cli.cluster_plan import resized, table_of, wanted
from kafkaesque.cli.main import Group
from kafkaesque.cli.options import (
    NOT_DONE,
    bootstrap_option,
    json_option,
    pairs,
    yes_option,
)
from kafkaesque.cli.output import Output, Table, counted
from kafkaesque.client.admin import Admin
from kafkaesque.client.errors import NotServed
from kafkaesque.client.overview import look
from kafkaesque.client.topics import (
    AS_THE_BROKER_LIKES,
    EARLIEST,
    LATEST,
    Place,
    Setting,
    TopicInfo,
)
from kafkaesque.types import Offset

_SETTING_METAVAR = "NAME=VALUE"


@click.group(cls=Group)
def topic() -> None:
    """List, create, change and delete topics."""


@topic.command("list", epilog="Example: kafkaesque topic list --json")
@click.option("--internal", "with_internal", is_flag=True, help="Also list internal topics.")
@bootstrap_option
@json_option
def list_(*, with_internal: bool, bootstrap: str, is_json: bool) -> None:
    """List the topics.

    For each its name, and its number of partitions and of replicas.
    """
    with Admin(bootstrap) as admin:
        found = [one for one in admin.topics.list() if with_internal or not one.is_internal]
    rows = [(one.name, len(one.partitions), _replicas(one)) for one in found]
    Output(is_json=is_json).table(
        Table(kind="topic", columns=("topic", "partitions", "replicas"), rows=rows)
    )


@topic.command(epilog="Example: kafkaesque topic create orders --partitions 6")
@click.argument("topic")
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    help="Number of partitions.  [default: the broker's]",
)
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    help="Replicas of each partition.  [default: the broker's]",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=pairs,
    metavar=_SETTING_METAVAR,
    help="A setting, by Kafka's name; may be repeated.",
)
@bootstrap_option
@json_option
def create(
    *,
    topic: str,
    partitions: int | None,
    replicas: int | None,
    settings: Sequence[tuple[str, str]],
    bootstrap: str,
    is_json: bool,
) -> None:
    """Create a topic."""
    with Admin(bootstrap) as admin:
        made = admin.topics.create(
            topic,
            partitions=partitions or AS_THE_BROKER_LIKES,
            replicas=replicas or AS_THE_BROKER_LIKES,
            settings=dict(settings),
        )
    count = partitions if made is None else made
    sentence = f"topic {topic} was created, partitions: {count or 'the default'}"
    Output(is_json=is_json).done(sentence, topic=topic, partitions=count)


@topic.command(epilog="Example: kafkaesque topic describe orders")
@click.argument("topic")
@bootstrap_option
@json_option
def describe(*, topic: str, bootstrap: str, is_json: bool) -> None:
    """Show partitions, offsets and settings.

    For each partition its leader and replicas, its first and end offset and how many records that
    makes; and the settings that were set for the topic.
    """
    with Admin(bootstrap) as admin:
        found = admin.topics.describe(topic)
        starts = admin.topics.offsets(found.places, EARLIEST)
        ends = admin.topics.offsets(found.places, LATEST)
        settings = _settings(admin, topic)
    Output(is_json=is_json).tables(
        {"topic": topic},
        [
            _partitions(found, starts, ends),
            Table(
                kind="setting",
                columns=("name", "value"),
                rows=[
                    (one.name, "(hidden)" if one.is_sensitive else one.value)
                    for one in settings
                    if not one.is_default
                ],
            ),
        ],
    )


@topic.command(epilog="Example: kafkaesque topic alter orders --set retention.ms=3600000")
@click.argument("topic")
@click.option("--partitions", type=click.IntRange(min=1), help="Add partitions up to this number.")
@click.option("--replicas", type=click.IntRange(min=1), help="New number of replicas; needs --yes.")
@click.option(
    "--set",
    "put",
    multiple=True,
    callback=pairs,
    metavar=_SETTING_METAVAR,
    help="Change a setting; may be repeated.",
)
@click.option(
    "--unset", "drop", multiple=True, metavar="NAME", help="Reset a setting to its default."
)
@yes_option
@bootstrap_option
@json_option
def alter(  # noqa: PLR0913 - each is an option
    *,
    topic: str,
    partitions: int | None,
    replicas: int | None,
    put: Sequence[tuple[str, str]],
    drop: Sequence[str],
    is_sure: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Change settings of a topic, add partitions, or change the number of replicas.

    Replicas are added and removed while the topic is in use; without --yes nothing is changed, and
    it only shows where they would be.
    """
    if partitions is None and replicas is None and not put and not drop:
        raise click.UsageError("nothing to change: give --partitions, --replicas, --set or --unset")
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        if replicas is not None:
            seen = look(admin)
            moves = resized(seen, topic, replicas)
            if not moves and partitions is None and not put and not drop:
                has = f"has {counted(replicas, 'replica')} already, or is about to"
                output.done(f"topic {topic} {has}", topic=topic, changed=False)
                return 0
            if moves and not is_sure:
                output.table(table_of(seen, moves))
                output.not_done(f"{counted(len(moves), 'partition')} of topic {topic} to change")
                return NOT_DONE
            if moves:
                admin.brokers.move(wanted(seen, moves))
        if put or drop:
            admin.topics.alter(topic, put=dict(put), drop=drop)
        if partitions is not None:
            admin.topics.add_partitions(topic, partitions)
    output.done(f"topic {topic} was changed", topic=topic, changed=True)
    return 0


@topic.command(epilog="Example: kafkaesque topic delete orders --yes")
@click.argument("topics", nargs=-1, required=True)
@yes_option
@bootstrap_option
@json_option
def delete(*, topics: Sequence[str], is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Delete topics and their records.

    Without --yes nothing is deleted, and it only shows how much would be.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        found = [admin.topics.describe(name) for name in dict.fromkeys(topics)]
        if not is_sure:
            rows = [(one.name, len(one.partitions), _count(admin, one)) for one in found]
            columns = ("topic", "partitions", "records")
            output.table(Table(kind="topic", columns=columns, rows=rows))
            output.not_done(f"{counted(len(rows), 'topic')} to delete")
            return NOT_DONE
        for one in found:
            admin.topics.delete(one.name)
            output.done(f"topic {one.name} was deleted", topic=one.name, deleted=True)
    return 0


def _replicas(info: TopicInfo) -> int:
    return max((len(one.replicas) for one in info.partitions), default=0)


def _partitions(
    info: TopicInfo, starts: Mapping[Place, Offset], ends: Mapping[Place, Offset]
) -> Table:
    rows = []
    for one in info.partitions:
        start, end = starts[info.name, one.index], ends[info.name, one.index]
        rows.append((one.index, one.leader, one.replicas, one.in_sync, start, end, end - start))
    columns = ("partition", "leader", "replicas", "in sync", "beginning", "end", "records")
    return Table(kind="partition", columns=columns, rows=rows)


def _settings(admin: Admin, name: str) -> Sequence[Setting]:
    try:
        return admin.topics.settings(name)
    except NotServed as error:
        click.echo(f"kafkaesque: settings are not shown: {error}", err=True)
        return ()


def _count(admin: Admin, info: TopicInfo) -> int:
    """Return how many offsets the topic spans: its number of records, unless compacted."""
    starts = admin.topics.offsets(info.places, EARLIEST)
    ends = admin.topics.offsets(info.places, LATEST)
    return sum(ends[place] - starts[place] for place in info.places)
