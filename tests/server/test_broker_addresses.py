"""By which address a broker tells its clients to come again."""

import pytest

from kafkaesque.server.answers.broker_addresses import Place, own_place

LOCAL = Place(1, "localhost", 9092, "here")
NAMED = Place(1, "one.example.org", 9092, None)
OTHER = Place(2, "localhost", 9093, None)


@pytest.mark.parametrize("known", [{}, {1: LOCAL}, {1: NAMED}])
def test_a_lone_broker_is_where_the_client_found_it(known: dict[int, Place]) -> None:
    rack = known[1].rack if known else None
    assert own_place(1, "10.0.0.7", 19092, known) == Place(1, "10.0.0.7", 19092, rack)


@pytest.mark.parametrize("came_by", ["127.0.0.1", "::1", "localhost"])
@pytest.mark.parametrize("mine", [LOCAL, NAMED])
def test_one_of_several_is_where_the_others_say(came_by: str, mine: Place) -> None:
    assert own_place(1, came_by, 19092, {1: mine, 2: OTHER}) == mine


def test_a_client_of_another_machine_is_not_sent_to_its_own() -> None:
    found = own_place(1, "10.0.0.7", 19092, {1: LOCAL, 2: OTHER})
    assert found == Place(1, "10.0.0.7", 19092, "here")
    assert own_place(1, "10.0.0.7", 19092, {1: NAMED, 2: OTHER}) == NAMED
