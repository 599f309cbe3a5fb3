"""Which of our errors a Kafka client sees as which code: decided here and nowhere else."""

from collections.abc import Mapping

from kafkaesque import errors
from kafkaesque.broker import fetch_errors
from kafkaesque.machines import consumer_errors, feature_errors, transaction_errors
from kafkaesque.wire.error_codes import ErrorCode

MESSAGE_CHARS_MAX = 1_000
"""A sentence for a person. It may quote what a client sent, and old versions hold 32 kB at most."""

CODES: Mapping[type[errors.KafkaesqueError], ErrorCode] = {
    errors.BatchError: ErrorCode.CORRUPT_MESSAGE,
    errors.MalformedBatch: ErrorCode.INVALID_RECORD,
    errors.UnsupportedBatch: ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    errors.OversizedBatch: ErrorCode.MESSAGE_TOO_LARGE,
    errors.BatchTooLarge: ErrorCode.MESSAGE_TOO_LARGE,
    errors.OffsetOutOfRange: ErrorCode.OFFSET_OUT_OF_RANGE,
    errors.LogError: ErrorCode.KAFKA_STORAGE_ERROR,
    errors.RaftError: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    errors.UnknownTopic: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UnknownTopicId: ErrorCode.UNKNOWN_TOPIC_ID,
    errors.InconsistentTopicId: ErrorCode.INCONSISTENT_TOPIC_ID,
    errors.StaleTerm: ErrorCode.FENCED_LEADER_EPOCH,
    errors.FutureTerm: ErrorCode.UNKNOWN_LEADER_EPOCH,
    fetch_errors.FetchSessionUnknown: ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    fetch_errors.FetchEpochWrong: ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    fetch_errors.FetchTopicsMixed: ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    errors.InvalidPartitions: ErrorCode.INVALID_PARTITIONS,
    errors.InvalidReplicas: ErrorCode.INVALID_REPLICATION_FACTOR,
    errors.InvalidAssignment: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    errors.NoMove: ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
    errors.UnknownBroker: ErrorCode.BROKER_ID_NOT_REGISTERED,
    errors.BrokerInUse: ErrorCode.INVALID_REQUEST,
    feature_errors.InvalidLevel: ErrorCode.INVALID_UPDATE_VERSION,
    feature_errors.UnsupportedLevel: ErrorCode.UNSUPPORTED_VERSION,
    errors.InvalidRequest: ErrorCode.INVALID_REQUEST,
    errors.TopicExists: ErrorCode.TOPIC_ALREADY_EXISTS,
    errors.InvalidTopic: ErrorCode.INVALID_TOPIC_EXCEPTION,
    errors.InvalidSetting: ErrorCode.INVALID_CONFIG,
    errors.RecordsRefused: ErrorCode.INVALID_RECORD,
    errors.TimeRefused: ErrorCode.INVALID_TIMESTAMP,
    errors.NotEnoughReplicas: ErrorCode.NOT_ENOUGH_REPLICAS,
    errors.OffsetNotAvailable: ErrorCode.OFFSET_NOT_AVAILABLE,
    errors.InvalidAcks: ErrorCode.INVALID_REQUIRED_ACKS,
    errors.StaleProducerEpoch: ErrorCode.INVALID_PRODUCER_EPOCH,
    errors.OutOfOrderSequence: ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    errors.SequenceReused: ErrorCode.UNKNOWN_PRODUCER_ID,
    errors.NotController: ErrorCode.NOT_CONTROLLER,
    errors.OutcomeUnknown: ErrorCode.REQUEST_TIMED_OUT,
    errors.InvalidGroup: ErrorCode.INVALID_GROUP_ID,
    errors.UnknownGroup: ErrorCode.GROUP_ID_NOT_FOUND,
    errors.GroupNotEmpty: ErrorCode.NON_EMPTY_GROUP,
    errors.GroupSubscribed: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    errors.GroupFull: ErrorCode.GROUP_MAX_SIZE_REACHED,
    errors.UnknownMember: ErrorCode.UNKNOWN_MEMBER_ID,
    errors.MemberIdRequired: ErrorCode.MEMBER_ID_REQUIRED,
    errors.FencedInstance: ErrorCode.FENCED_INSTANCE_ID,
    errors.IllegalGeneration: ErrorCode.ILLEGAL_GENERATION,
    errors.RebalanceInProgress: ErrorCode.REBALANCE_IN_PROGRESS,
    errors.InconsistentProtocol: ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    errors.InvalidSessionTimeout: ErrorCode.INVALID_SESSION_TIMEOUT,
    consumer_errors.FencedMember: ErrorCode.FENCED_MEMBER_EPOCH,
    consumer_errors.StaleMember: ErrorCode.STALE_MEMBER_EPOCH,
    consumer_errors.UnreleasedInstance: ErrorCode.UNRELEASED_INSTANCE_ID,
    consumer_errors.UnsupportedAssignor: ErrorCode.UNSUPPORTED_ASSIGNOR,
    consumer_errors.InvalidExpression: ErrorCode.INVALID_REGULAR_EXPRESSION,
    consumer_errors.GroupChangesKind: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NotCoordinator: ErrorCode.NOT_COORDINATOR,
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
    """Return the code for a client of transactions that may not know the newer ones."""
    code = code_of(error)
    if code is ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


def produce_code_of(error: errors.KafkaesqueError, *, knows_abortable: bool) -> ErrorCode:
    """Return the code for one who writes: what may pass has one at which all of them try again."""
    code = transactional_code_of(error, knows_fenced=False, knows_abortable=knows_abortable)
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in _VERIFICATION_MAY_PASS else code


def message_of(error: errors.KafkaesqueError) -> str:
    """Return what a client is told in words; long ones are cut."""
    text = str(error)
    return text if len(text) <= MESSAGE_CHARS_MAX else text[:MESSAGE_CHARS_MAX] + "…"
