"""CRC-32C (Castagnoli), as Kafka's batches and our own files use it."""

import fastcrc

from kafkaesque.types import Buffer


def crc32c(data: Buffer) -> int:
    """Return the checksum of `data`, which may be a view: nothing is copied."""
    return fastcrc.crc32.iscsi(data)
