"""DescribeTransactions: the state of transactions, and the partitions they wrote to."""

from kafkaesque.wire.kinds import Int16, Int32, Int64
from kafkaesque.wire.message import Api, message, struct

API = Api(key=65, name="DescribeTransactions", first=0, last=0, flexible_since=0)


@message(API)
class DescribeTransactionsRequest:
    """A client asks for transactions by their ids."""

    transactional_ids: tuple[str, ...] = ()


@struct
class TopicData:
    """One of `topics` of TransactionState."""

    topic: str
    partitions: tuple[Int32, ...] = ()


@struct
class TransactionState:
    """One of `transaction_states` of DescribeTransactionsResponse."""

    error_code: Int16
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: tuple[TopicData, ...]


@message(API)
class DescribeTransactionsResponse:
    """The coordinator describes transactions."""

    throttle_time_ms: Int32 = 0
    transaction_states: tuple[TransactionState, ...]
