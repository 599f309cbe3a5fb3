"""DescribeCluster: who the brokers are."""

from kafkaesque.server.session import Session
from kafkaesque.wire.error_codes import ErrorCode
from kafkaesque.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1


async def handle(
    request: DescribeClusterRequest, version: int, session: Session
) -> DescribeClusterResponse:
    """Name the brokers; there are no controllers apart from them."""
    broker = session.broker
    cluster_id = broker.cluster_id or ""
    if request.endpoint_type != BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="there are no controllers apart from the brokers",
            endpoint_type=BROKERS,
            cluster_id=cluster_id,
            brokers=(),
        )
    me = DescribeClusterBroker(broker_id=broker.node, host=session.host, port=session.port)
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=BROKERS,
        cluster_id=cluster_id,
        controller_id=broker.node,
        brokers=(me,),
    )
