"""Addresses as people write them."""

import pytest

from kafkaesque.client.address import Address, parse_addresses
from kafkaesque.client.errors import InvalidAddress


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:9092", "localhost", 9092),
        ("localhost", "localhost", 9092),
        (" 10.0.0.1:1 ", "10.0.0.1", 1),
        ("[::1]:9093", "::1", 9093),
        ("[::1]", "::1", 9092),
        ("::1", "::1", 9092),
    ],
)
def test_an_address_is_read(text: str, host: str, port: int) -> None:
    assert parse_addresses(text) == [Address(host=host, port=port)]


def test_several_addresses_are_separated_by_commas() -> None:
    assert [str(one) for one in parse_addresses("a:1, b:2,[::1]:3")] == ["a:1", "b:2", "[::1]:3"]


@pytest.mark.parametrize(
    "text", ["", ",", "a:", "a:0", "a:65536", "a:x", ":9092", "http://a:1", "a b:1", "[::1]9092"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidAddress):
        parse_addresses(text)
