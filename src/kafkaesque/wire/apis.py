"""Every API that exists here, with its versions and its two messages.

The messages of a request are found here, and a page of the reference is written from it. A new API
is a file in `messages` and a row here. A broker advertises those for which it has a handler.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafkaesque.wire.message import Api
from kafkaesque.wire.messages import (
    alter_configs,
    alter_user_scram_credentials,
    api_versions,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_topic_partitions,
    describe_user_scram_credentials,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sasl_authenticate,
    sasl_handshake,
    sync_group,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """An API and the messages that belong to it."""

    api: Api
    request: type[Any]
    response: type[Any]


APIS: Mapping[int, Messages] = {
    row.api.key: row
    for row in (
        Messages(
            api=produce.API,
            request=produce.ProduceRequest,
            response=produce.ProduceResponse,
        ),
        Messages(
            api=fetch.API,
            request=fetch.FetchRequest,
            response=fetch.FetchResponse,
        ),
        Messages(
            api=list_offsets.API,
            request=list_offsets.ListOffsetsRequest,
            response=list_offsets.ListOffsetsResponse,
        ),
        Messages(
            api=metadata.API,
            request=metadata.MetadataRequest,
            response=metadata.MetadataResponse,
        ),
        Messages(
            api=offset_commit.API,
            request=offset_commit.OffsetCommitRequest,
            response=offset_commit.OffsetCommitResponse,
        ),
        Messages(
            api=offset_fetch.API,
            request=offset_fetch.OffsetFetchRequest,
            response=offset_fetch.OffsetFetchResponse,
        ),
        Messages(
            api=find_coordinator.API,
            request=find_coordinator.FindCoordinatorRequest,
            response=find_coordinator.FindCoordinatorResponse,
        ),
        Messages(
            api=join_group.API,
            request=join_group.JoinGroupRequest,
            response=join_group.JoinGroupResponse,
        ),
        Messages(
            api=heartbeat.API,
            request=heartbeat.HeartbeatRequest,
            response=heartbeat.HeartbeatResponse,
        ),
        Messages(
            api=leave_group.API,
            request=leave_group.LeaveGroupRequest,
            response=leave_group.LeaveGroupResponse,
        ),
        Messages(
            api=sync_group.API,
            request=sync_group.SyncGroupRequest,
            response=sync_group.SyncGroupResponse,
        ),
        Messages(
            api=describe_groups.API,
            request=describe_groups.DescribeGroupsRequest,
            response=describe_groups.DescribeGroupsResponse,
        ),
        Messages(
            api=list_groups.API,
            request=list_groups.ListGroupsRequest,
            response=list_groups.ListGroupsResponse,
        ),
        Messages(
            api=sasl_handshake.API,
            request=sasl_handshake.SaslHandshakeRequest,
            response=sasl_handshake.SaslHandshakeResponse,
        ),
        Messages(
            api=api_versions.API,
            request=api_versions.ApiVersionsRequest,
            response=api_versions.ApiVersionsResponse,
        ),
        Messages(
            api=create_topics.API,
            request=create_topics.CreateTopicsRequest,
            response=create_topics.CreateTopicsResponse,
        ),
        Messages(
            api=delete_topics.API,
            request=delete_topics.DeleteTopicsRequest,
            response=delete_topics.DeleteTopicsResponse,
        ),
        Messages(
            api=delete_records.API,
            request=delete_records.DeleteRecordsRequest,
            response=delete_records.DeleteRecordsResponse,
        ),
        Messages(
            api=init_producer_id.API,
            request=init_producer_id.InitProducerIdRequest,
            response=init_producer_id.InitProducerIdResponse,
        ),
        Messages(
            api=offset_for_leader_epoch.API,
            request=offset_for_leader_epoch.OffsetForLeaderEpochRequest,
            response=offset_for_leader_epoch.OffsetForLeaderEpochResponse,
        ),
        Messages(
            api=describe_acls.API,
            request=describe_acls.DescribeAclsRequest,
            response=describe_acls.DescribeAclsResponse,
        ),
        Messages(
            api=create_acls.API,
            request=create_acls.CreateAclsRequest,
            response=create_acls.CreateAclsResponse,
        ),
        Messages(
            api=delete_acls.API,
            request=delete_acls.DeleteAclsRequest,
            response=delete_acls.DeleteAclsResponse,
        ),
        Messages(
            api=describe_configs.API,
            request=describe_configs.DescribeConfigsRequest,
            response=describe_configs.DescribeConfigsResponse,
        ),
        Messages(
            api=alter_configs.API,
            request=alter_configs.AlterConfigsRequest,
            response=alter_configs.AlterConfigsResponse,
        ),
        Messages(
            api=describe_log_dirs.API,
            request=describe_log_dirs.DescribeLogDirsRequest,
            response=describe_log_dirs.DescribeLogDirsResponse,
        ),
        Messages(
            api=sasl_authenticate.API,
            request=sasl_authenticate.SaslAuthenticateRequest,
            response=sasl_authenticate.SaslAuthenticateResponse,
        ),
        Messages(
            api=create_partitions.API,
            request=create_partitions.CreatePartitionsRequest,
            response=create_partitions.CreatePartitionsResponse,
        ),
        Messages(
            api=delete_groups.API,
            request=delete_groups.DeleteGroupsRequest,
            response=delete_groups.DeleteGroupsResponse,
        ),
        Messages(
            api=incremental_alter_configs.API,
            request=incremental_alter_configs.IncrementalAlterConfigsRequest,
            response=incremental_alter_configs.IncrementalAlterConfigsResponse,
        ),
        Messages(
            api=offset_delete.API,
            request=offset_delete.OffsetDeleteRequest,
            response=offset_delete.OffsetDeleteResponse,
        ),
        Messages(
            api=describe_user_scram_credentials.API,
            request=describe_user_scram_credentials.DescribeUserScramCredentialsRequest,
            response=describe_user_scram_credentials.DescribeUserScramCredentialsResponse,
        ),
        Messages(
            api=alter_user_scram_credentials.API,
            request=alter_user_scram_credentials.AlterUserScramCredentialsRequest,
            response=alter_user_scram_credentials.AlterUserScramCredentialsResponse,
        ),
        Messages(
            api=describe_cluster.API,
            request=describe_cluster.DescribeClusterRequest,
            response=describe_cluster.DescribeClusterResponse,
        ),
        Messages(
            api=describe_topic_partitions.API,
            request=describe_topic_partitions.DescribeTopicPartitionsRequest,
            response=describe_topic_partitions.DescribeTopicPartitionsResponse,
        ),
    )
}
"""All of them by key."""
