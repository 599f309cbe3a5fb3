"""What is wrong with a cluster, and the command that mends it: pure functions of one look."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafkaesque.client.brokers import ELECTION_MS_MAX, MoveInfo
from kafkaesque.client.overview import Overview
from kafkaesque.types import NodeId

FREE_PERCENT_MIN = 10
"""Of a disk: below it there is hardly time left to act."""

NAMED_MAX = 5
"""Partitions and topics that a sentence names; of the others it gives the number."""

UNEVEN = 2
"""Whoever leads one more than another is even with it."""

_RAFT_SURVIVES = 3
"""Brokers below which the loss of one is felt."""


class Kind(StrEnum):
    """What can be wrong, the worst first."""

    CATALOG = "catalog"
    LEADERLESS = "leaderless"
    MIN_IN_SYNC = "min-in-sync"
    BROKER_DOWN = "broker-down"
    DISK = "disk"
    UNDER_REPLICATED = "under-replicated"
    STUCK = "stuck"
    FEW_BROKERS = "few-brokers"
    REPLICATION = "replication"
    UNEVEN = "uneven"
    EMPTY = "empty"
    LEVELS = "levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong."""

    kind: Kind
    text: str
    command: str
    """What to type, or to do, to mend it."""


def findings(now: Overview, before: Overview | None = None) -> list[Finding]:
    """Return what is wrong, the worst first; with an earlier look, also moves that stand still."""
    found = [
        *_catalog(now),
        *_brokers(now),
        *_partitions(now),
        *_disks(now),
        *_moves(now, before),
        *_sizes(now),
        *_leaders(now),
        *_crowded(now),
        *_emptied(now),
        *_levels(now),
    ]
    order = list(Kind)
    return sorted(found, key=lambda one: order.index(one.kind))


def _catalog(now: Overview) -> Iterator[Finding]:
    if now.quorum is None:
        away = [one.node for one in now.brokers if not one.is_there]
        lost = " ".join(f"--lost {node}" for node in away)
        # What loses data is named only beside those that are away: others may yet elect a leader.
        yield Finding(
            kind=Kind.CATALOG,
            text=f"nobody has led the catalog for {ELECTION_MS_MAX // 1000} seconds, so nothing "
            "can be changed",
            command=f"start broker {_and(away)} again; only if it is gone for good, and what it "
            f"alone held may be lost: kafkaesque cluster recover --data DIR {lost}"
            if away
            else "see that brokers reach each other, and look again: kafkaesque doctor",
        )


def _levels(now: Overview) -> Iterator[Finding]:
    """Of brokers that are away nobody knows what they support."""
    rising = [one for one in now.features if one.possible > one.finalized]
    if rising and len(now.there) == len(now.brokers):
        names = ", ".join(f"{one.name} {one.possible}" for one in rising)
        yield Finding(
            kind=Kind.LEVELS,
            text=f"all brokers support {names}, but the cluster does not use it yet",
            command="kafkaesque cluster upgrade --yes",
        )


def _brokers(now: Overview) -> Iterator[Finding]:
    for one in now.brokers:
        if not one.is_there and not one.is_draining:
            yield Finding(
                kind=Kind.BROKER_DOWN,
                text=f"broker {one.node} at {one.address} is down",
                command=f"start it again: kafkaesque serve --data DIR; only if it is gone for "
                f"good: kafkaesque cluster drain {one.node} --yes",
            )
    if len(now.brokers) == _RAFT_SURVIVES - 1:
        where = now.there[0].address if now.there else "HOST:PORT"
        yield Finding(
            kind=Kind.FEW_BROKERS,
            text="there are only two brokers: if one is lost, the other cannot go on by itself",
            command=f"add a third: kafkaesque serve --join {where} --port 0 --data DIR",
        )


def _partitions(now: Overview) -> Iterator[Finding]:
    leaderless, few, behind = [], [], []
    missing: set[NodeId] = set()
    for topic, one in now.partitions():
        name = f"{topic.name}-{one.index}"
        lacks = {node for node in one.replicas if node not in one.in_sync}
        if not now.is_led(one):
            leaderless.append(name)
        elif len(one.in_sync) < min(now.min_in_sync.get(topic.name, 1), len(one.replicas)):
            few.append(name)
        elif lacks:
            behind.append(name)
        missing |= lacks
    away = sorted(node for node in missing if node in now.broker and not now.broker[node].is_there)
    mend = (
        f"start broker {_and(away)} again: kafkaesque serve --data DIR"
        if away
        else "kafkaesque cluster status shows whether they catch up"
    )
    if leaderless:
        text = f"{_number(leaderless, 'partition')} without a leader: {_named(leaderless)}"
        yield Finding(kind=Kind.LEADERLESS, text=text, command=mend)
    if few:
        text = f"{_number(few, 'partition')} below min.insync.replicas: {_named(few)}"
        yield Finding(kind=Kind.MIN_IN_SYNC, text=f"{text}; acks=all is refused", command=mend)
    if behind:
        text = f"{_number(behind, 'partition')} with replicas that lag: {_named(behind)}"
        yield Finding(kind=Kind.UNDER_REPLICATED, text=text, command=mend)


def _disks(now: Overview) -> Iterator[Finding]:
    for node, folder in sorted(now.folders.items()):
        if folder.total_bytes <= 0:
            continue
        percent = folder.free_bytes * 100 // folder.total_bytes
        if percent >= FREE_PERCENT_MIN:
            continue
        by_topic: dict[str, int] = {}
        for (topic, _), size in folder.sizes.items():
            by_topic[topic] = by_topic.get(topic, 0) + size
        largest = max(by_topic, key=lambda name: by_topic[name], default="TOPIC")
        yield Finding(
            kind=Kind.DISK,
            text=f"the disk of broker {node} has {percent} % left, {folder.free_bytes} bytes",
            command=f"make room, or keep less: kafkaesque topic alter {largest} "
            "--set retention.ms=MILLISECONDS",
        )


def _moves(now: Overview, before: Overview | None) -> Iterator[Finding]:
    for move in now.moves:
        name = f"{move.topic}-{move.partition}"
        call_off = f"kafkaesque cluster move {move.topic} {move.partition} --cancel --yes"
        away = [n for n in move.nodes if n not in now.broker or not now.broker[n].is_there]
        if away:
            yield Finding(
                kind=Kind.STUCK,
                text=f"the move of {name} to {_and(move.nodes)} waits for broker {_and(away)}",
                command=f"start broker {_and(away)} again, or: {call_off}",
            )
        elif before is not None and _stands_still(move, now, before):
            yield Finding(
                kind=Kind.STUCK,
                text=f"the move of {name} to {_and(move.nodes)} does not get on",
                command=f"allow more with moves.catch_up_bytes_per_second, or: {call_off}",
            )


def _stands_still(move: MoveInfo, now: Overview, before: Overview) -> bool:
    """Whether nothing has come since; one that waits for its turn has not begun."""
    place = move.topic, move.partition

    def sizes(at: Overview) -> list[int | None]:
        return [at.folders[n].sizes.get(place) for n in move.adding if n in at.folders]

    progress = now.progress(move)
    is_behind = progress is not None and progress < 100
    return move in before.moves and is_behind and sizes(now) == sizes(before)


def few_copies(now: Overview) -> dict[str, int]:
    """Return the users' topics with fewer replicas than a new one would get, and how many."""
    held = {
        topic.name: min((len(one.replicas) for one in topic.partitions), default=0)
        for topic in now.topics
        if not topic.is_internal
    }
    return {name: count for name, count in held.items() if count < now.default_replication}


def _sizes(now: Overview) -> Iterator[Finding]:
    for name, held in few_copies(now).items():
        if any(move.topic == name for move in now.moves):
            continue
        yield Finding(
            kind=Kind.REPLICATION,
            text=f"topic {name} has {held} of {now.default_replication} replicas",
            command=f"kafkaesque topic alter {name} --replicas {now.default_replication} --yes",
        )


def _leaders(now: Overview) -> Iterator[Finding]:
    able = [one.node for one in now.there if not one.is_draining]
    if len(able) < len(now.brokers) or len(able) < 2:  # one is always even
        return
    counts = {node: now.led_by(node) for node in able}
    most, least = max(able, key=counts.__getitem__), min(able, key=counts.__getitem__)
    share = -(-sum(counts.values()) // len(able))
    if counts[most] - counts[least] >= UNEVEN and counts[most] * 2 >= share * 3:
        yield Finding(
            kind=Kind.UNEVEN,
            text=f"broker {most} leads {counts[most]} partitions and broker {least} only "
            f"{counts[least]}",
            command="kafkaesque cluster rebalance --yes",
        )


def _crowded(now: Overview) -> Iterator[Finding]:
    """Find brokers whose partitions nobody can take: each needs as many brokers as replicas."""
    able = sum(1 for one in now.there if not one.is_draining)
    for one in now.brokers:
        if not one.is_draining:
            continue
        held = [len(each.replicas) for _, each in now.partitions() if one.node in each.replicas]
        if held and max(held) > able:
            yield Finding(
                kind=Kind.STUCK,
                text=f"broker {one.node} cannot be drained: it holds partitions with {max(held)} "
                f"replicas, and {able} brokers take any",
                command="add a broker with kafkaesque serve --join, or have fewer copies: "
                f"kafkaesque topic alter TOPIC --replicas {max(1, able)} --yes",
            )


def _emptied(now: Overview) -> Iterator[Finding]:
    voters = {one.node for one in now.quorum.voters} if now.quorum is not None else None
    for one in now.brokers:
        is_idle = voters is not None and one.node not in voters
        if one.is_draining and is_idle and not now.held_by(one.node):
            yield Finding(
                kind=Kind.EMPTY,
                text=f"broker {one.node} is drained and holds nothing any more",
                command=f"kafkaesque cluster remove {one.node} --yes",
            )


def _and(nodes: Sequence[NodeId]) -> str:
    return ", ".join(map(str, nodes))


def _number(some: Sequence[str], what: str) -> str:
    return f"{len(some)} {what}" if len(some) == 1 else f"{len(some)} {what}s"


def _named(some: Sequence[str]) -> str:
    rest = len(some) - NAMED_MAX
    return ", ".join(some[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
