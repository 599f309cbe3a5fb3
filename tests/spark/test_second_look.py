"""What seems to be gone is looked for again, and called lost only then."""

import pytest

from kafkaesque.errors import UnknownTopic
from kafkaesque.spark import second_look
from kafkaesque.spark.second_look import look_again


def test_what_is_whole_is_looked_at_once() -> None:
    asked: list[bool] = []

    def look(is_newest: bool) -> int:
        asked.append(is_newest)
        return 7

    assert look_again(look) == 7
    assert asked == [False]


def test_what_seems_to_be_gone_is_looked_for_at_whoever_knows_the_newest() -> None:
    def look(is_newest: bool) -> int:
        if not is_newest:
            raise UnknownTopic("there is no such topic")
        return 7

    assert look_again(look) == 7
    assert look_again(lambda is_newest: 7 if is_newest else 3, lambda found: found >= 7) == 7


def test_what_is_gone_for_good_is_said_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_look, "SURE_SECONDS", 0.0)

    def look(is_newest: bool) -> int:
        raise UnknownTopic("there is no such topic")

    with pytest.raises(UnknownTopic):
        look_again(look)
    assert look_again(lambda _: 3, lambda found: found >= 7) == 3
