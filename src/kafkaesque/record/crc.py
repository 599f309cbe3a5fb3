"""CRC-32C (Castagnoli), as Kafka's batches and our own files use it."""

from collections.abc import Callable

import fastcrc

from kafkaesque.types import Buffer

crc32c: Callable[[Buffer], int] = fastcrc.crc32.iscsi
"""Returns the checksum of bytes or of a view of some: nothing is copied."""


def crc32c_on(crc: int, data: Buffer) -> int:
    """Return the checksum of what `crc` is the checksum of and `data` behind it."""
    return fastcrc.crc32.iscsi(data, crc)
