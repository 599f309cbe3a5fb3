"""Transactional ids of batches, and where ids are coordinated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.machines.transactions.transactions import ID_BYTES_MAX
from kafkaesque.transactional_ids import (
    BatchTransactionId,
    hashed_part,
    is_name,
    parse,
    query_key,
    sink_key,
)

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=100)
NUMBERS = st.integers(0, 10**18 - 1)


@given(NAMES, NAMES, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_an_id_contains_its_parts(
    query: str, sink: str, batch: int, driver_epoch: int, task: int, attempt: int
) -> None:
    one = BatchTransactionId(query, sink, batch, driver_epoch, task, attempt)
    assert parse(str(one)) == one
    assert hashed_part(str(one)) == query_key(query) == hashed_part(query_key(query))
    assert str(one).startswith(sink_key(query, sink) + "/")


def test_the_longest_names_make_an_id_that_coordinators_accept() -> None:
    last = 10**18 - 1
    one = BatchTransactionId("ü" * 200, "☃" * 133, last, last, last, last)
    assert parse(str(one)) == one
    assert len(str(one).encode()) <= ID_BYTES_MAX
    assert not is_name("ü" * 201)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "billing-0",
        "spark",
        "spark/q/s/0/1/0",
        "spark/q/s/0/1/0/0/0",
        "other/q/s/0/1/0/0",
        "spark//s/0/1/0/0",
        "spark/q/s/00/1/0/0",
        "spark/q/s/-1/1/0/0",
        "spark/q/s/٣/1/0/0",
        "spark/q/s/1234567890123456789/1/0/0",
    ],
)
def test_other_ids_do_not_belong_to_a_batch(name: str) -> None:
    assert parse(name) is None


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("billing-0", "billing-0"),
        ("billing/a/b", "billing/a/b"),
        ("spark", "spark"),
        ("sparks/q/s", "sparks/q/s"),
        ("spark/q", "spark/q"),
        ("spark/q/", "spark/q"),
        ("spark/q/s/0/1/0/0", "spark/q"),
        ("spark/q/anything else", "spark/q"),
    ],
)
def test_reserved_ids_are_hashed_by_their_first_two_parts(name: str, part: str) -> None:
    assert hashed_part(name) == part
