"""Control batches: the end of a transaction in a partition.

One record, which consumers never see. Its key is a version and a type, its value a version and the
epoch of the coordinator that ended the transaction; later versions may append fields.
"""

import struct
from enum import IntEnum

from msgspec import Struct

from kafkaesque.record.build import NO_SEQUENCE, BatchTraits, ProducerStamp, build_batch
from kafkaesque.record.errors import MalformedBatch, UnsupportedBatch
from kafkaesque.record.read import read_records
from kafkaesque.record.record import Record
from kafkaesque.record.view import BatchView
from kafkaesque.types import Offset, Term

_VERSION = 0
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


class ControlType(IntEnum):
    """How a transaction ended; the numbers are Kafka's."""

    ABORT = 0
    COMMIT = 1


class Control(Struct, frozen=True, kw_only=True):
    """The content of a control batch."""

    kind: ControlType
    coordinator_epoch: int


def build_control_batch(
    *,
    kind: ControlType,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: Offset,
    term: Term,
) -> bytearray:
    """Return the batch that ends the producer's transaction in one partition."""
    record = Record(
        offset=base_offset,
        timestamp_ms=timestamp_ms,
        key=_KEY.pack(_VERSION, kind),
        value=_VALUE.pack(_VERSION, coordinator_epoch),
    )
    # A marker is the broker's own: it uses none of the producer's sequence numbers.
    producer = ProducerStamp(
        producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=NO_SEQUENCE
    )
    return build_batch(
        [record],
        term=term,
        producer=producer,
        traits=BatchTraits(is_transactional=True, is_control=True),
    )


def read_control(view: BatchView) -> Control:
    """Return the content of a control batch.

    Raises MalformedBatch if it is not one, UnsupportedBatch if its type is unknown, and so
    unrelated to the end of a transaction.
    """
    if not view.is_control:
        raise MalformedBatch(f"the batch at offset {view.base_offset} is not a control batch")
    records = read_records(view)
    if len(records) != 1:
        raise MalformedBatch(f"a control batch has one record, this one {len(records)}")
    key, value = records[0].key or b"", records[0].value or b""
    if len(key) < _KEY.size:
        raise MalformedBatch("a control record's key is too short")
    key_version, number = _KEY.unpack_from(key)
    try:
        kind = ControlType(number)
    except ValueError:
        raise UnsupportedBatch(f"control type {number} is unknown") from None
    if len(value) < _VALUE.size:
        raise MalformedBatch("a control record's value is too short")
    value_version, coordinator_epoch = _VALUE.unpack_from(value)
    if key_version < 0 or value_version < 0:
        raise MalformedBatch("a control record's version cannot be negative")
    return Control(kind=kind, coordinator_epoch=coordinator_epoch)
