"""CRC-32C (Castagnoli), as Kafka's batches and our own files use it."""

from typing import Protocol

import fastcrc

from kafkaesque.types import Buffer


class _Checksum(Protocol):
    def __call__(self, data: Buffer, initial: int | None = None, /) -> int: ...


crc32c: _Checksum = fastcrc.crc32.iscsi
"""Returns the checksum of bytes or of a view of some, without copying.

The optional second argument is the checksum of preceding bytes, to continue from.
"""


def crc32c_on(crc: int, data: Buffer) -> int:
    """Return the checksum of the bytes with checksum `crc` followed by `data`."""
    return crc32c(data, crc)
