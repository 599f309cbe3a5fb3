"""AddPartitionsToTxn: which partitions a transaction writes to."""

from typing import Annotated

from kafkaesque.wire.kinds import Int16, Int32, Int64, Since, Until
from kafkaesque.wire.message import Api, message, struct

API = Api(key=24, name="AddPartitionsToTxn", first=0, last=5, flexible_since=3)


@struct
class AddPartitionsToTxnTopic:
    """One of `topics` of AddPartitionsToTxnTransaction, or of the request before version 4."""

    name: str
    partitions: tuple[Int32, ...] = ()


@struct
class AddPartitionsToTxnTransaction:
    """One of `transactions` of AddPartitionsToTxnRequest."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    verify_only: bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...]


@message(API)
class AddPartitionsToTxnRequest:
    """A producer, or since version 4 a broker, names partitions of transactions."""

    transactions: Annotated[tuple[AddPartitionsToTxnTransaction, ...], Since(4)] = ()
    v3_and_below_transactional_id: Annotated[str, Until(3)] = ""
    v3_and_below_producer_id: Annotated[Int64, Until(3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, Until(3)] = 0
    v3_and_below_topics: Annotated[tuple[AddPartitionsToTxnTopic, ...], Until(3)] = ()


@struct
class AddPartitionsToTxnPartitionResult:
    """One of `results_by_partition` of AddPartitionsToTxnTopicResult."""

    partition_index: Int32
    partition_error_code: Int16


@struct
class AddPartitionsToTxnTopicResult:
    """One of `topic_results` of AddPartitionsToTxnResult."""

    name: str
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...]


@struct
class AddPartitionsToTxnResult:
    """One of `results_by_transaction` of AddPartitionsToTxnResponse."""

    transactional_id: str
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...]


@message(API)
class AddPartitionsToTxnResponse:
    """The coordinator says which partitions now belong to the transactions."""

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, Since(4)] = 0
    results_by_transaction: Annotated[tuple[AddPartitionsToTxnResult, ...], Since(4)] = ()
    results_by_topic_v3_and_below: Annotated[
        tuple[AddPartitionsToTxnTopicResult, ...], Until(3)
    ] = ()
