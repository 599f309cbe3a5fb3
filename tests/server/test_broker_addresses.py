"""The address that a broker gives to its clients."""

import pytest

from kafkaesque.server.answers.broker_addresses import Place, own_place

LOCAL = Place(1, "localhost", 9092, "here")
NAMED = Place(1, "one.example.org", 9092, None)
OTHER = Place(2, "localhost", 9093, None)


@pytest.mark.parametrize("known", [{}, {1: LOCAL}, {1: NAMED}])
def test_a_lone_broker_gives_the_address_that_the_client_used(known: dict[int, Place]) -> None:
    rack = known[1].rack if known else None
    assert own_place(1, "10.0.0.7", 19092, known) == Place(1, "10.0.0.7", 19092, rack)


@pytest.mark.parametrize("came_by", ["127.0.0.1", "::1", "localhost"])
@pytest.mark.parametrize("mine", [LOCAL, NAMED])
def test_a_broker_of_a_cluster_gives_its_advertised_address(came_by: str, mine: Place) -> None:
    assert own_place(1, came_by, 19092, {1: mine, 2: OTHER}) == mine


def test_a_remote_client_does_not_get_a_loopback_address() -> None:
    found = own_place(1, "10.0.0.7", 19092, {1: LOCAL, 2: OTHER})
    assert found == Place(1, "10.0.0.7", 19092, "here")
    assert own_place(1, "10.0.0.7", 19092, {1: NAMED, 2: OTHER}) == NAMED
