"""`kafkaesque backup` and `kafkaesque restore`: topics and groups to a folder and back."""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

from kafkaesque.backup.check import check as check_backup
from kafkaesque.backup.limits import BackupLimits
from kafkaesque.backup.manifest import SavedTopic
from kafkaesque.backup.plan import EVERYTHING, Wanted
from kafkaesque.backup.restore import Restorer, What
from kafkaesque.backup.save import Saver, Surroundings
from kafkaesque.backup.target import Wishes
from kafkaesque.backup.watch import Watch
from kafkaesque.cli.main import FAILED, INTERRUPTED
from kafkaesque.cli.options import F, bootstrap_option, json_option, pairs
from kafkaesque.cli.output import Output, Table, counted
from kafkaesque.client.admin import Admin
from kafkaesque.client.topics import AS_THE_BROKER_LIKES
from kafkaesque.clock import SystemClock

_COLUMNS = ("topic", "partitions", "records", "bytes")


def _which_options(command: F) -> F:
    """Add `--topic` and `--group`."""
    topics = click.option(
        "--topic",
        "topics",
        multiple=True,
        metavar="PATTERN",
        help="Only these topics, like 'order*'; may be repeated.  [default: all but internal ones]",
    )
    groups = click.option(
        "--group",
        "groups",
        multiple=True,
        metavar="PATTERN",
        help="Only these groups; may be repeated.  [default: all]",
    )
    return topics(groups(command))


@click.command(epilog="Example: kafkaesque backup monday --topic 'order*'")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@_which_options
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Check the backup; change nothing and contact no broker.",
)
@bootstrap_option
@json_option
def backup(
    *,
    folder: Path,
    topics: Sequence[str],
    groups: Sequence[str],
    is_check: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Save topics and groups to a folder while the brokers run.

    Each partition is saved from its first record to its end when the command started. To resume an
    interrupted backup, run the same command again. With --check, exit code 1 reports damage.
    """
    output = Output(is_json=is_json)
    if is_check:
        if topics or groups:
            raise click.UsageError("--check takes no --topic and no --group")
        return _check(folder, output)
    wanted = Wanted(topics=tuple(topics) or EVERYTHING, groups=tuple(groups) or EVERYTHING)

    def save(around: Surroundings) -> int:
        with Admin(bootstrap) as admin:
            saved = Saver(admin, folder, around).run(wanted)
        if is_json:
            output.tables(
                {"folder": str(folder), "cluster_id": saved.cluster_id, "notes": saved.notes},
                [
                    _table({topic.name: topic for topic in saved.topics}),
                    _groups_table(one.group for one in saved.groups),
                ],
            )
        else:
            output.done(_sentence("saved", saved.topics, len(saved.groups)))
        return 0

    return _watched(save, folder, is_json=is_json)


@click.command(epilog="Example: kafkaesque restore monday --into restored-")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@_which_options
@click.option("--into", "prefix", default="", metavar="PREFIX", help="Prefix for each name.")
@click.option(
    "--rename",
    "renames",
    multiple=True,
    callback=pairs,
    metavar="OLD=NEW",
    help="Rename a topic; may be repeated.",
)
@click.option(
    "--set",
    "put",
    multiple=True,
    callback=pairs,
    metavar="NAME=VALUE",
    help="A setting of all restored topics; may be repeated.",
)
@click.option(
    "--unset",
    "drop",
    multiple=True,
    metavar="NAME",
    help="Do not restore this setting; may be repeated.",
)
@click.option(
    "--replicas",
    type=click.IntRange(min=1),
    help="Replicas of each partition.  [default: the broker's]",
)
@click.option(
    "--with-cluster",
    "is_with_cluster",
    is_flag=True,
    help="Also restore the cluster's feature levels and settings.",
)
@click.option(
    "--without",
    "left_out",
    multiple=True,
    metavar="SECTION",
    help="With --with-cluster: skip this section, like features; may be repeated.",
)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to keep the progress until it is done.  [default: in FOLDER]",
)
@bootstrap_option
@json_option
def restore(  # noqa: PLR0913 - the command's options
    *,
    folder: Path,
    topics: Sequence[str],
    groups: Sequence[str],
    prefix: str,
    renames: Sequence[tuple[str, str]],
    put: Sequence[tuple[str, str]],
    drop: Sequence[str],
    replicas: int | None,
    is_with_cluster: bool,
    left_out: Sequence[str],
    state: Path | None,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Restore topics and groups from a folder.

    A topic that exists must be empty; otherwise the command is refused before it changes anything.
    To resume an interrupted restore, run the same command again. Records get new offsets, from 0
    without gaps, and groups are set to the same records. Exit code 1 with everything restored
    means that a group was in use and could not be set.
    """
    output = Output(is_json=is_json)
    what = What(
        topics=tuple(topics) or EVERYTHING,
        groups=tuple(groups) or EVERYTHING,
        prefix=prefix,
        renames=dict(renames),
        wishes=Wishes(
            put=dict(put), drop=frozenset(drop), replicas=replicas or AS_THE_BROKER_LIKES
        ),
        is_with_cluster=is_with_cluster,
        left_out=tuple(left_out),
        state_path=state,
    )
    if left_out and not is_with_cluster:
        raise click.UsageError("--without needs --with-cluster")

    def bring_back(around: Surroundings) -> int:
        with Admin(bootstrap) as admin:
            restored = Restorer(admin, folder, around).run(what)
        if is_json:
            output.tables(
                {
                    "folder": str(folder),
                    "sections": restored.sections,
                    "notes": restored.failures,
                },
                [_table(restored.topics), _groups_table(restored.groups)],
            )
        else:
            sentence = _sentence("restored", restored.topics.values(), len(restored.groups))
            output.done(", ".join([sentence, *restored.sections]))
        return FAILED if restored.failures else 0

    return _watched(bring_back, folder, is_json=is_json)


def _check(folder: Path, output: Output) -> int:
    checked = check_backup(folder, Watch())
    for damage in checked.damages:
        click.echo(f"kafkaesque: {damage}", err=True)
    found = checked.backup
    output.done(
        f"{_sentence('checked', found.topics, len(found.groups))}, {len(checked.damages)} damaged",
        folder=str(folder),
        records=sum(topic.records for topic in found.topics),
        bytes=sum(topic.size for topic in found.topics),
        damages=[
            {"file": one.path, "position": one.position, "reason": one.reason}
            for one in checked.damages
        ],
    )
    return FAILED if checked.damages else 0


def _table(topics: Mapping[str, SavedTopic]) -> Table:
    rows = [
        (name, len(topic.partitions), topic.records, topic.size) for name, topic in topics.items()
    ]
    return Table(kind="topic", columns=_COLUMNS, rows=rows)


def _groups_table(groups: Iterable[str]) -> Table:
    return Table(kind="group", columns=("group",), rows=[(group,) for group in groups])


def _sentence(verb: str, topics: Iterable[SavedTopic], groups: int) -> str:
    saved = list(topics)
    records = sum(topic.records for topic in saved)
    size = sum(topic.size for topic in saved)
    return (
        f"{verb}: {counted(len(saved), 'topic')}, {counted(records, 'record')} in "
        f"{counted(size, 'byte')} of batches, {counted(groups, 'group')}"
    )


def _watched(work: Callable[[Surroundings], int], folder: Path, *, is_json: bool) -> int:
    """Do the work and show its progress; on interruption, print how to resume."""

    def do(watch: Watch) -> int:
        around = Surroundings(
            clock=SystemClock(), sleep=time.sleep, watch=watch, limits=BackupLimits()
        )
        return work(around)

    try:
        if not sys.stderr.isatty():
            return do(Watch() if is_json else Lines())
        from kafkaesque.cli.backup_bar import Bar

        with Bar() as bar:
            return do(bar)
    except KeyboardInterrupt:
        click.echo("kafkaesque: interrupted; run the same command to resume", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        raise click.ClickException(f"{error.filename or folder}: {error.strerror}") from error


class Lines(Watch):
    """A line for each topic, for output that is not a terminal."""

    def topic_done(self, topic: str, *, records: int, size: int) -> None:
        """Print that a topic is done."""
        click.echo(f"{topic}\t{records}\t{size}")

    def note(self, sentence: str) -> None:
        """Print on stderr what differs from the request."""
        click.echo(f"kafkaesque: {sentence}", err=True)
