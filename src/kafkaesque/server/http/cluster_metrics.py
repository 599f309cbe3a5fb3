"""Prometheus metrics of a broker's part in the cluster, and of its links to other brokers."""

from collections.abc import Iterator
from functools import partial

from kafkaesque.broker.catalog_quorum import catalog_lag
from kafkaesque.broker.client_state_limits import taken
from kafkaesque.broker.partition.partition import Partition
from kafkaesque.broker.replication.failures import PartitionOffline
from kafkaesque.broker.replication.in_sync import InSync
from kafkaesque.server.edge.edge import Edge
from kafkaesque.server.http.metric import Metric, Samples, one


def _of_links(field: str, edge: Edge) -> Samples:
    """Read a counter of the links to each other broker."""
    return [((str(node),), getattr(found, field)) for node, found in sorted(edge.links.items())]


def _link_metric(name: str, text: str, field: str) -> Metric:
    return Metric(name=name, text=text, labels=("node",), read=partial(_of_links, field))


def _led(edge: Edge) -> Iterator[tuple[Partition, InSync]]:
    for partitions in edge.broker.topics.open_partitions.values():
        for partition in partitions:
            in_sync = partition.replica.in_sync
            if partition.replica.is_serving and in_sync is not None:
                yield partition, in_sync


def _damaged(edge: Edge) -> int:
    """Count open replicas with damage, and partitions that cannot be opened."""
    replicas = edge.broker.replicas.by_group.values()
    topics = edge.broker.topics
    slots = (slot for name in topics.names for slot in topics.slots(name))
    shut = sum(isinstance(slot, PartitionOffline) for slot in slots)
    waiting = len(edge.broker.refills.waiting)
    return shut + waiting + sum(bool(replica.damage.found) for replica in replicas)


def _is_behind(partition: Partition, in_sync: InSync) -> bool:
    return len(in_sync.nodes) < len(partition.replica.raft.voters.voters)


def _is_too_few(partition: Partition, in_sync: InSync) -> bool:
    few = len(in_sync.nodes) < partition.settings.min_insync_replicas
    return few or in_sync.is_cut_off


def _behind_bytes(edge: Edge) -> int:
    return sum(lack.bytes for move in edge.broker.moves() for lack in (move.behind or {}).values())


CLUSTER_METRICS: tuple[Metric, ...] = (
    _link_metric("kafkaesque_link_sent_bytes_total", "Bytes sent to another broker.", "sent_bytes"),
    _link_metric(
        "kafkaesque_link_received_bytes_total",
        "Bytes received from another broker.",
        "received_bytes",
    ),
    _link_metric(
        "kafkaesque_link_sent_messages_total", "Messages sent to another broker.", "sent_messages"
    ),
    _link_metric(
        "kafkaesque_link_received_messages_total",
        "Messages received from another broker.",
        "received_messages",
    ),
    _link_metric(
        "kafkaesque_link_dropped_messages_total",
        "Messages to another broker dropped because it does not read fast enough.",
        "dropped_messages",
    ),
    _link_metric(
        "kafkaesque_link_opened_total", "How often a link to another broker was opened.", "opened"
    ),
    Metric(
        name="kafkaesque_problem",
        text="1 for each kind of problem that this broker has now, as in `/health`.",
        labels=("problem",),
        read=lambda edge: [((one.kind.value,), 1) for one in edge.watch.problems],
    ),
    Metric(
        name="kafkaesque_replicas",
        text="Replicas open on this broker, including the catalog's.",
        read=lambda edge: one(len(edge.broker.replicas.by_group)),
    ),
    Metric(
        name="kafkaesque_leaders",
        text="Partitions that this broker leads.",
        read=lambda edge: one(sum(1 for _ in _led(edge))),
    ),
    Metric(
        name="kafkaesque_elections_total",
        text="How often this broker was elected leader of a group.",
        read=lambda edge: one(edge.broker.replicas.elections),
    ),
    Metric(
        name="kafkaesque_partitions_under_replicated",
        text="Partitions led by this broker with fewer replicas in sync than voters.",
        read=lambda edge: one(sum(_is_behind(*found) for found in _led(edge))),
    ),
    Metric(
        name="kafkaesque_partitions_below_min_in_sync",
        text="Partitions led by this broker that refuse acks=all for lack of replicas in sync.",
        read=lambda edge: one(sum(_is_too_few(*found) for found in _led(edge))),
    ),
    Metric(
        name="kafkaesque_replicas_damaged",
        text="Replicas here with a damaged log: they do not lead if others can.",
        read=lambda edge: one(_damaged(edge)),
    ),
    Metric(
        name="kafkaesque_limit_taken_ratio",
        text="Used share of each limit on state that clients leave behind, from 0 to 1.",
        labels=("state",),
        read=lambda edge: [((name,), share) for name, share in taken(edge.broker).items()],
    ),
    Metric(
        name="kafkaesque_repairs_begun_total",
        text="Repairs of damaged logs from another broker that were started.",
        read=lambda edge: one(edge.broker.repairs.begun),
    ),
    Metric(
        name="kafkaesque_repairs_done_total",
        text="Repaired segments, and repaired compacted logs.",
        read=lambda edge: one(edge.broker.repairs.done),
    ),
    Metric(
        name="kafkaesque_repairs_failed_total",
        text="Repairs for which no other broker had the data; they are retried.",
        read=lambda edge: one(edge.broker.repairs.failed),
    ),
    Metric(
        name="kafkaesque_refills_waiting",
        text="Damaged logs that are not refilled yet, because too few other copies are intact.",
        read=lambda edge: one(len(edge.broker.refills.waiting)),
    ),
    Metric(
        name="kafkaesque_refills_total",
        text="Damaged logs set aside, to be refilled by other brokers.",
        read=lambda edge: one(edge.broker.refills.done),
    ),
    Metric(
        name="kafkaesque_scrubbed_bytes_total",
        text="Bytes of closed segments read by the scrub.",
        read=lambda edge: one(edge.broker.scrubber.bytes_read),
    ),
    Metric(
        name="kafkaesque_scrub_passed_timestamp_seconds",
        text="When the scrub last finished all closed segments; 0 if not in this run.",
        read=lambda edge: one(edge.broker.scrubber.passed_ms / 1000),
    ),
    Metric(
        name="kafkaesque_moves",
        text="Partitions being moved in the whole cluster.",
        read=lambda edge: one(len(edge.broker.moves())),
    ),
    Metric(
        name="kafkaesque_moves_behind_bytes",
        text="Approximate bytes that new replicas of partitions led by this broker still lack.",
        read=lambda edge: one(_behind_bytes(edge)),
    ),
    Metric(
        name="kafkaesque_clock_in_doubt",
        text="1 while nothing is deleted by age because the wall clock cannot be trusted.",
        read=lambda edge: one(int(not edge.broker.clocks.is_sound)),
    ),
    Metric(
        name="kafkaesque_clock_ahead_seconds",
        text="How far the wall clock seems to be ahead while it is in doubt.",
        read=lambda edge: one(edge.broker.clocks.ahead_ms / 1000),
    ),
    Metric(
        name="kafkaesque_catalog_lag",
        text="Committed offsets of the catalog that this broker does not show yet.",
        read=lambda edge: one(catalog_lag(edge.broker)),
    ),
)
