"""CRC-32C (Castagnoli), as Kafka's batches and our own files use it."""

import fastcrc

from kafkaesque.types import Buffer


def crc32c(data: Buffer) -> int:
    """Return the checksum of `data`, which may be a view: nothing is copied."""
    return fastcrc.crc32.iscsi(data)


def crc32c_on(crc: int, data: Buffer) -> int:
    """Return the checksum of what `crc` is the checksum of and `data` behind it."""
    return fastcrc.crc32.iscsi(data, crc)
