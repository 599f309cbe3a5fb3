"""Maps a key to a partition, the same one that Kafka's Java client would choose.

Clients that agree on this use the same partition; the hash is Austin Appleby's MurmurHash2.
"""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_R = 24
_32_BITS = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key in a topic with this many partitions."""
    return (murmur2(key) & _POSITIVE) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of `data`, unsigned."""
    hashed = _SEED ^ len(data)
    whole = len(data) & ~3
    for place in range(0, whole, 4):
        word = int.from_bytes(data[place : place + 4], "little") * _M & _32_BITS
        word = (word ^ word >> _R) * _M & _32_BITS
        hashed = hashed * _M & _32_BITS ^ word
    if whole < len(data):
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _M & _32_BITS
    hashed = (hashed ^ hashed >> 13) * _M & _32_BITS
    return hashed ^ hashed >> 15
