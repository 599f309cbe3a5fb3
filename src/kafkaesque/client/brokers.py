"""Brokers, as an administrator sees and changes them: liveness, voters, moves."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkaesque.client.address import Address
from kafkaesque.client.refusals import check, first
from kafkaesque.client.router import Router
from kafkaesque.client.topics import Place
from kafkaesque.types import NodeId, Offset
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkaesque.wire.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from kafkaesque.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kafkaesque.wire.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from kafkaesque.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    QuorumPartitionRequest,
    QuorumTopicRequest,
    ReplicaState,
)
from kafkaesque.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkaesque.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkaesque.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kafkaesque.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

DRAINING = "draining"
CLOCK_DOUBT = "clock.doubt"
PROBLEMS = "problems"
METADATA_TOPIC = "__cluster_metadata"
ELECTION_MS_MAX = 10_000
"""No election takes longer while most voters are there."""
_NO_LEADER = frozenset({ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER})
_BROKER = 4
_SET = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerInfo:
    """One broker of the cluster."""

    node: NodeId
    address: Address
    rack: str
    """Empty if unknown."""
    is_there: bool
    is_draining: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberInfo:
    """One member of the group that keeps the catalog."""

    node: NodeId
    lag: Offset
    """How many committed offsets it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumInfo:
    """The members of the group that keeps the catalog."""

    leader: NodeId
    term: int
    high_watermark: Offset
    voters: tuple[MemberInfo, ...]
    learners: tuple[MemberInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveInfo:
    """A partition that is being moved."""

    topic: str
    partition: int
    nodes: tuple[NodeId, ...]
    """Its destination, the preferred leader first."""
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderInfo:
    """The contents of one broker's disk; -1 bytes means unknown."""

    total_bytes: int
    free_bytes: int
    sizes: Mapping[Place, int]
    damaged: tuple[Place, ...] = ()
    """Partitions whose copy on this broker is damaged."""


class Brokers:
    """Queries and changes of brokers; errors are from `client.errors` and the base."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def list(self) -> Sequence[BrokerInfo]:
        """Return every broker of the cluster, including unavailable ones."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True
        )

        def ask() -> DescribeClusterResponse:
            said = self._router.ask_any(request, DescribeClusterResponse)
            check(said.error_code, "the cluster", said.error_message)
            return said

        found = self._router.question(ask).brokers
        draining = self._draining([one.broker_id for one in found])
        return [
            BrokerInfo(
                node=one.broker_id,
                address=Address(host=one.host, port=one.port),
                rack=one.rack or "",
                is_there=not one.is_fenced,
                is_draining=one.broker_id in draining,
            )
            for one in sorted(found, key=lambda one: one.broker_id)
        ]

    def _draining(self, nodes: Sequence[NodeId]) -> set[NodeId]:
        """Return the brokers being drained; other brokers than ours have no such setting."""
        request = DescribeConfigsRequest(
            resources=tuple(
                DescribeConfigsResource(
                    resource_type=_BROKER, resource_name=str(node), configuration_keys=(DRAINING,)
                )
                for node in nodes
            )
        )
        said = self._router.question(lambda: self._router.ask_any(request, DescribeConfigsResponse))
        return {
            int(one.resource_name)
            for one in said.results
            for config in one.configs
            if config.name == DRAINING and config.value == "true"
        }

    def quorum(self) -> QuorumInfo | None:
        """Return the catalog's members; None if it had no leader for `ELECTION_MS_MAX`."""
        partition = QuorumPartitionRequest(partition_index=0)
        topic = QuorumTopicRequest(topic_name=METADATA_TOPIC, partitions=(partition,))
        request = DescribeQuorumRequest(topics=(topic,))

        def ask() -> DescribeQuorumResponse | None:
            said = self._router.ask_any(request, DescribeQuorumResponse)
            if said.error_code in _NO_LEADER and self._router.elapsed_ms() >= ELECTION_MS_MAX:
                return None
            check(said.error_code, "the catalog", said.error_message)
            return said

        said = self._router.question(ask)
        if said is None:
            return None
        one = first(first(said.topics, "the catalog").partitions, "the catalog")
        check(one.error_code, "the catalog", one.error_message)

        def member(state: ReplicaState) -> MemberInfo:
            lag = max(0, one.high_watermark - state.log_end_offset)
            return MemberInfo(node=state.replica_id, lag=lag)

        return QuorumInfo(
            leader=one.leader_id,
            term=one.leader_epoch,
            high_watermark=one.high_watermark,
            voters=tuple(map(member, one.current_voters)),
            learners=tuple(map(member, one.observers)),
        )

    def moves(self) -> Sequence[MoveInfo]:
        """Return the partitions that are being moved."""
        request = ListPartitionReassignmentsRequest(topics=None)

        def ask() -> ListPartitionReassignmentsResponse:
            said = self._router.ask_controller(request, ListPartitionReassignmentsResponse)
            check(said.error_code, "the moves", said.error_message)
            return said

        return [
            MoveInfo(
                topic=topic.name,
                partition=one.partition_index,
                nodes=tuple(n for n in one.replicas if n not in one.removing_replicas),
                adding=one.adding_replicas,
                removing=one.removing_replicas,
            )
            for topic in self._router.question(ask).topics
            for one in topic.partitions
        ]

    def folder(self, node: NodeId) -> FolderInfo:
        """Return the contents of a broker's disk; raises Unreachable at once if it is away."""
        request = DescribeLogDirsRequest(topics=None)
        said = self._router.once(
            lambda: self._router.ask_node(node, request, DescribeLogDirsResponse)
        )
        check(said.error_code, f"broker {node}")
        sizes: defaultdict[Place, int] = defaultdict(int)
        damaged: list[Place] = []
        for result in said.results:
            for topic in result.topics:
                for one in topic.partitions:
                    place = topic.name, one.partition_index
                    sizes[place] += one.partition_size
                    if result.error_code != ErrorCode.NONE:
                        damaged.append(place)
        known = [one for one in said.results if one.total_bytes >= 0]
        return FolderInfo(
            total_bytes=sum(one.total_bytes for one in known) if known else -1,
            free_bytes=sum(one.usable_bytes for one in known) if known else -1,
            sizes=dict(sizes),
            damaged=tuple(sorted(damaged)),
        )

    def clock_doubt(self, node: NodeId) -> str:
        """Return what is wrong with a broker's wall clock, or an empty text; else like `folder`."""
        return "".join(self._told(node, CLOCK_DOUBT))

    def problems(self, node: NodeId) -> Mapping[str, str]:
        """Return the problems that a broker reports of itself; raises Unreachable at once."""
        texts = self._told(node, PROBLEMS)
        lines = [line.partition(": ") for text in texts for line in text.splitlines()]
        return {kind: text for kind, _, text in lines}

    def _told(self, node: NodeId, name: str) -> tuple[str, ...]:
        """Return the values of one broker-specific setting: one, or none from older brokers."""
        resource = DescribeConfigsResource(
            resource_type=_BROKER, resource_name=str(node), configuration_keys=(name,)
        )
        request = DescribeConfigsRequest(resources=(resource,))
        said = self._router.once(
            lambda: self._router.ask_node(node, request, DescribeConfigsResponse)
        )
        configs = [config for one in said.results for config in one.configs]
        return tuple(config.value or "" for config in configs if config.name == name)

    # --- changes ---------------------------------------------------------------------------------

    def drain(self, node: NodeId, *, is_draining: bool = True) -> None:
        """Start to drain a broker, or let it take partitions again."""
        change = AlterableConfig(
            name=DRAINING, config_operation=_SET, value="true" if is_draining else "false"
        )
        resource = AlterConfigsResource(
            resource_type=_BROKER, resource_name=str(node), configs=(change,)
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)

        def ask() -> None:
            said = self._router.ask_controller(request, IncrementalAlterConfigsResponse)
            one = first(said.responses, f"broker {node}")
            check(one.error_code, f"broker {node}", one.error_message, is_change=True)

        self._router.change(ask)

    def remove(self, node: NodeId) -> None:
        """Remove a broker that holds nothing, permanently."""

        def ask() -> None:
            request = UnregisterBrokerRequest(broker_id=node)
            said = self._router.ask_controller(request, UnregisterBrokerResponse)
            check(said.error_code, f"broker {node}", said.error_message, is_change=True)

        self._router.change(ask)

    def move(self, moves: Mapping[Place, Sequence[NodeId] | None]) -> None:
        """Start to move partitions to these brokers; None calls a move off.

        All moves start except those refused; the first refusal is raised.
        """
        by_topic: defaultdict[str, list[ReassignablePartition]] = defaultdict(list)
        for (topic, partition), nodes in moves.items():
            replicas = None if nodes is None else tuple(nodes)
            one = ReassignablePartition(partition_index=partition, replicas=replicas)
            by_topic[topic].append(one)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self._router.config.request_ms_max,
            topics=tuple(
                ReassignableTopic(name=name, partitions=tuple(rows))
                for name, rows in by_topic.items()
            ),
        )

        def ask() -> None:
            said = self._router.ask_controller(request, AlterPartitionReassignmentsResponse)
            check(said.error_code, "the moves", said.error_message, is_change=True)
            for topic in said.responses:
                for one in topic.partitions:
                    subject = f"partition {one.partition_index} of topic {topic.name}"
                    check(one.error_code, subject, one.error_message, is_change=True)

        self._router.change(ask)

    def elect_preferred(self) -> int:
        """Make preferred leaders lead wherever they can; return how many partitions changed."""
        request = ElectLeadersRequest(
            topic_partitions=None, timeout_ms=self._router.config.request_ms_max // 2
        )
        said = self._router.question(
            lambda: self._router.ask_controller(request, ElectLeadersResponse)
        )
        check(said.error_code, "the leaders")
        return sum(
            one.error_code == ErrorCode.NONE
            for topic in said.replica_election_results
            for one in topic.partition_result
        )
