"""Kafka's error codes become our errors, each with one sentence."""

import pytest

from kafkaesque.client.errors import Refused, RefusedForNow
from kafkaesque.client.refusals import IN_DOUBT, TRY_AGAIN, first, refusal
from kafkaesque.errors import InvalidSetting, KafkaesqueError, OutcomeUnknown, UnknownTopic
from kafkaesque.wire.error_codes import ErrorCode


def test_the_brokers_message_is_kept_and_names_its_subject() -> None:
    error = refusal(ErrorCode.INVALID_CONFIG, "topic orders", "segment.ms is a number.")
    assert isinstance(error, InvalidSetting)
    assert str(error) == "topic orders: segment.ms is a number"


def test_a_subject_already_in_the_message_is_not_repeated() -> None:
    error = refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topic a", "there is no topic a")
    assert isinstance(error, UnknownTopic)
    assert str(error) == "there is no topic a"


def test_without_a_message_we_have_our_own() -> None:
    error = refusal(ErrorCode.NON_EMPTY_GROUP, "group g")
    assert str(error) == "group g: the group still has members"


@pytest.mark.parametrize("code", sorted(ErrorCode))
def test_every_code_becomes_an_error_with_one_sentence(code: ErrorCode) -> None:
    for is_change in (False, True):
        error = refusal(code, "topic orders", is_change=is_change)
        assert isinstance(error, KafkaesqueError)
        assert str(error).startswith("topic orders: ")
        assert isinstance(error, OutcomeUnknown) is (is_change and code in IN_DOUBT)
        is_for_now = code in TRY_AGAIN or (code in IN_DOUBT and not is_change)
        assert isinstance(error, RefusedForNow) is is_for_now


def test_an_answer_without_content_is_refused() -> None:
    with pytest.raises(Refused, match="topic orders: the broker's answer does not mention it"):
        first((), "topic orders")
