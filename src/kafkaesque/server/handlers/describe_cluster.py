"""DescribeCluster: the brokers of the cluster."""

from kafkaesque.server.answers import allowed_operations
from kafkaesque.server.answers.broker_addresses import absent, controller, places
from kafkaesque.server.requests.session import Session
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
    """List the brokers; there are no separate controllers."""
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
    session.controller_told()
    away = absent(broker) if request.include_fenced_brokers else []
    return DescribeClusterResponse(
        error_code=ErrorCode.NONE,
        endpoint_type=BROKERS,
        cluster_id=cluster_id,
        controller_id=controller(broker),
        cluster_authorized_operations=allowed_operations.told(
            request.include_cluster_authorized_operations, allowed_operations.ON_THE_CLUSTER
        ),
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=one.node,
                host=one.host,
                port=one.port,
                rack=one.rack,
                is_fenced=one in away,
            )
            for one in sorted({*places(session), *away})
        ),
    )
