"""The table of APIs."""

from kafkaesque.wire.apis import APIS
from kafkaesque.wire.message import api_of


def test_every_row_has_the_messages_of_its_api() -> None:
    for row in APIS.values():
        assert api_of(row.request) is row.api
        assert api_of(row.response) is row.api


def test_produce_is_advertised_from_0_because_old_librdkafka_looks_for_it() -> None:
    advertised = {
        row.api.name: row.api.advertised_first
        for row in APIS.values()
        if row.api.advertised_first is not None
    }
    assert advertised == {"Produce": 0}


def test_no_version_range_has_shrunk() -> None:
    ranges = {row.api.name: (row.api.first, row.api.last) for row in APIS.values()}
    assert ranges["ApiVersions"] == (0, 4)
    assert ranges["Metadata"] == (0, 13)
    assert ranges["Produce"] == (3, 13)
    assert ranges["Fetch"] == (4, 18)
    assert ranges["ListOffsets"] == (1, 11)
    assert ranges["OffsetForLeaderEpoch"] == (2, 4), "librdkafka uses version 2 and no other"
    assert ranges["ShareGroupHeartbeat"] == (1, 1)
    for name in ("ShareFetch", "ShareAcknowledge"):
        assert ranges[name] == (1, 2), "librdkafka uses version 1, franz-go needs 2"
