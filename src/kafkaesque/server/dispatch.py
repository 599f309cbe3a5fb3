"""From a frame to its answer: one table says which handler serves which API."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from kafkaesque.errors import MalformedFrame
from kafkaesque.server import stepping
from kafkaesque.server.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    decide_batch,
    delete_groups,
    delete_records,
    delete_topics,
    describe_batch,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_prepared,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    prepare_txn,
    produce,
    register_driver,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)
from kafkaesque.server.lane import Lane, lane_of
from kafkaesque.server.session import Session
from kafkaesque.server.stepping import Awaited
from kafkaesque.server.turn import Turn
from kafkaesque.types import Buffer
from kafkaesque.wire.apis import APIS
from kafkaesque.wire.codec import encode_parts, lenient_decoder
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.frame import frame
from kafkaesque.wire.header import (
    RequestHeader,
    decode_request_header,
    encode_response_header,
    request_header_version,
    request_key,
    response_header_version,
)
from kafkaesque.wire.message import api_of
from kafkaesque.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaesque.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafkaesque.wire.messages.alter_configs import AlterConfigsRequest
from kafkaesque.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
)
from kafkaesque.wire.messages.api_versions import ApiVersionsRequest
from kafkaesque.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaesque.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaesque.wire.messages.create_partitions import CreatePartitionsRequest
from kafkaesque.wire.messages.create_topics import CreateTopicsRequest
from kafkaesque.wire.messages.decide_batch import DecideBatchRequest
from kafkaesque.wire.messages.delete_groups import DeleteGroupsRequest
from kafkaesque.wire.messages.delete_records import DeleteRecordsRequest
from kafkaesque.wire.messages.delete_topics import DeleteTopicsRequest
from kafkaesque.wire.messages.describe_batch import DescribeBatchRequest
from kafkaesque.wire.messages.describe_cluster import DescribeClusterRequest
from kafkaesque.wire.messages.describe_configs import DescribeConfigsRequest
from kafkaesque.wire.messages.describe_groups import DescribeGroupsRequest
from kafkaesque.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkaesque.wire.messages.describe_producers import DescribeProducersRequest
from kafkaesque.wire.messages.describe_quorum import DescribeQuorumRequest
from kafkaesque.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafkaesque.wire.messages.describe_transactions import DescribeTransactionsRequest
from kafkaesque.wire.messages.elect_leaders import ElectLeadersRequest
from kafkaesque.wire.messages.end_txn import EndTxnRequest
from kafkaesque.wire.messages.fetch import FetchRequest
from kafkaesque.wire.messages.find_coordinator import FindCoordinatorRequest
from kafkaesque.wire.messages.heartbeat import HeartbeatRequest
from kafkaesque.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kafkaesque.wire.messages.init_producer_id import InitProducerIdRequest
from kafkaesque.wire.messages.join_group import JoinGroupRequest
from kafkaesque.wire.messages.leave_group import LeaveGroupRequest
from kafkaesque.wire.messages.list_config_resources import ListConfigResourcesRequest
from kafkaesque.wire.messages.list_groups import ListGroupsRequest
from kafkaesque.wire.messages.list_offsets import ListOffsetsRequest
from kafkaesque.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafkaesque.wire.messages.list_prepared import ListPreparedRequest
from kafkaesque.wire.messages.list_transactions import ListTransactionsRequest
from kafkaesque.wire.messages.metadata import MetadataRequest
from kafkaesque.wire.messages.offset_commit import OffsetCommitRequest
from kafkaesque.wire.messages.offset_delete import OffsetDeleteRequest
from kafkaesque.wire.messages.offset_fetch import OffsetFetchRequest
from kafkaesque.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from kafkaesque.wire.messages.prepare_txn import PrepareTxnRequest
from kafkaesque.wire.messages.produce import ProduceRequest
from kafkaesque.wire.messages.register_driver import RegisterDriverRequest
from kafkaesque.wire.messages.sync_group import SyncGroupRequest
from kafkaesque.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kafkaesque.wire.messages.unregister_broker import UnregisterBrokerRequest
from kafkaesque.wire.messages.update_features import UpdateFeaturesRequest
from kafkaesque.wire.messages.write_txn_markers import WriteTxnMarkersRequest

Handler: TypeAlias = Callable[[Any, int, Session], Coroutine[Any, Any, Any]]

API_VERSIONS = api_of(ApiVersionsRequest)

_HANDLERS: Mapping[type[Any], Handler] = {
    ProduceRequest: produce.handle,
    FetchRequest: fetch.handle,
    ListOffsetsRequest: list_offsets.handle,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch.handle,
    MetadataRequest: metadata.handle,
    CreateTopicsRequest: create_topics.handle,
    InitProducerIdRequest: init_producer_id.handle,
    DeleteTopicsRequest: delete_topics.handle,
    DeleteRecordsRequest: delete_records.handle,
    CreatePartitionsRequest: create_partitions.handle,
    DescribeConfigsRequest: describe_configs.handle,
    AlterConfigsRequest: alter_configs.handle,
    IncrementalAlterConfigsRequest: incremental_alter_configs.handle,
    ListConfigResourcesRequest: list_config_resources.handle,
    DescribeLogDirsRequest: describe_log_dirs.handle,
    DescribeClusterRequest: describe_cluster.handle,
    DescribeTopicPartitionsRequest: describe_topic_partitions.handle,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments.handle,
    DescribeQuorumRequest: describe_quorum.handle,
    ElectLeadersRequest: elect_leaders.handle,
    ListPartitionReassignmentsRequest: list_partition_reassignments.handle,
    UnregisterBrokerRequest: unregister_broker.handle,
    UpdateFeaturesRequest: update_features.handle,
    FindCoordinatorRequest: find_coordinator.handle,
    JoinGroupRequest: join_group.handle,
    SyncGroupRequest: sync_group.handle,
    HeartbeatRequest: heartbeat.handle,
    LeaveGroupRequest: leave_group.handle,
    OffsetCommitRequest: offset_commit.handle,
    OffsetFetchRequest: offset_fetch.handle,
    OffsetDeleteRequest: offset_delete.handle,
    DescribeGroupsRequest: describe_groups.handle,
    ListGroupsRequest: list_groups.handle,
    DeleteGroupsRequest: delete_groups.handle,
    ConsumerGroupHeartbeatRequest: consumer_group_heartbeat.handle,
    ConsumerGroupDescribeRequest: consumer_group_describe.handle,
    AddPartitionsToTxnRequest: add_partitions_to_txn.handle,
    AddOffsetsToTxnRequest: add_offsets_to_txn.handle,
    EndTxnRequest: end_txn.handle,
    WriteTxnMarkersRequest: write_txn_markers.handle,
    TxnOffsetCommitRequest: txn_offset_commit.handle,
    DescribeProducersRequest: describe_producers.handle,
    DescribeTransactionsRequest: describe_transactions.handle,
    ListTransactionsRequest: list_transactions.handle,
    RegisterDriverRequest: register_driver.handle,
    PrepareTxnRequest: prepare_txn.handle,
    ListPreparedRequest: list_prepared.handle,
    DescribeBatchRequest: describe_batch.handle,
    DecideBatchRequest: decide_batch.handle,
}
HANDLERS: Mapping[int, Handler] = {api_of(cls).key: handle for cls, handle in _HANDLERS.items()}
"""By the key of the API; ApiVersions is answered here, because it tells of this table."""


class _Route(NamedTuple):
    """All that is to be known of one API in one version."""

    handle: Handler
    read: Callable[[memoryview, int], Any]
    version: int
    header_version: int
    answer_header_version: int


_routes: dict[tuple[int, int], _Route] = {}
"""Those used so far; no more than there are APIs and versions."""


class Requests:
    """The requests of one connection, begun in the order in which they came."""

    __slots__ = ("_lane", "_session", "_topic", "_turn")

    def __init__(self, session: Session, turn: Turn) -> None:
        self._session = session
        self._turn = turn
        self._lane: Lane | None = None
        self._topic: object = None
        """What the last request to produce was for: one that follows it may have a lane."""

    def begin(self, data: memoryview) -> list[Buffer] | Awaited[list[Buffer]]:
        """Take one request and return its answer, or what will be; an empty one means none is due.

        Raises MalformedFrame for what is no request, or one that nobody here can answer: then the
        connection must be closed.
        """
        if self._lane is not None:
            passing = self._lane.begin(data)
            if passing is not None:
                return passing
        named = request_key(data)
        route = _routes.get(named)
        if route is None:
            key, version = named
            if key == API_VERSIONS.key:
                header_version = request_header_version(API_VERSIONS, version)
                header = decode_request_header(data, header_version)[0]
                return _answer_api_versions(header, self._session)
            route = _routes[named] = _route(key, version)
        header, start = decode_request_header(data, route.header_version)
        request = route.read(data, start)
        session = self._session.named(header.client_id)
        finish = partial(_answer, route, header.correlation_id)
        if isinstance(request, ProduceRequest):
            begun = produce.begin(request, route.version, session, finish)
            self._find_lane(data, start, request, route, session)
            return begun
        return stepping.begin(route.handle(request, route.version, session), self._turn, finish)

    def _find_lane(
        self,
        data: memoryview,
        start: int,
        request: ProduceRequest,
        route: "_Route",
        session: Session,
    ) -> None:
        """Let the next request go a shorter way, if this one is for the same as the last."""
        topic = [(one.topic_id, one.name) for one in request.topic_data]
        if topic == self._topic:
            answer = partial(_answer, route)
            self._lane = lane_of(data, start, request, route.version, session, answer)
        self._topic = topic


def _route(key: int, version: int) -> _Route:
    if key not in HANDLERS:
        raise MalformedFrame(f"API {key} is not served here")
    messages = APIS[key]
    api = messages.api
    if not api.serves(version):
        raise MalformedFrame(f"{api.name} is not served in version {version}")
    return _Route(
        HANDLERS[key],
        lenient_decoder(messages.request, version),
        version,
        request_header_version(api, version),
        response_header_version(api, version),
    )


def _answer(route: _Route, correlation_id: int, body: object) -> list[Buffer]:
    if body is None:
        return []
    head = encode_response_header(correlation_id, route.answer_header_version)
    return frame([head, *encode_parts(body, route.version)])


def _answer_api_versions(header: RequestHeader, session: Session) -> list[Buffer]:
    """A version that we do not know is answered in version 0, which every client can read."""
    served = [APIS[key].api for key in HANDLERS] + [API_VERSIONS]
    if API_VERSIONS.serves(header.version):
        body, version = api_versions.answer(served, session.broker), header.version
    else:
        error = ErrorCode.UNSUPPORTED_VERSION
        body = api_versions.answer([API_VERSIONS], session.broker, error)
        version = 0
    head = encode_response_header(header.correlation_id, 0)
    return frame([head, *encode_parts(body, version)])
