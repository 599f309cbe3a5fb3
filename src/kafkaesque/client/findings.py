"""What is wrong with a cluster, and the command that fixes it: pure functions of an overview."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafkaesque.client.brokers import ELECTION_MS_MAX, MoveInfo
from kafkaesque.client.overview import Overview, is_majority
from kafkaesque.client.sentences import listed, named_brokers
from kafkaesque.client.topics import Place
from kafkaesque.types import NodeId

FREE_PERCENT_MIN = 10
"""Percent of a disk: below this there is hardly time left to act."""

NAMED_MAX = 5
"""Partitions and topics named in a sentence; the others are only counted."""

UNEVEN = 2
"""From this difference leaders are uneven: with 1, a change would gain nothing."""

_RAFT_SURVIVES = 3
"""Brokers below which the loss of one is felt."""


class Kind(StrEnum):
    """What can be wrong, the worst first."""

    CATALOG = "catalog"
    LEADERLESS = "leaderless"
    DAMAGED = "damaged"
    OLD_COPY = "old-copy"
    SHARES_STUCK = "shares-stuck"
    MIN_IN_SYNC = "min-in-sync"
    BROKER_DOWN = "broker-down"
    DISK = "disk"
    CROWDED = "crowded"
    CLOCK = "clock"
    UNDER_REPLICATED = "under-replicated"
    STUCK = "stuck"
    FEW_BROKERS = "few-brokers"
    REPLICATION = "replication"
    UNEVEN = "uneven"
    EMPTY = "empty"
    LEVELS = "levels"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One problem."""

    kind: Kind
    text: str
    command: str
    """The command to type, or what to do, to fix it."""


def findings(now: Overview, before: Overview | None = None) -> list[Finding]:
    """Return all problems, the worst first; with an earlier overview, also stalled moves."""
    found = [
        *_catalog(now),
        *_brokers(now),
        *_partitions(now),
        *_damaged(now),
        *_disks(now),
        *_clocks(now),
        *_told(now),
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
        away = [one.node for one in now.brokers if not one.is_there and not one.is_draining]
        # Commands that lose data need brokers that are away: else a leader may still be elected.
        yield Finding(
            kind=Kind.CATALOG,
            text=f"the catalog has had no leader for {ELECTION_MS_MAX // 1000} seconds, so nothing "
            "can be changed",
            command=f"start {named_brokers(away)} again; only if {_they_are(away)} gone for good, "
            f"which may lose what no other broker held: {_recover(away)}"
            if away
            else "make sure that brokers reach each other, and check again: kafkaesque doctor",
        )


def _levels(now: Overview) -> Iterator[Finding]:
    """Find levels that can rise; unknown while a broker is away."""
    rising = [one for one in now.features if one.possible > one.finalized]
    if rising and len(now.there) == len(now.brokers):
        names = ", ".join(f"{one.name} {one.possible}" for one in rising)
        yield Finding(
            kind=Kind.LEVELS,
            text=f"all brokers support {names}, but the cluster does not use it yet",
            command="kafkaesque cluster upgrade --yes",
        )


def _brokers(now: Overview) -> Iterator[Finding]:
    given_up = now.given_up
    for one in now.brokers:
        if one.is_there or one.is_draining:
            continue
        if now.quorum is None:  # a drain could not be agreed on
            yield Finding(
                kind=Kind.BROKER_DOWN,
                text=f"broker {one.node} at {one.address} is down",
                command="start it again: kafkaesque serve --data DIR",
            )
        elif one.node in given_up:
            yield Finding(
                kind=Kind.BROKER_DOWN,
                text=f"broker {one.node} at {one.address} is lost: others went on without it",
                command=f"{_drain([one.node])}; never start it with its old data again",
            )
        else:
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
            text="there are only two brokers: if one is lost, the other cannot go on alone",
            command=f"add a third: kafkaesque serve --join {where} --port 0 --data DIR",
        )


def _partitions(now: Overview) -> Iterator[Finding]:
    few, behind = [], []
    missing: set[NodeId] = set()
    for topic, one in now.partitions():
        name = f"{topic.name}-{one.index}"
        lacks = {node for node in one.replicas if node not in one.in_sync}
        if not now.is_led(one):
            continue
        if len(one.in_sync) < min(now.min_in_sync.get(topic.name, 1), len(one.replicas)):
            few.append(name)
        elif lacks:
            behind.append(name)
        missing |= lacks
    mend = _mend(now, missing)
    yield from _leaderless(now)
    if few:
        text = f"{_number(few, 'partition')} below min.insync.replicas: {_named(few)}"
        yield Finding(kind=Kind.MIN_IN_SYNC, text=f"{text}; acks=all is refused", command=mend)
    if behind:
        text = f"{_number(behind, 'partition')} with replicas that lag: {_named(behind)}"
        yield Finding(kind=Kind.UNDER_REPLICATED, text=text, command=mend)


def _clocks(now: Overview) -> Iterator[Finding]:
    for node, doubt in sorted(now.clock_doubts.items()):
        if doubt:
            yield Finding(
                kind=Kind.CLOCK,
                text=f"broker {node}: {doubt}",
                command="synchronise the clocks of all brokers, for instance by NTP; the rest is "
                "automatic",
            )


def _damaged(now: Overview) -> Iterator[Finding]:
    """Find damaged copies, as reported by their broker if it says what they are.

    Copies waiting to be refilled are reported separately (`_told`).
    """
    copies = {(topic.name, one.index): len(one.replicas) for topic, one in now.partitions()}
    for node in sorted({*now.folders, *now.problems}):
        told = now.problems.get(node, {})
        places = now.folders[node].damaged if node in now.folders else ()
        names = [f"{topic}-{index}" for topic, index in places]
        lone = [f"{place[0]}-{place[1]}" for place in places if copies.get(place, 1) == 1]
        if "damaged" in told:
            text = f"broker {node}: {told['damaged']}"
        elif names and "unfilled" not in told:
            text = f"broker {node} has {_number(names, 'damaged partition')}: {_named(names)}"
        else:
            continue
        mended = "check its disk; what others hold is repaired automatically: if it persists, the "
        mended += "broker's log says why (repair_failed)"
        yield Finding(kind=Kind.DAMAGED, text=text, command=_only_copy(lone) if lone else mended)


def _only_copy(names: Sequence[str]) -> str:
    """Return what can be done about damage to the only copy."""
    return (
        f"there is no other copy of {_named(names)}: restore the folder from a backup while the "
        "broker is stopped, or go on without the lost data: kafkaesque log repair"
    )


def _leaderless(now: Overview) -> Iterator[Finding]:
    """Find partitions without a leader; the fix depends on which brokers are still available."""
    there, given_up = {one.node for one in now.there}, now.given_up
    waiting: list[str] = []
    harmed: list[str] = []
    harmed_on: set[NodeId] = set()
    halves: list[str] = []
    gone: list[str] = []
    missing: set[NodeId] = set()
    topics: dict[str, None] = {}
    for topic, one in now.partitions():
        name = f"{topic.name}-{one.index}"
        if now.is_led(one):
            continue
        left = [node for node in one.replicas if node not in given_up]
        if not left:
            gone.append(name)
            topics[topic.name] = None
        elif there.issuperset(left) and (bad := _damaged_on(now, (topic.name, one.index))):
            harmed.append(name)
            harmed_on |= bad
        elif is_majority(left, one.replicas):
            waiting.append(name)
            missing.update(set(left) - there)
        else:
            halves.append(name)
    if waiting:
        yield _without_leader(waiting, _mend(now, missing))
    if harmed:
        where, them = named_brokers(sorted(harmed_on)), "it" if len(harmed) == 1 else "them"
        text = f"damage on {where} keeps {them} from having one: see the finding about that "
        yield _without_leader(harmed, f"{text}damage")
    if halves:
        yield _without_leader(
            halves, f"stop one of the remaining brokers: {_recover(sorted(given_up))}"
        )
    if gone:
        deleting = f"kafkaesque topic delete {' '.join(list(topics)[:NAMED_MAX])} --yes"
        text = "they were only on lost brokers: restore a backup, or delete the topic: "
        yield _without_leader(gone, text + deleting)


def _damaged_on(now: Overview, place: Place) -> set[NodeId]:
    """Return the brokers whose copy of a partition is damaged."""
    return {node for node, folder in now.folders.items() if place in folder.damaged}


def _without_leader(names: Sequence[str], command: str) -> Finding:
    text = f"{_number(names, 'partition')} without a leader: {_named(names)}"
    return Finding(kind=Kind.LEADERLESS, text=text, command=command)


def _mend(now: Overview, missing: Collection[NodeId]) -> str:
    """Return what brings replicas on these brokers back; a lost broker never comes back."""
    away = sorted(node for node in missing if node in now.broker and not now.broker[node].is_there)
    lost = [node for node in away if node in now.given_up]
    waiting = [node for node in away if node not in lost]
    if waiting:
        return f"start {named_brokers(waiting)} again: kafkaesque serve --data DIR"
    undrained = [node for node in lost if not now.broker[node].is_draining]
    if undrained:
        return _drain(undrained)
    if lost:
        return f"draining {named_brokers(lost)} fixes it: see kafkaesque cluster status"
    return "kafkaesque cluster status shows whether they catch up"


def _told(now: Overview) -> Iterator[Finding]:
    """Find problems that only a broker itself can see and report."""
    for node, told in sorted(now.problems.items()):
        if "unfilled" in told:
            yield Finding(
                kind=Kind.DAMAGED,
                text=f"broker {node}: {told['unfilled']}",
                command="bring the other copies back first: start the brokers that are down, and "
                "restore damaged folders from a copy while their brokers are stopped",
            )
        if "given-up" in told:
            yield Finding(
                kind=Kind.DAMAGED,
                text=f"broker {node}: {told['given-up']}",
                command="inform the users of these records; then stop the broker, "
                "remove the file given-up from the partition's folder, and start it again",
            )
        if "disk-full" in told:
            yield Finding(
                kind=Kind.DISK,
                text=f"broker {node}: {told['disk-full']}",
                command=f"free space on the disk of broker {node}",
            )
        if "tail-lost" in told:
            yield Finding(
                kind=Kind.DAMAGED,
                text=f"broker {node}: {told['tail-lost']}",
                command="replace the disk, or let it write through; the broker reports this until "
                "it is restarted",
            )
        if "old-copy" in told:
            yield Finding(
                kind=Kind.OLD_COPY,
                text=f"broker {node}: {told['old-copy']}",
                command="add replicas: kafkaesque topic alter TOPIC --replicas 3",
            )
        if "crowded" in told:
            yield Finding(
                kind=Kind.CROWDED,
                text=f"broker {node}: {told['crowded']}",
                command="check its metric kafkaesque_limit_taken_ratio, and raise that setting",
            )
        if "shares-stuck" in told:
            yield Finding(
                kind=Kind.SHARES_STUCK,
                text=f"broker {node}: {told['shares-stuck']}",
                command="kafkaesque cluster status shows which brokers are down; "
                "a share group without members goes with: kafkaesque group delete GROUP --yes",
            )
        if "leaderless" in told and all(now.is_led(one) for _, one in now.partitions()):
            yield Finding(
                kind=Kind.LEADERLESS,
                text=f"broker {node}: {told['leaderless']}",
                command="check again, and if it persists see its log: kafkaesque doctor",
            )


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
            command=f"free space, or retain less: kafkaesque topic alter {largest} "
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
                text=f"the move of {name} to {listed(move.nodes)} waits for {named_brokers(away)}",
                command=call_off
                if now.given_up.issuperset(away)
                else f"start {named_brokers(away)} again, or: {call_off}",
            )
        elif before is not None and _stands_still(move, now, before):
            yield Finding(
                kind=Kind.STUCK,
                text=f"the move of {name} to {listed(move.nodes)} makes no progress",
                command=f"raise moves.catch_up_bytes_per_second, or: {call_off}",
            )


def _stands_still(move: MoveInfo, now: Overview, before: Overview) -> bool:
    """Whether no data has come since; a move that waits for its turn has not started."""
    place = move.topic, move.partition

    def sizes(at: Overview) -> list[int | None]:
        return [at.folders[n].sizes.get(place) for n in move.adding if n in at.folders]

    progress = now.progress(move)
    is_behind = progress is not None and progress < 100
    return move in before.moves and is_behind and sizes(now) == sizes(before)


def few_copies(now: Overview) -> dict[str, int]:
    """Return user topics with fewer replicas than a new one would get, and how many they have."""
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
    if len(able) < len(now.brokers) or len(able) < 2:  # one broker is always even
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
    for one in now.brokers:
        if one.is_draining:
            yield from drain_obstacles(now, one.node)


def drain_obstacles(now: Overview, node: NodeId) -> Iterator[Finding]:
    """Find why a broker cannot be drained: others must take its partitions, and agree on it."""
    able = sum(1 for one in now.there if not one.is_draining and one.node != node)
    crowded: dict[str, int] = {}
    leaderless = []
    for topic, one in now.partitions():
        if node not in one.replicas:
            continue
        if len(one.replicas) > able:
            crowded[topic.name] = max(len(one.replicas), crowded.get(topic.name, 0))
        if not now.is_led(one):
            leaderless.append(f"{topic.name}-{one.index}")
    if crowded:
        most = max(crowded.values())
        others = "1 other broker" if able == 1 else f"{able or 'no'} other brokers"
        mend = "add a broker: kafkaesque serve --join HOST:PORT --port 0 --data DIR"
        if able:
            fewer = [f"kafkaesque topic alter {t} --replicas {able} --yes" for t in crowded]
            mend += f"; or keep fewer replicas: {_named(fewer, '; ')}"
        yield Finding(
            kind=Kind.STUCK,
            text=f"broker {node} cannot be drained: it holds partitions with {most} "
            f"{'replica' if most == 1 else 'replicas'}, and {'only ' if able else ''}{others} can "
            "take them",
            command=mend,
        )
    if leaderless:
        yield Finding(
            kind=Kind.STUCK,
            text=f"broker {node} cannot be drained: no leader for {_named(leaderless)}",
            command="restore their leaders first: kafkaesque doctor says how",
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


def _they_are(some: Sequence[object]) -> str:
    return "it is" if len(some) == 1 else "they are"


def _number(some: Sequence[str], what: str) -> str:
    return f"{len(some)} {what}" if len(some) == 1 else f"{len(some)} {what}s"


def _drain(nodes: Sequence[NodeId]) -> str:
    return "; ".join(f"kafkaesque cluster drain {node} --yes" for node in nodes)


def _recover(lost: Sequence[NodeId]) -> str:
    named = " ".join(f"--lost {node}" for node in lost)
    return f"kafkaesque cluster recover --data DIR {named}"


def _named(some: Sequence[str], between: str = ", ") -> str:
    rest = len(some) - NAMED_MAX
    return between.join(some[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
