"""`kafkaesque cluster status`, `drain`, `move`, `rebalance` and `remove`."""

from collections.abc import Sequence

import click

from kafkaesque.cli.cluster_plan import MOVE_COLUMNS, balanced, table_of, wanted
from kafkaesque.cli.cluster_upgrade import table_of as table_of_features
from kafkaesque.cli.options import NOT_DONE, bootstrap_option, json_option, yes_option
from kafkaesque.cli.output import Output, Table, counted, shown
from kafkaesque.client.admin import Admin
from kafkaesque.client.brokers import BrokerInfo
from kafkaesque.client.findings import drain_obstacles, few_copies
from kafkaesque.client.overview import Overview, look
from kafkaesque.errors import UnknownTopic
from kafkaesque.machines.catalog.catalog_errors import UnknownBroker
from kafkaesque.types import NodeId


@click.command(epilog="Example: kafkaesque cluster status --json")
@bootstrap_option
@json_option
def status(*, bootstrap: str, is_json: bool) -> None:
    """Show brokers, quorum, feature levels, partitions with problems and moves.

    `kafkaesque doctor` reports what is wrong and how to fix it.
    """
    with Admin(bootstrap) as admin:
        seen = look(admin)
    quorum = seen.quorum
    head: dict[str, object] = {
        "cluster": seen.cluster_id,
        "catalog leader": None if quorum is None else quorum.leader,
        "topics": len(seen.topics),
        "partitions": sum(1 for _ in seen.partitions()),
        **_shortfalls(seen),
    }
    if is_json:
        head = {name.replace(" ", "_"): value for name, value in head.items()}
    tables = [_brokers(seen), _members(seen), table_of_features(seen.features), _moves(seen)]
    Output(is_json=is_json).tables(head, tables)


def _shortfalls(seen: Overview) -> dict[str, object]:
    leaderless = behind = few = 0
    for topic, one in seen.partitions():
        least = min(seen.min_in_sync.get(topic.name, 1), len(one.replicas))
        leaderless += not seen.is_led(one)
        behind += len(one.in_sync) < len(one.replicas)
        few += len(one.in_sync) < least
    return {
        "without leader": leaderless,
        "below replication": behind,
        "below min in sync": few,
        "topics with few copies": sorted(few_copies(seen)),
    }


def _brokers(seen: Overview) -> Table:
    rows = []
    for one in seen.brokers:
        folder = seen.folders.get(one.node)
        rows.append(
            (
                one.node,
                str(one.address),
                one.rack or None,
                "up" if one.is_there else "down",
                seen.led_by(one.node),
                len(seen.held_by(one.node)),
                None if folder is None else sum(folder.sizes.values()),
                None if folder is None or folder.free_bytes < 0 else folder.free_bytes,
                one.is_draining,
                None if folder is None else len(folder.damaged),
            )
        )
    columns = (
        *("broker", "address", "rack", "state", "leads", "replicas", "bytes", "free", "drains"),
        "damaged",
    )
    return Table(
        kind="broker",
        columns=columns,
        rows=rows,
        quiet=("rack", "drains", "damaged"),
        sizes=("bytes", "free"),
        headings={"broker": "id", "replicas": "holds", "damaged": "bad"},  # to fit into 80 columns
        whole=("address",),
    )


def _members(seen: Overview) -> Table:
    rows: list[tuple[object, ...]] = []
    if seen.quorum is not None:
        rows += [(one.node, "voter", one.lag) for one in seen.quorum.voters]
        rows += [(one.node, "learner", one.lag) for one in seen.quorum.learners]
    return Table(kind="member", columns=("broker", "role", "lag"), rows=rows)


def _moves(seen: Overview) -> Table:
    rows = [
        (one.topic, one.partition, one.nodes, one.adding, one.removing, seen.progress(one))
        for one in seen.moves
    ]
    columns = ("topic", "partition", "to", "adding", "removing", "percent")
    return Table(kind="move", columns=columns, rows=rows)


@click.command(epilog="Example: kafkaesque cluster drain 3 --yes")
@click.argument("node", type=click.IntRange(min=1))
@click.option("--undo", "is_undone", is_flag=True, help="Let the broker take partitions again.")
@yes_option
@bootstrap_option
@json_option
def drain(*, node: NodeId, is_undone: bool, is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Move everything off a broker, so that it can be removed.

    Its partitions move to the others, a few at a time, and it gets no new ones. Without --yes it
    only shows what the broker holds. `cluster status` shows the progress.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        seen = look(admin)
        held = seen.held_by(node)
        one = _known(seen, node)
        if one.is_draining is not is_undone:
            is_it = "already takes partitions" if is_undone else "is already being drained"
            output.done(f"broker {node} {is_it}", broker=node, draining=one.is_draining)
            return 0
        if not is_undone and not is_sure:
            able = [one.node for one in seen.there if one.node != node and not one.is_draining]
            row = (node, len(held), seen.led_by(node), able)
            columns = ("broker", "replicas", "leads", "others")
            output.table(Table(kind="broker", columns=columns, rows=[row]))
            _warn(seen, node)
            output.not_done(f"{counted(len(held), 'replica')} to move off broker {node}")
            return NOT_DONE
        admin.brokers.drain(node, is_draining=not is_undone)
    sentence = (
        f"broker {node} takes partitions again"
        if is_undone
        else f"broker {node} is being drained of {counted(len(held), 'replica')}: see "
        "`kafkaesque cluster status`"
    )
    if not is_undone:
        _warn(seen, node)
    output.done(sentence, broker=node, draining=not is_undone, replicas=len(held))
    return 0


@click.command(epilog="Example: kafkaesque cluster move orders 0 3 1 2 --yes")
@click.argument("topic")
@click.argument("partition", type=click.IntRange(min=0))
@click.argument("nodes", nargs=-1, type=click.IntRange(min=1))
@click.option("--cancel", "is_cancelled", is_flag=True, help="Cancel the partition's move.")
@yes_option
@bootstrap_option
@json_option
def move(
    *,
    topic: str,
    partition: int,
    nodes: Sequence[NodeId],
    is_cancelled: bool,
    is_sure: bool,
    bootstrap: str,
    is_json: bool,
) -> int:
    """Move a partition to these brokers, the preferred leader first.

    It stays usable during the move. Without --yes nothing is moved.
    """
    if bool(nodes) == is_cancelled:
        raise click.UsageError("name the brokers to move it to, or give --cancel")
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        found = admin.topics.describe(topic)
        held = {one.index: one.replicas for one in found.partitions}
        if partition not in held:
            raise UnknownTopic(f"topic {topic} has no partition {partition}")
        known = [one.node for one in admin.brokers.list()]
        for node in nodes:
            if node not in known:
                raise UnknownBroker(f"there is no broker {node}; there are {shown(known)}")
        under_way = {(one.topic, one.partition): one.nodes for one in admin.brokers.moves()}
        now = under_way.get((topic, partition))
        if now is None if is_cancelled else (now or held[partition]) == tuple(nodes):
            it_is = "is not being moved" if is_cancelled else "is there, or on its way there"
            output.done(
                f"partition {partition} of topic {topic} {it_is} already"
                if nodes
                else f"partition {partition} of topic {topic} {it_is}",
                topic=topic,
                partition=partition,
                to=list(nodes),
            )
            return 0
        if not is_sure:
            row = (topic, partition, held[partition], nodes or None)
            output.table(Table(kind="move", columns=MOVE_COLUMNS, rows=[row]))
            output.not_done("1 move to cancel" if is_cancelled else "1 move to start")
            return NOT_DONE
        admin.brokers.move({(topic, partition): None if is_cancelled else nodes})
    done = "was cancelled" if is_cancelled else "has started"
    sentence = f"the move of partition {partition} of topic {topic} {done}"
    output.done(sentence, topic=topic, partition=partition, to=list(nodes))
    return 0


@click.command(epilog="Example: kafkaesque cluster rebalance --yes")
@yes_option
@bootstrap_option
@json_option
def rebalance(*, is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Even out partitions and leaders across brokers and racks.

    Moves as few partitions as possible. Without --yes it only shows the moves.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        seen = look(admin)
        planned = balanced(seen)
        to_hand = _out_of_place(seen)
        if not planned and not to_hand:
            sentence = "nothing to do: partitions and leaders are balanced"
            output.done(sentence, moves=0, handed_over=0)
            return 0
        if not is_sure:
            output.table(table_of(seen, planned))
            moves = f"{counted(len(planned), 'partition')} to move"
            output.not_done(f"{moves}, {to_hand} to hand over to the preferred leader")
            return NOT_DONE
        if planned:
            admin.brokers.move(wanted(seen, planned))
        handed = admin.brokers.elect_preferred()
    begun = "move has started" if len(planned) == 1 else "moves have started"
    over = "partition was" if handed == 1 else "partitions were"
    sentence = f"{len(planned)} {begun}, {handed} {over} handed over"
    output.done(sentence, moves=len(planned), handed_over=handed)
    return 0


@click.command(epilog="Example: kafkaesque cluster remove 3 --yes")
@click.argument("node", type=click.IntRange(min=1))
@yes_option
@bootstrap_option
@json_option
def remove(*, node: NodeId, is_sure: bool, bootstrap: str, is_json: bool) -> int:
    """Remove a broker that holds nothing, for good.

    Its number is never reused; if it still runs, it stops. Run `cluster drain` first.
    """
    output = Output(is_json=is_json)
    with Admin(bootstrap) as admin:
        if not is_sure:
            seen = look(admin)
            one = _known(seen, node)
            row = (node, str(one.address), len(seen.held_by(node)), one.is_draining)
            columns = ("broker", "address", "replicas", "drains")
            output.table(Table(kind="broker", columns=columns, rows=[row]))
            output.not_done(f"broker {node} to remove")
            return NOT_DONE
        admin.brokers.remove(node)
    output.done(f"broker {node} was removed", broker=node, removed=True)
    return 0


def _out_of_place(seen: Overview) -> int:
    """Count the partitions whose preferred leader could lead but does not."""
    return sum(
        one.leader != one.replicas[0]
        and seen.is_led(one)
        and one.replicas[0] in one.in_sync
        and seen.broker[one.replicas[0]].is_there
        for _, one in seen.partitions()
        if one.replicas and one.replicas[0] in seen.broker
    )


def _warn(seen: Overview, node: NodeId) -> None:
    """Print on stderr what would keep a drain from finishing."""
    for one in drain_obstacles(seen, node):
        click.echo(f"{one.text}  →  {one.command}", err=True)


def _known(seen: Overview, node: NodeId) -> BrokerInfo:
    found = seen.broker.get(node)
    if found is None:
        raise UnknownBroker(f"there is no broker {node}")
    return found
