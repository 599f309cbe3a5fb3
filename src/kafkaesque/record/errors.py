"""Why record batches are refused."""

from kafkaesque.errors import KafkaesqueError


class BatchError(KafkaesqueError):
    """A refused record batch."""


class MalformedBatch(BatchError):
    """The batch's header or records contradict themselves or the bytes that follow."""


class CorruptBatch(BatchError):
    """The batch's checksum does not match its bytes."""


class UnsupportedBatch(BatchError):
    """The batch has an unknown format or compression codec."""


class OversizedBatch(BatchError):
    """The batch unpacks to more than the limits allow."""
