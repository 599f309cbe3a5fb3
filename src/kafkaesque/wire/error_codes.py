"""Kafka's error codes; the server maps our errors to them."""

from enum import IntEnum


class ErrorCode(IntEnum):
    """What a response reports as wrong."""

    UNKNOWN_SERVER_ERROR = -1
    """The broker failed unexpectedly."""
    NONE = 0
    """Success."""
    OFFSET_OUT_OF_RANGE = 1
    """The offset is before the first record kept or after the last one written."""
    CORRUPT_MESSAGE = 2
    """A batch fails its checksum or is otherwise damaged."""
    UNKNOWN_TOPIC_OR_PARTITION = 3
    """This broker knows no such topic or partition."""
    INVALID_FETCH_SIZE = 4
    """The requested fetch size is invalid."""
    LEADER_NOT_AVAILABLE = 5
    """The partition has no leader at the moment."""
    NOT_LEADER_OR_FOLLOWER = 6
    """This broker does not lead the partition, or holds no replica of it."""
    REQUEST_TIMED_OUT = 7
    """The request was not done within its timeout."""
    BROKER_NOT_AVAILABLE = 8
    """The broker is not available."""
    REPLICA_NOT_AVAILABLE = 9
    """This broker's replica is not available."""
    MESSAGE_TOO_LARGE = 10
    """A batch is larger than the topic allows."""
    STALE_CONTROLLER_EPOCH = 11
    """The controller has moved on."""
    OFFSET_METADATA_TOO_LARGE = 12
    """The metadata of a committed offset is too long."""
    NETWORK_EXCEPTION = 13
    """The connection was lost before the response came."""
    COORDINATOR_LOAD_IN_PROGRESS = 14
    """The coordinator is still loading its state."""
    COORDINATOR_NOT_AVAILABLE = 15
    """There is no coordinator at the moment."""
    NOT_COORDINATOR = 16
    """This broker is not the coordinator."""
    INVALID_TOPIC_EXCEPTION = 17
    """The topic's name is not allowed, or the topic is internal."""
    RECORD_LIST_TOO_LARGE = 18
    """The batches together are larger than a segment."""
    NOT_ENOUGH_REPLICAS = 19
    """Too few replicas are in sync to take the write."""
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    """The write was taken, but by fewer replicas than required."""
    INVALID_REQUIRED_ACKS = 21
    """The value of acks is invalid."""
    ILLEGAL_GENERATION = 22
    """The member's generation is over."""
    INCONSISTENT_GROUP_PROTOCOL = 23
    """The member's protocols have nothing in common with the group's."""
    INVALID_GROUP_ID = 24
    """The group's name is not allowed."""
    UNKNOWN_MEMBER_ID = 25
    """The coordinator knows no such member."""
    INVALID_SESSION_TIMEOUT = 26
    """The session timeout is outside the allowed range."""
    REBALANCE_IN_PROGRESS = 27
    """The group is rebalancing: join again."""
    INVALID_COMMIT_OFFSET_SIZE = 28
    """The commit is too large."""
    TOPIC_AUTHORIZATION_FAILED = 29
    """The topic may not be used by this principal."""
    GROUP_AUTHORIZATION_FAILED = 30
    """The group may not be used by this principal."""
    CLUSTER_AUTHORIZATION_FAILED = 31
    """The principal may not do this on the cluster."""
    INVALID_TIMESTAMP = 32
    """The timestamp of a record is out of the allowed range."""
    UNSUPPORTED_SASL_MECHANISM = 33
    """The broker offers no such SASL mechanism."""
    ILLEGAL_SASL_STATE = 34
    """The request does not fit the state of the SASL exchange."""
    UNSUPPORTED_VERSION = 35
    """The broker does not serve this version of the API."""
    TOPIC_ALREADY_EXISTS = 36
    """A topic of this name already exists."""
    INVALID_PARTITIONS = 37
    """The number of partitions is invalid."""
    INVALID_REPLICATION_FACTOR = 38
    """The replication factor is invalid or exceeds the number of brokers."""
    INVALID_REPLICA_ASSIGNMENT = 39
    """The assignment of replicas is invalid."""
    INVALID_CONFIG = 40
    """A setting or its value is not allowed."""
    NOT_CONTROLLER = 41
    """This broker is not the controller."""
    INVALID_REQUEST = 42
    """The request contradicts itself or the protocol."""
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    """The format of the stored batches does not allow it."""
    POLICY_VIOLATION = 44
    """A policy of the cluster forbids it."""
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    """A producer's sequence number does not follow the last one."""
    DUPLICATE_SEQUENCE_NUMBER = 46
    """A producer's sequence number was already written."""
    INVALID_PRODUCER_EPOCH = 47
    """The producer's epoch is old."""
    INVALID_TXN_STATE = 48
    """The transaction's state does not allow it."""
    INVALID_PRODUCER_ID_MAPPING = 49
    """The producer id does not belong to the transactional id."""
    INVALID_TRANSACTION_TIMEOUT = 50
    """The transaction timeout is longer than the broker allows."""
    CONCURRENT_TRANSACTIONS = 51
    """Another change of the same transaction is under way."""
    TRANSACTION_COORDINATOR_FENCED = 52
    """The transaction coordinator has been replaced."""
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    """The transactional id may not be used by this principal."""
    SECURITY_DISABLED = 54
    """The broker has no authorizer."""
    OPERATION_NOT_ATTEMPTED = 55
    """The broker did not try, because another part of the request failed."""
    KAFKA_STORAGE_ERROR = 56
    """The disk failed."""
    LOG_DIR_NOT_FOUND = 57
    """There is no such log directory."""
    SASL_AUTHENTICATION_FAILED = 58
    """The credentials were refused."""
    UNKNOWN_PRODUCER_ID = 59
    """The broker no longer remembers this producer."""
    REASSIGNMENT_IN_PROGRESS = 60
    """A reassignment of the partition is under way."""
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    """Delegation tokens are switched off."""
    DELEGATION_TOKEN_NOT_FOUND = 62
    """There is no such delegation token."""
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    """The delegation token belongs to another principal."""
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    """Delegation tokens are not for this kind of connection."""
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    """Delegation tokens may not be used by this principal."""
    DELEGATION_TOKEN_EXPIRED = 66
    """The delegation token has expired."""
    INVALID_PRINCIPAL_TYPE = 67
    """The kind of principal is not supported."""
    NON_EMPTY_GROUP = 68
    """The group still has members."""
    GROUP_ID_NOT_FOUND = 69
    """There is no such group."""
    FETCH_SESSION_ID_NOT_FOUND = 70
    """The broker knows no such fetch session."""
    INVALID_FETCH_SESSION_EPOCH = 71
    """The fetch session has another epoch."""
    LISTENER_NOT_FOUND = 72
    """The leader has no listener that matches the one in use."""
    TOPIC_DELETION_DISABLED = 73
    """Deleting topics is switched off."""
    FENCED_LEADER_EPOCH = 74
    """The client's leader epoch is older than the broker's."""
    UNKNOWN_LEADER_EPOCH = 75
    """The client's leader epoch is newer than the broker's."""
    UNSUPPORTED_COMPRESSION_TYPE = 76
    """The compression is not supported in this version."""
    STALE_BROKER_EPOCH = 77
    """The broker's epoch has changed."""
    OFFSET_NOT_AVAILABLE = 78
    """The leader does not yet know its high watermark."""
    MEMBER_ID_REQUIRED = 79
    """The member must join again with its newly assigned id."""
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    """The preferred leader is not available."""
    GROUP_MAX_SIZE_REACHED = 81
    """The group is full."""
    FENCED_INSTANCE_ID = 82
    """Another member has taken over this instance id."""
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    """No replica that may lead is available."""
    ELECTION_NOT_NEEDED = 84
    """The preferred leader already leads."""
    NO_REASSIGNMENT_IN_PROGRESS = 85
    """No reassignment is under way."""
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    """A member of the group subscribes to the topic."""
    INVALID_RECORD = 87
    """A record in the batch is not allowed in the topic."""
    UNSTABLE_OFFSET_COMMIT = 88
    """Some offsets wait for transactions to end."""
    THROTTLING_QUOTA_EXCEEDED = 89
    """A quota is used up."""
    PRODUCER_FENCED = 90
    """A newer producer has taken the transactional id."""
    RESOURCE_NOT_FOUND = 91
    """There is no such resource."""
    DUPLICATE_RESOURCE = 92
    """The request names a resource twice."""
    UNACCEPTABLE_CREDENTIAL = 93
    """The credential is too weak or malformed."""
    INCONSISTENT_VOTER_SET = 94
    """The voter sets do not match."""
    INVALID_UPDATE_VERSION = 95
    """The update does not follow from the current version."""
    FEATURE_UPDATE_FAILED = 96
    """The feature could not be updated."""
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    """A forwarded principal could not be read."""
    SNAPSHOT_NOT_FOUND = 98
    """There is no such snapshot."""
    POSITION_OUT_OF_RANGE = 99
    """The position lies past the snapshot."""
    UNKNOWN_TOPIC_ID = 100
    """This broker knows no such topic id."""
    DUPLICATE_BROKER_REGISTRATION = 101
    """Another live broker has registered under this id."""
    BROKER_ID_NOT_REGISTERED = 102
    """No broker has registered under this id."""
    INCONSISTENT_TOPIC_ID = 103
    """The topic id and the log's do not match."""
    INCONSISTENT_CLUSTER_ID = 104
    """The cluster id and the broker's do not match."""
    TRANSACTIONAL_ID_NOT_FOUND = 105
    """There is no such transactional id."""
    FETCH_SESSION_TOPIC_ID_ERROR = 106
    """The fetch session met topic ids in an unexpected place."""
    INELIGIBLE_REPLICA = 107
    """The replica may not become in sync now."""
    NEW_LEADER_ELECTED = 108
    """A new leader was elected."""
    OFFSET_MOVED_TO_TIERED_STORAGE = 109
    """The offset is kept in tiered storage."""
    FENCED_MEMBER_EPOCH = 110
    """The coordinator has fenced the member's epoch."""
    UNRELEASED_INSTANCE_ID = 111
    """The instance id is still held by another member."""
    UNSUPPORTED_ASSIGNOR = 112
    """The coordinator has no such assignor."""
    STALE_MEMBER_EPOCH = 113
    """The member's epoch is older than the coordinator's."""
    MISMATCHED_ENDPOINT_TYPE = 114
    """The request was sent to the wrong kind of endpoint."""
    UNSUPPORTED_ENDPOINT_TYPE = 115
    """This kind of endpoint is not supported."""
    UNKNOWN_CONTROLLER_ID = 116
    """There is no such controller."""
    UNKNOWN_SUBSCRIPTION_ID = 117
    """There is no such subscription for telemetry."""
    TELEMETRY_TOO_LARGE = 118
    """The telemetry is too large."""
    INVALID_REGISTRATION = 119
    """The controller refuses the registration."""
    TRANSACTION_ABORTABLE = 120
    """The transaction failed and can only be aborted."""
    INVALID_RECORD_STATE = 121
    """The record's state does not allow it."""
    SHARE_SESSION_NOT_FOUND = 122
    """The broker knows no such share session."""
    INVALID_SHARE_SESSION_EPOCH = 123
    """The share session has another epoch."""
    FENCED_STATE_EPOCH = 124
    """The share coordinator has fenced the state's epoch."""
    INVALID_VOTER_KEY = 125
    """The voter's key does not match the one on record."""
    DUPLICATE_VOTER = 126
    """The voter already exists."""
    VOTER_NOT_FOUND = 127
    """There is no such voter."""
    INVALID_REGULAR_EXPRESSION = 128
    """The regular expression is not valid."""
    REBOOTSTRAP_REQUIRED = 129
    """The client must start again from its bootstrap servers."""
    STREAMS_INVALID_TOPOLOGY = 130
    """The topology is not valid."""
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    """The epoch of the topology is not valid."""
    STREAMS_TOPOLOGY_FENCED = 132
    """The epoch of the topology is old."""
    SHARE_SESSION_LIMIT_REACHED = 133
    """The broker accepts no more share sessions."""
