"""WriteTxnMarkers: how a coordinator writes the end of a transaction to partitions."""

from typing import Annotated

from kafkaesque.wire.kinds import Int8, Int16, Int32, Int64, Since
from kafkaesque.wire.message import Api, message, struct

API = Api(key=27, name="WriteTxnMarkers", first=1, last=2, flexible_since=1)


@struct
class WritableTxnMarkerTopic:
    """One of `topics` of WritableTxnMarker."""

    name: str
    partition_indexes: tuple[Int32, ...] = ()


@struct
class WritableTxnMarker:
    """One of `markers` of WriteTxnMarkersRequest."""

    producer_id: Int64
    producer_epoch: Int16
    transaction_result: bool
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, Since(2)] = 0


@message(API)
class WriteTxnMarkersRequest:
    """A coordinator, or an administrator, ends transactions in partitions."""

    markers: tuple[WritableTxnMarker, ...]


@struct
class WritableTxnMarkerPartitionResult:
    """One of `partitions` of WritableTxnMarkerTopicResult."""

    partition_index: Int32
    error_code: Int16


@struct
class WritableTxnMarkerTopicResult:
    """One of `topics` of WritableTxnMarkerResult."""

    name: str
    partitions: tuple[WritableTxnMarkerPartitionResult, ...]


@struct
class WritableTxnMarkerResult:
    """One of `markers` of WriteTxnMarkersResponse."""

    producer_id: Int64
    topics: tuple[WritableTxnMarkerTopicResult, ...]


@message(API)
class WriteTxnMarkersResponse:
    """The broker says where the markers were written."""

    markers: tuple[WritableTxnMarkerResult, ...]
