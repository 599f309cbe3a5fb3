"""AddOffsetsToTxn: which group's offsets a transaction commits."""

from kafkaesque.wire.kinds import Int16, Int32, Int64
from kafkaesque.wire.message import Api, message

API = Api(key=25, name="AddOffsetsToTxn", first=0, last=4, flexible_since=3)


@message(API)
class AddOffsetsToTxnRequest:
    """A producer names a group whose offsets it will commit in its transaction."""

    transactional_id: str
    producer_id: Int64
    producer_epoch: Int16
    group_id: str


@message(API)
class AddOffsetsToTxnResponse:
    """The coordinator says whether the group now belongs to the transaction."""

    throttle_time_ms: Int32 = 0
    error_code: Int16
