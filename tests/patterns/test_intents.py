"""What a worker stores with its commits before it moves a failed message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.patterns.intents import INTENTS_MAX, Intent, decode, encode

OFFSETS = st.integers(0, 2**63 - 1)
INTENTS = st.builds(
    Intent, tier=st.integers(0, 16), partition=st.integers(0, 2**31 - 1), start=OFFSETS
)
BYTES_MAX = 4_096
"""The default limit of Apache Kafka."""


@given(st.dictionaries(OFFSETS, INTENTS, max_size=INTENTS_MAX))
def test_intents_round_trip_and_fit_into_a_commit(intents: dict[int, Intent]) -> None:
    text = encode(intents)
    assert decode(text) == intents
    assert len(text) <= BYTES_MAX


@given(st.text(max_size=40))
def test_any_text_can_be_read(text: str) -> None:
    assert decode(text) == {}


@pytest.mark.parametrize(
    "text",
    [None, "", "kafkaesque1 ", "kafkaesque1 1:2:3", "kafkaesque1 1:0:0:0,", "kafkaesque2 1:0:0:0"],
)
def test_foreign_text_has_no_intents(text: str | None) -> None:
    assert decode(text) == {}
