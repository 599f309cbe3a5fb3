"""The estimated size of a text is at least its real size."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaesque.coordinator_config import GroupConfig
from kafkaesque.machines.groups.consumer_member import ConsumerMember
from kafkaesque.machines.groups.group_commands import Join, Protocol
from kafkaesque.text_size import TEXT_BYTES, chars_bytes, utf8_bytes
from tests.machines.consumer_desk import ConsumerDesk

texts = st.text(max_size=300)


def alone(text: str) -> str:
    """A text as it is read from a log: without a cached encoded copy."""
    return text.encode().decode()


@given(texts)
def test_a_text_takes_no_more_than_its_estimate(text: str) -> None:
    assert sys.getsizeof(alone(text)) <= TEXT_BYTES + chars_bytes(text)


@given(texts)
def test_with_its_encoded_copy_a_text_takes_at_most_twice_as_much(text: str) -> None:
    copy = 0 if text.isascii() else len(text.encode()) + 1
    assert sys.getsizeof(alone(text)) + copy <= 2 * (TEXT_BYTES + chars_bytes(text))


@given(texts)
def test_the_length_of_an_encoded_text_is_correct(text: str) -> None:
    assert utf8_bytes(text) == len(text.encode())


@pytest.mark.parametrize("text", ["m" * 4_092 + "\N{SAUROPOD}", "\N{SAUROPOD}" * 1_024])
def test_a_few_bytes_can_take_four_times_as_much(text: str) -> None:
    assert len(text.encode()) == 4_096
    assert sys.getsizeof(alone(text)) <= TEXT_BYTES + chars_bytes(text) <= 16_500


@given(names=st.frozensets(texts, max_size=20), rack=texts, instance=texts)
def test_a_member_takes_no_more_than_its_estimate(
    names: frozenset[str], rack: str, instance: str
) -> None:
    member = ConsumerMember(member_id="m", instance_id=instance, rack_id=rack, names=names)
    said = [alone(text) for text in (*names, rack, instance)]
    assert sum(map(sys.getsizeof, said)) + sys.getsizeof(names) <= member.bytes


@given(names=st.lists(texts, max_size=20), client=texts, instance=texts)
def test_a_join_request_takes_little_more_than_its_estimate(
    names: list[str], client: str, instance: str
) -> None:
    join = Join(
        group="g",
        member_id="",
        fresh_id="m",
        client_id=client,
        instance_id=instance,
        session_timeout_ms=1,
        rebalance_timeout_ms=1,
        protocol_type="consumer",
        protocols=tuple(Protocol(name, b"") for name in names),
        topics=ConsumerDesk(GroupConfig()).topics_known(),
    )
    said = [alone(text) for text in (*names, client, instance)]
    assert sum(map(sys.getsizeof, said)) <= 1.25 * join.size + 2 * TEXT_BYTES
