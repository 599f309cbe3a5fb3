"""Errors of requests, and the map from all errors to Kafka's codes: the only one."""

from collections.abc import Mapping

from kafkaesque import errors
from kafkaesque.broker.fetch import InconsistentTopicId
from kafkaesque.broker.machine_hosting.coordinator import CoordinatorLoading
from kafkaesque.broker.partition import partition_errors
from kafkaesque.broker.queues import share_sessions
from kafkaesque.log import errors as log_errors
from kafkaesque.machines.catalog import catalog_errors
from kafkaesque.machines.groups import group_errors
from kafkaesque.machines.queues import queue_errors
from kafkaesque.machines.transactions import transaction_errors
from kafkaesque.record import errors as batch_errors
from kafkaesque.wire.error_codes import ErrorCode


class InvalidRequest(errors.BrokerError):
    """The request contradicts itself, or cannot be done here."""


class InvalidAcks(errors.BrokerError):
    """A producer requested an unknown kind of acknowledgement."""


class ShareStateAway(errors.GroupError):
    """What share groups have done cannot be read or changed now: some of its leaders are away."""


class StartOutOfRange(errors.BrokerError):
    """A share group cannot begin at this offset: the partition does not reach that far."""


class NotController(errors.BrokerError):
    """The catalog has no leader now, or it cannot be reached: nothing was done."""


MESSAGE_CHARS_MAX = 1_000
"""Limit of an error message, which may quote client input; old versions hold at most 32 kB."""

CODES: Mapping[type[errors.KafkaesqueError], ErrorCode] = {
    batch_errors.BatchError: ErrorCode.CORRUPT_MESSAGE,
    batch_errors.MalformedBatch: ErrorCode.INVALID_RECORD,
    batch_errors.UnsupportedBatch: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    batch_errors.OversizedBatch: ErrorCode.MESSAGE_TOO_LARGE,
    partition_errors.BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    log_errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    StartOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.LogError: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.RaftError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    catalog_errors.UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
    InconsistentTopicId: ErrorCode.INCONSISTENT_TOPIC_ID,
    partition_errors.StaleTerm: ErrorCode.FENCED_LEADER_EPOCH,
    partition_errors.FutureTerm: ErrorCode.UNKNOWN_LEADER_EPOCH,
    partition_errors.FetchSessionUnknown: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    partition_errors.FetchEpochWrong: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    partition_errors.FetchTopicsMixed: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    catalog_errors.InvalidPartitions: ErrorCode.INVALID_PARTITIONS,
    catalog_errors.InvalidReplicas: ErrorCode.INVALID_REPLICATION_FACTOR,
    catalog_errors.InvalidAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    catalog_errors.NoMove: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    catalog_errors.UnknownBroker: ErrorCode.BROKER_ID_NOT_REGISTERED,
    catalog_errors.BrokerInUse: ErrorCode.INVALID_REQUEST,
    catalog_errors.InvalidLevel: ErrorCode.INVALID_UPDATE_VERSION,
    catalog_errors.UnsupportedLevel: ErrorCode.UNSUPPORTED_VERSION,
    InvalidRequest: ErrorCode.INVALID_REQUEST,
    errors.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    errors.InvalidTopic: ErrorCode.INVALID_TOPIC_EXCEPTION,
    errors.InvalidSetting: ErrorCode.INVALID_CONFIG,
    partition_errors.RecordsRefused: ErrorCode.INVALID_RECORD,
    partition_errors.TimeRefused: ErrorCode.INVALID_TIMESTAMP,
    partition_errors.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    partition_errors.OffsetNotAvailable: ErrorCode.OFFSET_NOT_AVAILABLE,
    InvalidAcks: ErrorCode.INVALID_REQUIRED_ACKS,
    partition_errors.StaleProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    partition_errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    partition_errors.SequenceReused: ErrorCode.UNKNOWN_PRODUCER_ID,
    NotController: ErrorCode.NOT_CONTROLLER,
    ShareStateAway: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    errors.OutcomeUnknown: ErrorCode.REQUEST_TIMED_OUT,
    group_errors.InvalidGroup: ErrorCode.INVALID_GROUP_ID,
    group_errors.UnknownGroup: ErrorCode.GROUP_ID_NOT_FOUND,
    group_errors.GroupNotEmpty: ErrorCode.NON_EMPTY_GROUP,
    group_errors.GroupFull: ErrorCode.GROUP_MAX_SIZE_REACHED,
    group_errors.UnknownMember: ErrorCode.UNKNOWN_MEMBER_ID,
    group_errors.MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
    group_errors.FencedInstance: ErrorCode.FENCED_INSTANCE_ID,
    group_errors.IllegalGeneration: ErrorCode.ILLEGAL_GENERATION,
    group_errors.RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
    group_errors.InconsistentProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    group_errors.InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
    group_errors.FencedMember: ErrorCode.FENCED_MEMBER_EPOCH,
    group_errors.InvalidHeartbeat: ErrorCode.INVALID_REQUEST,
    group_errors.StaleMember: ErrorCode.STALE_MEMBER_EPOCH,
    group_errors.UnreleasedInstance: ErrorCode.UNRELEASED_INSTANCE_ID,
    group_errors.UnsupportedAssignor: ErrorCode.UNSUPPORTED_ASSIGNOR,
    group_errors.InvalidExpression: ErrorCode.INVALID_REGULAR_EXPRESSION,
    group_errors.GroupChangesKind: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    share_sessions.ShareSessionUnknown: ErrorCode.SHARE_SESSION_NOT_FOUND,
    share_sessions.ShareEpochWrong: ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    share_sessions.ShareSessionsFull: ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    queue_errors.InvalidRecordState: ErrorCode.INVALID_RECORD_STATE,
    queue_errors.InvalidAcknowledgement: ErrorCode.INVALID_REQUEST,
    queue_errors.FencedTerm: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    queue_errors.FencedGeneration: ErrorCode.FENCED_STATE_EPOCH,
    queue_errors.InvalidShareState: ErrorCode.INVALID_REQUEST,
    queue_errors.ShareStateFull: ErrorCode.POLICY_VIOLATION,
    errors.NotCoordinator: ErrorCode.NOT_COORDINATOR,
    CoordinatorLoading: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    transaction_errors.InvalidTransactionalId: ErrorCode.INVALID_REQUEST,
    transaction_errors.UnknownTransactionalId: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    transaction_errors.InvalidTransactionState: ErrorCode.INVALID_TXN_STATE,
    transaction_errors.InvalidProducerMapping: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    transaction_errors.InvalidTransactionTimeout: ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    transaction_errors.ConcurrentTransactions: ErrorCode.CONCURRENT_TRANSACTIONS,
    transaction_errors.ProducerFenced: ErrorCode.PRODUCER_FENCED,
    transaction_errors.CoordinatorFenced: ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    transaction_errors.TransactionUnverified: ErrorCode.TRANSACTION_ABORTABLE,
    transaction_errors.TooManyTransactions: ErrorCode.POLICY_VIOLATION,
    transaction_errors.FencedDriver: ErrorCode.PRODUCER_FENCED,
    transaction_errors.OutdatedBatch: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    transaction_errors.ProducerIdNeeded: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


def code_of(error: errors.KafkaesqueError) -> ErrorCode:
    """Return the code of the nearest class in the table."""
    for cls in type(error).__mro__:
        if issubclass(cls, errors.KafkaesqueError) and cls in CODES:
            return CODES[cls]
    return ErrorCode.UNKNOWN_SERVER_ERROR


_VERIFICATION_MAY_PASS = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


def transactional_code_of(
    error: errors.KafkaesqueError, *, knows_fenced: bool, knows_abortable: bool
) -> ErrorCode:
    """Return the code for a transactional client, which may not know the newer codes."""
    code = code_of(error)
    if code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


def produce_code_of(error: errors.KafkaesqueError, *, knows_abortable: bool) -> ErrorCode:
    """Return the code for a producer; transient errors get a code that every producer retries."""
    code = transactional_code_of(error, knows_fenced=False, knows_abortable=knows_abortable)
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in _VERIFICATION_MAY_PASS else code


def message_of(error: errors.KafkaesqueError) -> str:
    """Return the error message for a client, cut to the limit."""
    text = str(error)
    return text if len(text) <= MESSAGE_CHARS_MAX else text[:MESSAGE_CHARS_MAX] + "…"
