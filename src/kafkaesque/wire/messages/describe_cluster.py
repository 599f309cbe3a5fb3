"""DescribeCluster: the brokers of the cluster."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=60, name="DescribeCluster", first=0, last=2, flexible_since=0)


@message(API)
class DescribeClusterRequest:
    """A client asks for the brokers."""

    include_cluster_authorized_operations: bool
    endpoint_type: Annotated[Int8, Since(1)] = 1
    include_fenced_brokers: Annotated[bool, Since(2)] = False


@struct
class DescribeClusterBroker:
    """One of `brokers` of DescribeClusterResponse."""

    broker_id: Int32
    host: str
    port: Int32
    rack: str | None = None
    is_fenced: Annotated[bool, Since(2)] = False


@message(API)
class DescribeClusterResponse:
    """The broker lists the brokers and names the controller."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: str | None = None
    endpoint_type: Annotated[Int8, Since(1)] = 1
    cluster_id: str
    controller_id: Int32 = -1
    brokers: tuple[DescribeClusterBroker, ...]
    cluster_authorized_operations: Int32 = -(2**31)
