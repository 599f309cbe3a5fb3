"""Prometheus metrics of share groups, as far as this broker leads what they read."""

from collections.abc import Callable, Iterable
from functools import partial
from heapq import nlargest
from operator import attrgetter

from kafkaesque.broker.queues.partition_shares import PartitionShares
from kafkaesque.machines.queues.share_partition import SharePartition
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.http.metric import Metric, Samples, one

OTHER = "other"
"""The label of all groups without their own lines, and of a group of that name."""

Combine = Callable[[Iterable[float]], float]


def _of_partitions(read: Callable[[PartitionShares], float], edge: Edge) -> Samples:
    """Sum a number over all partitions with share groups."""
    return one(sum(map(read, edge.broker.shares.led)))


def _of_shares(field: str, edge: Edge) -> Samples:
    """Sum a number over all groups of all partitions."""
    every = (share for shares in edge.broker.shares.led for share in shares.groups())
    return one(sum(map(attrgetter(field), every)))


def _by_group(
    read: Callable[[PartitionShares, SharePartition], float], combine: Combine, edge: Edge
) -> Samples:
    """Combine a number over the partitions of each group, and over groups with less lag."""
    lags: dict[str, int] = {}
    values: dict[str, float] = {}
    for shares in edge.broker.shares.led:
        for share in shares.groups():
            group = share.group
            lags[group] = lags.get(group, 0) + shares.lag(share)
            values[group] = combine((values.get(group, 0), read(shares, share)))
    rest = [values.pop(OTHER)] if OTHER in values else []
    largest = nlargest(edge.limits.metrics_series_max, values, key=lags.__getitem__)
    samples = [((group,), values.pop(group)) for group in largest]
    rest += values.values()
    return [*samples, ((OTHER,), combine(rest))] if rest else samples


def _ready(shares: PartitionShares, share: SharePartition) -> int:
    return max(shares.lag(share) - share.locked, 0)


def _held_seconds(shares: PartitionShares, share: SharePartition) -> float:
    return shares.held_ms_max(share) / 1000


def _tallied(field: str, edge: Edge) -> Samples:
    return one(getattr(edge.broker.shares.tally, field))


def _tally_metric(name: str, text: str, field: str) -> Metric:
    return Metric(name=name, text=text, read=partial(_tallied, field))


SHARE_METRICS: tuple[Metric, ...] = (
    Metric(
        name="kafkaesque_share_sessions",
        text="Share sessions, one for each member that reads from this broker.",
        read=lambda edge: one(len(edge.broker.shares.sessions)),
    ),
    Metric(
        name="kafkaesque_share_partitions",
        text="Partitions with share groups that this broker leads.",
        read=lambda edge: one(len(edge.broker.shares.led)),
    ),
    Metric(
        name="kafkaesque_share_in_flight_records",
        text="Records that members of share groups hold.",
        read=partial(_of_shares, "locked"),
    ),
    Metric(
        name="kafkaesque_share_released_records",
        text="Records that were delivered before and are ready to be delivered again.",
        read=partial(_of_shares, "released"),
    ),
    Metric(
        name="kafkaesque_share_acknowledgements_waiting",
        text="Acknowledgements that wait until the coordinator of their state has written them.",
        read=partial(_of_partitions, attrgetter("acks_waiting")),
    ),
    _tally_metric(
        "kafkaesque_share_deliveries_total",
        "Records handed out to members of share groups, once for each delivery.",
        "delivered",
    ),
    _tally_metric(
        "kafkaesque_share_redeliveries_total",
        "Those of them that had been delivered to the group before.",
        "redelivered",
    ),
    _tally_metric("kafkaesque_share_accepted_total", "Records that members accepted.", "accepted"),
    _tally_metric("kafkaesque_share_rejected_total", "Records that members rejected.", "rejected"),
    _tally_metric(
        "kafkaesque_share_given_up_total",
        "Records given up because their last permitted delivery failed.",
        "given_up",
    ),
    _tally_metric(
        "kafkaesque_share_expired_total",
        "Records whose lock ran out before they were acknowledged.",
        "expired",
    ),
    _tally_metric(
        "kafkaesque_share_writes_refused_total",
        "Writes of state that its coordinator refused: replaced leader, changed group, or full.",
        "writes_refused",
    ),
    Metric(
        name="kafkaesque_share_group_ready_records",
        text="Records of the partitions led here that are neither done nor held in a share group.",
        labels=("group",),
        read=partial(_by_group, _ready, sum),
    ),
    Metric(
        name="kafkaesque_share_group_in_flight_records",
        text="Records that the members of a share group hold.",
        labels=("group",),
        read=partial(_by_group, lambda _, share: share.locked, sum),
    ),
    Metric(
        name="kafkaesque_share_group_oldest_lock_seconds",
        text="How long the oldest lock of a share group has been held.",
        labels=("group",),
        read=partial(_by_group, _held_seconds, max),
    ),
)
