"""Apparently missing data is looked up again, and only then reported as lost."""

import pytest

from kafkaesque.errors import UnknownTopic
from kafkaesque.spark import second_look
from kafkaesque.spark.second_look import look_again


def test_complete_data_is_looked_up_once() -> None:
    asked: list[bool] = []

    def look(is_newest: bool) -> int:
        asked.append(is_newest)
        return 7

    assert look_again(look) == 7
    assert asked == [False]


def test_apparently_missing_data_is_looked_up_at_the_broker_with_the_newest_catalog() -> None:
    def look(is_newest: bool) -> int:
        if not is_newest:
            raise UnknownTopic("there is no such topic")
        return 7

    assert look_again(look) == 7
    assert look_again(lambda is_newest: 7 if is_newest else 3, lambda found: found >= 7) == 7


def test_permanently_missing_data_is_reported_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_look, "SURE_SECONDS", 0.0)

    def look(is_newest: bool) -> int:
        raise UnknownTopic("there is no such topic")

    with pytest.raises(UnknownTopic):
        look_again(look)
    assert look_again(lambda _: 3, lambda found: found >= 7) == 3
