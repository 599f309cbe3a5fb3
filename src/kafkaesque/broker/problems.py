"""Finds what is wrong with a broker: the one place that lists its problems.

The log, `/health`, a metric and `kafkaesque doctor` all report what is found here. It shows only
the present: to learn what lasts, check twice (`server/edge/problem_watch.py`).
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct

from kafkaesque.broker.broker import Broker
from kafkaesque.broker.client_state_limits import taken
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.queues.share_calls import SHARE_TOPIC
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.errors import LogError
from kafkaesque.machines.catalog.group_names import CATALOG_GROUP, group_of
from kafkaesque.machines.queues.queue_errors import ShareStateFull
from kafkaesque.types import GroupId, NodeId

CROWDED_SHARE = 0.9
"""A limit used to this share is reported, while there is time to act."""

SHARES_WAIT_MS_MAX = 5_000
"""Share groups that wait longer for the coordinator of their state need more than an election."""

NAMED_MAX = 5
"""How many partitions a sentence names; the others are counted."""


class ProblemKind(StrEnum):
    """The kinds of problems."""

    DISK_FULL = "disk-full"
    NO_MAJORITY = "no-majority"
    DAMAGED = "damaged"
    UNFILLED = "unfilled"
    """A damaged copy cannot be opened, and waits until it may be emptied and refilled by others."""
    LEADERLESS = "leaderless"
    CROWDED = "crowded"
    SHARES_STUCK = "shares-stuck"
    """What members of share groups acknowledged cannot be written, or the state not be read."""
    OLD_COPY = "old-copy"
    TAIL_LOST = "tail-lost"
    """A disk lost the end of a log that it had reported as synced; in this run of the broker."""
    GIVEN_UP = "given-up"
    """An operator let a lone copy go on without what its disk had lost."""

    @property
    def is_final(self) -> bool:
        """Whether it counts at once; others may last as long as an election and still be normal."""
        finals = ProblemKind.DISK_FULL, ProblemKind.DAMAGED, ProblemKind.OLD_COPY
        return self in (*finals, ProblemKind.GIVEN_UP, ProblemKind.TAIL_LOST)

    @property
    def concerns_all(self) -> bool:
        """Whether clients should prefer another broker for any request."""
        return self in (ProblemKind.DISK_FULL, ProblemKind.NO_MAJORITY)


class Problem(Struct, frozen=True, kw_only=True):
    """One problem."""

    kind: ProblemKind
    text: str
    about: frozenset[GroupId] = frozenset()
    """The groups concerned; empty if it is the broker itself."""

    def lasts_since(self, before: "Problem") -> bool:
        """Whether an earlier problem of this kind may be the same: topics come and go."""
        return self.about == before.about or bool(self.about & before.about)


def problems(broker: Broker) -> list[Problem]:
    """Return the current problems, at most one of each kind."""
    finders = (
        _disk,
        _catalog,
        _damaged,
        _unfilled,
        _leaderless,
        _crowded,
        _shares_stuck,
        _old_copy,
        _tail_lost,
        _given_up,
    )
    return [found for find in finders for found in find(broker)]


def _disk(broker: Broker) -> Iterator[Problem]:
    if any(replica.is_full for replica in broker.replicas.by_group.values()):
        free = broker.space()[1]
        yield Problem(
            kind=ProblemKind.DISK_FULL,
            text=f"the disk of {broker.data_folder} has no room ({free} bytes are free): "
            "records are refused until there is some",
        )


def _catalog(broker: Broker) -> Iterator[Problem]:
    replica = broker.replicas.by_group.get(CATALOG_GROUP)
    if replica is None or _is_led(broker, broker.leader_of(CATALOG_GROUP).node):
        return
    voters = replica.raft.voters.voters
    away = [node for node in voters if not broker.replicas.is_reachable(node)]
    why = f"out of reach of its voters {_list(voters)}: {_list(away)}" if away else "an election"
    yield Problem(
        kind=ProblemKind.NO_MAJORITY,
        text=f"the catalog has no leader, so nothing can be changed ({why})",
    )


def _damaged(broker: Broker) -> Iterator[Problem]:
    """Name unusable copies, and those whose log is partly damaged."""
    told = [*_unusable(broker), *_noted(broker)]
    if told:
        yield Problem(kind=ProblemKind.DAMAGED, text="; ".join(told))


def _unusable(broker: Broker) -> Iterator[str]:
    names: list[str] = []
    reason = ""
    error: LogError | None
    catalog = broker.replicas.by_group.get(CATALOG_GROUP)
    if catalog is not None and catalog.error is not None:
        names.append("the catalog")
        reason = str(catalog.error)
    for name in broker.topics.names:
        for index, slot in enumerate(broker.topics.slots(name)):
            match slot:
                case Partition():
                    error = slot.replica.error
                case PartitionOffline():
                    error = slot
                case _:  # it is not here
                    error = None
            if error is not None:
                names.append(f"{name}-{index}")
                reason = reason or str(error)
    if names:
        yield f"the copy of {_named(names)} cannot be used: {reason}"


def _noted(broker: Broker) -> Iterator[str]:
    """Describe damage in logs that stay in use, including the catalog's."""
    machines = _machines(broker)
    stateless: list[GroupId] = []
    lone: list[GroupId] = []
    mended: list[GroupId] = []
    reason = ""
    for group, replica in broker.replicas.by_group.items():
        if replica.error is not None or not replica.damage.found:
            continue
        if not replica.is_alone:
            mended.append(group)
        elif group in machines:
            stateless.append(group)
            reason = reason or replica.damage.found[0].reason
        else:
            lone.append(group)
    if stateless:
        yield (
            f"{_named(_names(broker, stateless))} cannot be served, because the only copy is "
            f"damaged: {reason}"
        )
    if lone:
        yield (
            f"the only copy of {_named(_names(broker, lone))} is damaged: reads of lost records "
            "fail, everything else is served"
        )
    if mended:
        yield (
            f"the copy of {_named(_names(broker, mended))} is damaged: lost records are restored "
            "from another copy"
        )


def _machines(broker: Broker) -> set[GroupId]:
    """Return the groups whose logs feed machines: none of their records can be left out."""
    found = {CATALOG_GROUP}
    for topic in broker.catalog.topics.values():
        if topic.is_internal:
            found.update(group_of(topic, index) for index in range(topic.partitions))
    return found


def _unfilled(broker: Broker) -> Iterator[Problem]:
    waits = broker.refills.waiting
    if waits:
        reason = next(iter(waits.values())).reason
        yield Problem(
            kind=ProblemKind.UNFILLED,
            text=f"the damaged copy of {_named(list(waits))} cannot be emptied and refilled by "
            f"others yet: {reason}",
            about=frozenset(waits),
        )


def _leaderless(broker: Broker) -> Iterator[Problem]:
    names: dict[GroupId, str] = {}
    for topic in broker.catalog.topics.values():
        for index, nodes in enumerate(topic.replicas):
            leader = broker.partition_leader(topic, index).node
            if broker.node in nodes and not _is_led(broker, leader):
                names[group_of(topic, index)] = f"{topic.name}-{index}"
    if names:
        text = f"no leader for {_named(list(names.values()))}"
        yield Problem(kind=ProblemKind.LEADERLESS, text=text, about=frozenset(names))


def _old_copy(broker: Broker) -> Iterator[Problem]:
    """Name partitions that went on from an old copy, until their log starts behind the gap."""
    names = []
    for name in broker.topics.names:
        for index, slot in enumerate(broker.topics.slots(name)):
            if isinstance(slot, Partition) and slot.replica.goes_on_from_copy:
                names.append(f"{name}-{index}")
    if names:
        yield Problem(
            kind=ProblemKind.OLD_COPY,
            text=f"the data folder was an old copy, and no other broker holds {_named(names)}: "
            "records acknowledged after the copy are missing, and their offsets are reused",
        )


def _crowded(broker: Broker) -> Iterator[Problem]:
    """Name limits that are nearly reached: beyond them clients are refused or forgotten."""
    full = [name for name, share in taken(broker).items() if share >= CROWDED_SHARE]
    if full:
        yield Problem(
            kind=ProblemKind.CROWDED,
            text=f"at least {CROWDED_SHARE:.0%} of the limit is used by {_named(full)}: raise it, "
            "or remove what is not needed (the page on limits says what is refused beyond it)",
        )


def _shares_stuck(broker: Broker) -> Iterator[Problem]:
    """Name partitions whose share groups wait for the coordinator of their state."""
    full: dict[GroupId, None] = {}
    away: dict[GroupId, None] = {}
    for shares in broker.shares.led:
        if shares.waits_ms > SHARES_WAIT_MS_MAX:
            some = full if isinstance(shares.trouble, ShareStateFull) else away
            some[shares.partition.replica.group] = None
    told = []
    if full:
        told.append(
            f"the state of share groups is full, so acknowledgements of "
            f"{_named(_names(broker, full))} wait: delete share groups that nobody needs"
        )
    if away:
        told.append(
            f"share groups of {_named(_names(broker, away))} wait for the coordinator of their "
            f"state: start the brokers of {SHARE_TOPIC} that are down"
        )
    if told:
        yield Problem(
            kind=ProblemKind.SHARES_STUCK, text="; ".join(told), about=frozenset({**full, **away})
        )


def _tail_lost(broker: Broker) -> Iterator[Problem]:
    losers = {
        group: replica.damage.tail_lost_at
        for group, replica in broker.replicas.by_group.items()
        if replica.damage.tail_lost_at is not None
    }
    names = _names(broker, losers)
    lost = [f"{name} from offset {at}" for name, at in zip(names, losers.values(), strict=True)]
    if lost:
        text = f"the disk lost data of {_named(lost)} that it had reported as synced: check it and "
        text += (
            "its write cache; leaders resend what this broker lacks, and it votes once it has that"
        )
        yield Problem(kind=ProblemKind.TAIL_LOST, text=text)


def _given_up(broker: Broker) -> Iterator[Problem]:
    names: list[str] = []
    for name in broker.topics.names:
        for index, slot in enumerate(broker.topics.slots(name)):
            losses = slot.replica.damage.given_up if isinstance(slot, Partition) else ()
            names += [f"[{loss.first}, {loss.end}) of {name}-{index}" for loss in losses]
    if names:
        text = f"log repair gave up the offsets {_named(names)}: they are holes now"
        yield Problem(kind=ProblemKind.GIVEN_UP, text=text)


def _names(broker: Broker, groups: Iterable[GroupId]) -> list[str]:
    """Return these groups' names for operators."""
    known = {CATALOG_GROUP: "the catalog"}
    for topic in broker.catalog.topics.values():
        known |= {
            group_of(topic, index): f"{topic.name}-{index}" for index in range(topic.partitions)
        }
    return [known.get(group, group) for group in groups]


def _is_led(broker: Broker, leader: NodeId | None) -> bool:
    return leader is not None and (leader == broker.node or broker.replicas.is_reachable(leader))


def _list(nodes: Sequence[NodeId]) -> str:
    return ", ".join(map(str, nodes))


def _named(names: Sequence[str]) -> str:
    rest = len(names) - NAMED_MAX
    return ", ".join(names[:NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")
