"""Keys go to the same partitions as with other clients of Kafka."""

# mypy: disable-error-code="no-untyped-call"

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.record.key_partition import murmur2, partition_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # warnings about the clients' own code
    from kafka.partitioner.default import murmur2 as kafka_python_murmur2


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # The vectors of Kafka's own UtilsTest, which are signed there.
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_equals_the_java_clients(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=50))
def test_the_hash_equals_kafka_pythons(key: bytes) -> None:
    assert murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


@pytest.mark.requirement("CORE-4")
@given(st.binary(max_size=50), st.integers(1, 1_000))
def test_every_key_has_one_existing_partition(key: bytes, partitions: int) -> None:
    assert 0 <= partition_of(key, partitions) < partitions
